"""Support code of the conformance test: clients, servers, comparison."""

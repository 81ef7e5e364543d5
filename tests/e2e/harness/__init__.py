"""Helpers of the end-to-end tests: raw WebSocket and stdio clients, server control, /proc."""

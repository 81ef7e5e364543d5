"""Runs commands and handles files on an exec-server."""

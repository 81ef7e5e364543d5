"""Helpers of the end-to-end tests: raw WebSocket and stdio clients, server control, /proc."""

import sys
from pathlib import Path

# Each process of pytest would compile every test anew: most of its time before the first test.
sys.pycache_prefix = str(Path(__file__).resolve().parents[3] / "build" / "bytecode")
sys.dont_write_bytecode = False

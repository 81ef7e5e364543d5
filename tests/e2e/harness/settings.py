"""What the environment says about the program under test."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# The program under test, relative to the checkout unless absolute.
BINARY = str((ROOT / os.environ.get("EXEC_SERVER", "build/exec-server")).resolve())

# Memory figures of a sanitizer build say nothing about the program.
SANITIZED = os.environ.get("EXEC_SERVER_SANITIZED") == "1"

# Longest wait for something that should happen at once. Generous: it only delays failures, which
# those who plant faults do not want.
PATIENCE = float(os.environ.get("E2E_PATIENCE", "120" if SANITIZED else "60"))

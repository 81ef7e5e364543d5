"""What the real client does with the server. Each scenario gets a fresh server."""

from . import commands, files, sandbox, approvals, drops, ends  # noqa: F401
from .common import ALL  # noqa: F401

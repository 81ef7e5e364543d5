"""What the real client does with the server. Each scenario gets a fresh server."""

from . import commands, files, sandbox, approvals, mcp, network, discovery, drops, ends
from .common import ALL

__all__ = ["ALL", "commands", "files", "sandbox", "approvals", "mcp", "network", "discovery",
           "drops", "ends"]

"""The servers that the library must work with: ours in several ways, and the reference."""

import contextlib
import os
import subprocess
from pathlib import Path

try:
    import pytest
except ImportError:  # scripts of tests/verify do without it
    pytest = None

from harness import authority
from harness.settings import BINARY, ROOT

OURS = {"default": (), "concurrent": ("--concurrent-requests", "8"),
        "short-lived": ("--session-ttl", "2")}
REFERENCES = ("0.166.0", "0.145.0")
FAMILIES = (*OURS, "unix", "stdio", "nginx", *REFERENCES)
TLS = Path(BINARY).parent / "src" / "libexecserver-tls.so.0"


class Family:
    """One server: what to connect to, with which options, and what it can."""

    def __init__(self, name, url, server=None, **options):
        self.name, self.url, self.server, self.options = name, url, server, options
        self.is_ours = name not in REFERENCES
        self.resumes = name != "stdio"


def reference(version):
    """Path of the reference program; None if it cannot be had."""
    done = subprocess.run([ROOT / "tools" / "reference", version], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def start_reference(fleet, version, home):
    """A server of the reference; the test is skipped if there is none."""
    program = reference(version)
    if program is None:
        pytest.skip(f"the reference {version} cannot be installed here")
    return fleet.start(wrapper=(program,), binary="exec-server", quiet=False,
                       env={"CODEX_HOME": str(home), "HOME": str(home)})


@contextlib.contextmanager
def family(name, fleet, place):
    """The server of a name, with files of its own in `place`."""
    if name in OURS:
        server = fleet.start(*OURS[name])
        yield Family(name, server.url, server)
    elif name == "unix":
        server = fleet.start(listen=f"unix://{place}/socket")
        yield Family(name, server.url, server)
    elif name == "stdio":
        if "LD_PRELOAD" in os.environ:
            pytest.skip("a child of a sanitized Python cannot be a sanitized program")
        yield Family(name, "stdio:", program=BINARY, arg=["--listen", "stdio"])
    elif name == "nginx":
        if not TLS.exists() or not authority.is_there():
            pytest.skip("needs OpenSSL and nginx")
        (place / "ca").mkdir()
        ca = authority.Authority(place / "ca")
        server = fleet.start()
        front = authority.Nginx(place / "nginx", ca.sign("good", "DNS:localhost"),
                                server.address[1])
        try:
            yield Family(name, front.url(), server, ca_file=str(ca.ca))
        finally:
            front.kill()
    else:
        server = start_reference(fleet, name, place)
        yield Family(name, server.url, server)

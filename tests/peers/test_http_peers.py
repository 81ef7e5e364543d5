"""curl, directly and through proxies with TLS."""

import random
import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge import demand

DATA = random.Random(2616).randbytes(3_000_000)
UPGRADE = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H",
           "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


class Curl:
    """curl on a route. Every result is (status, version, body)."""

    def __init__(self, route, tmp_path):
        demand(shutil.which("curl"), "curl")
        self.base = route.url.replace("ws", "http", 1).rstrip("/")
        self.options = ["--cacert", route.ca] if route.ca else []
        self.tls = bool(route.ca)
        self.body = tmp_path / "body"

    def __call__(self, path, *args):
        self.body.unlink(missing_ok=True)
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "20", *self.options, "-o", str(self.body), "-w",
             "%{http_code} %{http_version}", *args, self.base + path],
            capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        status, version = done.stdout.split()
        return int(status), version, self.body.read_bytes() if self.body.exists() else b""


@pytest.fixture
def curl(route, tmp_path):
    return Curl(route, tmp_path)


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/readyz?x=1"])
def test_probes(curl, path):
    assert curl(path)[::2] == (200, b"")
    assert curl(path, "--head")[0] == 200
    assert curl(path, "-X", "DELETE")[0] == 405
    assert curl("/nothing")[0] == 404
    assert curl(path, "-H", "Origin: http://x")[0] == 403


def test_version(curl):
    """TLS proxies speak HTTP/2 with curl, which the server does not."""
    assert curl("/readyz")[1] == ("2" if curl.tls else "1.1")
    assert curl("/readyz", "--http1.1")[1] == "1.1"
    if not curl.tls:
        assert curl("/readyz", "--http1.0")[0] == 200


def test_one_connection_for_many(curl):
    """Keep-alive: the second request goes over the connection of the first."""
    done = subprocess.run(
        ["curl", "-sS", *curl.options, "-w", "%{num_connects} "]
        + [f"{curl.base}/{name}" for name in ("readyz", "healthz", "readyz")],
        capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["1", "0", "0"]


def test_metrics(curl):
    status, _, body = curl("/metrics")
    assert status == 200
    families = {f.name for f in text_string_to_metric_families(body.decode())}
    assert "exec_server_sessions" in families


def test_files(curl, tmp_path):
    """Upload, download, a range, a resumed download."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(DATA)
    path = f"/v1/files?path={target}"
    assert curl(path, "-T", str(source))[0] == 201
    assert target.read_bytes() == DATA
    assert curl(path, "-T", str(source), "-H", "Expect: 100-continue")[0] == 204
    assert curl(path)[::2] == (200, DATA)
    assert curl(path, "-r", "1000-1999")[::2] == (206, DATA[1000:2000])
    assert curl(path, "--head")[0] == 200
    assert curl(f"{path}-missing")[0] == 404


def test_upgrade(curl):
    """curl knows no WebSocket here, but gets its 101, and nothing more."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "-N", "--http1.1", "--max-time", "1", *curl.options, *UPGRADE,
         f"{curl.base}/"], capture_output=True, timeout=120, check=False)
    assert done.returncode == 28, done.stderr  # its own time limit
    head, end, rest = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and end and not rest
    assert b"s3pplmbitxaq9kygzzhzrbk+xoo=" in head.lower()


def test_no_upgrade(curl):
    status, _, body = curl("/", "--http1.1")
    assert (status, body) == (400, b"Connection header did not include 'upgrade'")

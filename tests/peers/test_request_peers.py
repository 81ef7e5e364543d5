"""http/request against nginx and haproxy, with TLS and HTTP/2, and an MCP server from npm."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

from bridge import demand
from harness import procfs
from harness.origin import Origin
from harness.rpc import b64
from harness.server import Server
from harness.waiting import until
from harness.web import available, body_of, header, headers_of, name_of, params, stream
from proxies import Certificate, Proxy, free_port

pytestmark = pytest.mark.skipif(not available(), reason="built without exec-server-http")

MIB = 1 << 20
LONG = int(os.environ.get("PEERS_BODY_MIB", "32"))  # tests/verify/http-bodies: 1024
FAULT = "error decoding response body"
MCP = "@modelcontextprotocol/server-everything", "2026.8.31"


def answer(x):
    """The origin behind the proxies."""
    path = x.target.partition("?")[0]
    if path == "/echo":
        x.answer(200, f"x-outside: {x.header('x-outside')}", f"x-method: {x.method}", body=x.body)
    elif path == "/chunks":
        x.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for size in (1, 10, 100000):
            x.send(b"%x\r\n%s\r\n" % (size, b"c" * size))
        x.send(b"0\r\ntrailer: dropped\r\n\r\n")
    elif path == "/large":
        x.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (LONG * MIB))
        for number in range(LONG):
            x.send(bytes([number % 256]) * MIB)
    elif path == "/garbage":
        x.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbodyGARBAGE HTTP/1.1 200 OK\r\n\r\n")
        return False
    elif path == "/many":
        x.answer(200, *[f"x-{n}: {'v' * 30}" for n in range(60)], body=b"many")
    elif path == "/loop":
        x.answer(302, "location: /loop?again")
    elif path == "/drip":
        x.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        x.sent = 0
        while x.sock.recv(0) == b"":
            drips.wait(x.sent)
            x.send(b"1\r\n%d\r\n" % (x.sent % 10))
            x.sent += 1
    elif path == "/cut":
        x.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"part")
        until(seen.is_set, "the client sees a part")
        return False
    else:
        x.answer(404)
    return True


class Drips:
    """The client allows the next byte when it has seen the last."""

    def __init__(self):
        self.allowed = 1

    def wait(self, sent):
        until(lambda: sent < self.allowed, "the client sees a byte")


drips, seen = Drips(), threading.Event()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    directory = tmp_path_factory.mktemp("request-peers")
    demand(shutil.which("openssl"), "openssl")
    certificate = Certificate(directory)
    origin = Origin(answer)
    server = Server("--concurrent-requests", "8", cwd="/",
                    env={"SSL_CERT_FILE": str(certificate.certificate)})
    made = {}

    def route(kind):
        if kind == "direct":
            return origin.url
        if kind not in made:
            made[kind] = Proxy(kind, directory / f"{kind}-{len(list(directory.iterdir()))}",
                               certificate, origin.port, 60)
        return f"https://localhost:{made[kind].port}"
    yield server, route, made
    for proxy in made.values():
        if proxy.popen.poll() is None:
            proxy.kill()
    origin.close()
    server.stop()
    server.abandon()


@pytest.fixture(name="client")
def make_client(world):
    client = world[0].client()
    yield client
    client.close()


@pytest.fixture(params=["direct", "nginx", "haproxy"])
def url(request, world):
    return world[1](request.param)


def test_requests(client, url):
    """HTTP/1.1 without TLS; with TLS, by a CA of its own, HTTP/2."""
    result = client.call("http/request", params(url + "/echo", "PUT", bodyBase64=b64(b"x" * 70000),
                                                headers=[header("X-A", "1")]))
    fields = dict(headers_of(result))
    assert (result["status"], fields["x-method"], body_of(result)) == (200, "PUT", b"x" * 70000)
    assert fields["x-outside"] == ("HTTP/2.0" if url.startswith("https") else "None")
    assert client.call("http/request", params(url + "/none"))["status"] == 404


def test_a_certificate_of_nobody_known(world):
    server = Server(cwd="/", env={})
    target = world[1]("nginx") + "/echo"
    assert server.client().error("http/request", params(target)) == (
        -32603, f"http/request failed: error sending request for url ({target})")
    server.stop()
    server.abandon()


def test_chunks_and_fields(client, url):
    assert body_of(client.call("http/request", params(url + "/chunks"))) == b"c" * 100011
    result = client.call("http/request", params(url + "/many"))
    assert len([name for name, _ in headers_of(result) if name.startswith("x-")]) == 60


def test_bytes_behind_a_body(client, url):
    """They are no answer to the next request."""
    for _ in range(3):
        assert body_of(client.call("http/request", params(url + "/garbage"))) == b"body"
        assert body_of(client.call("http/request", params(url + "/echo"))) == b""


def test_a_loop(client, url):
    assert client.error("http/request", params(url + "/loop")) == (
        -32603, "http/request failed: too many redirects")
    assert client.call("http/request", params(url + "/loop", redirectPolicy="stop"))["status"] == 302


@pytest.mark.parametrize("kind", ["direct", "haproxy"])  # nginx collects them
def test_slow_drips(client, world, kind):
    """Each byte arrives before the next one is sent. The time covers the whole body."""
    drips.allowed = 1
    _, s = stream(client, world[1](kind) + "/drip", name=kind, timeoutMs=600000)
    for number in range(20):
        s.wait_body(number + 1)
        drips.allowed = number + 2
    drips.allowed = 1 << 30  # it fails when the connection is closed


def test_a_body_that_is_cut(client, url, request):
    seen.clear()
    if "nginx" in request.node.name:  # it keeps what is short
        seen.set()
    result, s = stream(client, url + "/cut")
    assert result["status"] == 200
    if not seen.is_set():
        s.wait_body(4)
    seen.set()
    body, error = s.finish()
    assert (body, error) == (b"part", FAULT)


def test_a_proxy_that_dies(client, world):
    drips.allowed = 1
    _, s = stream(client, world[1]("haproxy") + "/drip", timeoutMs=600000)
    s.wait_body(1)
    world[2].pop("haproxy").kill()
    drips.allowed = 1 << 30
    assert s.finish()[1] == FAULT


def peak(pid):
    """The most memory that it ever had, in MiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM"))


def test_a_large_body(client, world, url):
    """It arrives whole; neither server nor HTTP program keeps more than a few MiB of it."""
    _, s = stream(client, url + "/large", name="large")
    digest, want, taken, size = hashlib.sha256(), hashlib.sha256(), 0, 0
    for number in range(LONG):
        want.update(bytes([number % 256]) * MIB)

    def over():
        nonlocal taken, size
        for frame in s.poll()[taken:]:
            data = s.data(frame)
            digest.update(data)
            size += len(data)
            frame["deltaBase64"] = frame["deltaBase64"] and "."
        taken = len(s.frames)
        client.other.clear()
        s.taken = 0
        return s.done
    client.wait(over, "the end of a large body", 600)
    assert (size, digest.hexdigest()) == (LONG * MIB, want.hexdigest())
    programs = [p for p in procfs.descendants(world[0].pid) if name_of(p) == "exec-http"]
    assert programs and all(peak(p) < 64 for p in (world[0].pid, *programs))


# An MCP server from npm.


def mcp_program():
    """Installed into the cache of tools/reference."""
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("npm is not installed")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    root = pathlib.Path(os.environ.get("EXEC_SERVER_REFERENCE_DIR")
                        or f"{cache}/exec-server-reference")
    place = root / f"mcp-{MCP[1]}"
    if not place.exists():
        root.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error",
             "--prefix", f"{place}.{os.getpid()}", "@".join(MCP)], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            pytest.skip("npm could not fetch the MCP server")
        try:
            os.rename(f"{place}.{os.getpid()}", place)
        except OSError:  # another run was faster
            shutil.rmtree(f"{place}.{os.getpid()}")
    return place / "node_modules" / MCP[0] / "dist" / "index.js"


def events(body):
    """The messages of a JSON answer or an event stream."""
    text = body.decode()
    if text.startswith("{"):
        return [json.loads(text)]
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_an_mcp_server(client):
    port = free_port()
    with subprocess.Popen(["node", mcp_program(), "streamableHttp"], start_new_session=True,
                          env={**os.environ, "PORT": str(port)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            check_mcp(client, f"http://127.0.0.1:{port}/mcp", server)
        finally:
            server.kill()


def check_mcp(client, url, server):
    session = []

    def post(message, name="m", **more):
        fields = [header("Accept", "application/json, text/event-stream"),
                  header("Content-Type", "application/json"), *session]
        return stream(client, url, name, method="POST", headers=fields,
                      bodyBase64=b64(json.dumps({"jsonrpc": "2.0", **message}).encode()), **more)

    def listens():
        assert server.poll() is None, server.stdout.read()
        ident = client.send("http/request", params(url, "DELETE"))
        return "result" in client.answer(ident)
    until(listens, "the MCP server listens")
    result, s = post({"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"}}})
    made = events(s.finish()[0])[0]["result"]
    assert result["status"] == 200 and "tools" in made["capabilities"]
    session += [header("mcp-session-id", dict(headers_of(result))["mcp-session-id"]),
                header("mcp-protocol-version", made["protocolVersion"])]
    assert post({"method": "notifications/initialized"})[0]["status"] == 202
    news, feed = stream(client, url, "news", headers=[header("Accept", "text/event-stream"),
                                                      *session])
    assert news["status"] == 200 and not feed.done  # it stays open beside the calls
    _, s = post({"id": 2, "method": "tools/list"}, "list")
    assert "echo" in [t["name"] for t in events(s.finish()[0])[-1]["result"]["tools"]]
    _, s = post({"id": 3, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"message": "ä" * 50000}}}, "call")
    content = events(s.finish()[0])[-1]["result"]["content"][0]["text"]
    assert content.endswith("ä" * 50000)
    assert client.call("http/request", params(url, "DELETE", headers=session))["status"] == 200
    assert feed.finish()[1] in (None, FAULT)

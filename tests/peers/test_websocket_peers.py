"""Foreign WebSocket clients, directly and through proxies with TLS."""

import json
import random
import signal

import pytest

from bridge import Peer
from harness.files import Files
from harness.rpc import Client, b64, unb64
from harness.server import Server
from harness.ws import Closed

BLOB = random.Random(6455).randbytes(6_000_000)


def closed_by(peer):
    """The end of a connection."""
    with pytest.raises(Closed) as end:
        while peer.receive() is not None:
            pass
        raise AssertionError("the connection is not ended")
    return end.value


def test_commands(client):
    process = client.run("printf out; printf err >&2; exit 7")
    assert (process.output("stdout"), process.output("stderr")) == (b"out", b"err")
    assert process.exit_code == 7
    echo = client.start(["cat"], pipeStdin=True)
    client.call("process/write", {"processId": echo.name, "chunk": b64(BLOB[:100_000]),
                                  "closeStdin": True})
    assert client.wait_closed(echo).output() == BLOB[:100_000]
    terminal = client.run("test -t 1 && tty", tty=True)
    assert terminal.output().startswith(b"/dev/pts/") and terminal.exit_code == 0


def test_much_output(client, tmp_path):
    (tmp_path / "blob").write_bytes(BLOB)
    process = client.run(["cat", str(tmp_path / "blob")])
    assert process.output() == BLOB


def test_large_messages(client, tmp_path):
    """8 MB of text in one message to the server, and in fragments from it."""
    files = Files(client)
    files.write(tmp_path / "large", BLOB)
    assert (tmp_path / "large").read_bytes() == BLOB
    assert files.read(tmp_path / "large") == BLOB


def test_fragments_from_the_client(client, tmp_path):
    """A message in pieces of all sizes, empty ones included."""
    request = json.dumps({"id": 500, "method": "fs/writeFile", "params": {
        "path": f"file://{tmp_path}/pieces", "dataBase64": b64(BLOB[:300_000])}}).encode()
    sizes = [1, 2, 0, 124, 125, 126, 127, 65_534, 65_535, 65_536, 0]
    parts = []
    for size in sizes:
        parts.append(request[:size])
        request = request[size:]
    client.transport.send_fragments([*parts, request])
    assert client.result(500) == {}
    assert (tmp_path / "pieces").read_bytes() == BLOB[:300_000]


@pytest.mark.parametrize("payload", [b"", b"x", b"p" * 125])
def test_ping(client, payload):
    client.transport.put("P", payload)
    client.transport.wait_pong(payload)
    client.sync()


@pytest.mark.parametrize("code, reason", [(1000, b""), (4321, "schöner Gruß".encode())])
def test_the_client_closes(client, code, reason):
    client.transport.send_close(code, reason)
    end = closed_by(client.transport)
    if client.transport.tells_answer:
        assert end.code == code


def test_the_server_closes_for_a_message_too_big(peer):
    """Before initialize 64 KiB are too much."""
    peer.send_text(json.dumps({"id": 1, "method": "initialize",
                               "params": {"clientName": "x" * 70_000}}))
    end = closed_by(peer)
    assert (end.code, end.reason) == (1009, b"message too big")


@pytest.mark.parametrize("kind", ["direct", "nginx", "haproxy"])
def test_the_server_shuts_down(net, program, kind, scope):
    server = Server(cwd="/")
    scope.callback(server.abandon)
    route = net.proxy(kind, server, 60) if kind != "direct" else server
    peer = Peer(program, route.url, "" if kind == "direct" else route.ca)
    scope.callback(peer.close)
    Client(peer).initialize()
    server.send_signal(signal.SIGTERM)
    end = closed_by(peer)
    assert (end.code, end.reason) == (1001, b"the server is shutting down")
    assert server.wait() == 0


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_proxy_is_killed(net, program, kind, scope):
    """The session is resumed through the next one; nothing that was printed is lost."""
    proxy = net.proxy(kind, net.server, 60)
    peer = Peer(program, proxy.url, proxy.ca)
    scope.callback(peer.close)
    client = Client(peer)
    client.initialize()
    process = client.start("echo before; read x; echo $x", pipeStdin=True)
    client.wait_output(process, "before\n")
    proxy.kill()
    assert closed_by(peer).code in (None, 1006)
    proxy.start()
    client = resumed(client, program, proxy, scope)
    client.write(process, "after\n", closeStdin=True)
    check_whole(client, process.name, b"before\nafter\n")


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_an_impatient_proxy(net, kind, scope):
    """It ends a connection that is silent for five seconds; the session goes on."""
    program = "node-ws"
    proxy = net.proxy(kind, net.server, 5)
    peer = Peer(program, proxy.url, proxy.ca)
    scope.callback(peer.close)
    client = Client(peer)
    client.initialize()
    process = client.start("echo before; read x; echo $x", pipeStdin=True)
    client.wait_output(process, "before\n")
    assert closed_by(peer).code in (None, 1006)
    client = resumed(client, program, proxy, scope)
    client.write(process, "after\n", closeStdin=True)
    check_whole(client, process.name, b"before\nafter\n")


def resumed(client, program, proxy, scope):
    """The session of a lost connection on a new one."""
    peer = Peer(program, proxy.url, proxy.ca)
    scope.callback(peer.close)
    again = Client(peer)
    again.initialize(client.session)
    assert again.session == client.session
    return again


def check_whole(client, name, wanted):
    """The process ends well, and all it printed can be read, once."""
    assert client.call("process/wait", {"processId": name})["exitCode"] == 0
    result = client.read(name)
    assert [c["seq"] for c in result["chunks"]] == list(range(1, len(result["chunks"]) + 1))
    assert b"".join(unb64(c["chunk"]) for c in result["chunks"]) == wanted


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_idle_proxy(idle_wait, kind):
    """The server's pings keep a silent connection alive where proxies wait for 42 s."""
    client = idle_wait.client(kind)
    assert idle_wait.over.wait(600)
    assert client.run("echo still here").output() == b"still here\n"
    assert set(client.transport.pings) == {b""}

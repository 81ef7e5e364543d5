"""What the console's listener lets in: files of the page, and the page itself. Nobody else."""

import gzip
import json
import re
import socket

import pytest

from harness.console import FILES, Console, Page
from harness.fleet import Fleet
from harness.http import Ended, Http
from harness.rpc import Client
from harness.ws import TEXT, Closed, Refused, WebSocket, connect_tcp, frame, head

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")
SAFETY = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
PLACES = 64


@pytest.fixture(scope="module")
def console(nothing_left, tmp_path_factory):  # pylint: disable=unused-argument
    made = Fleet()
    started = Console(made, tmp_path_factory.mktemp("console"), "--console-host", "Box.example",
                      "--closed-retention", "3600")
    started.watcher = started.page()
    yield started
    made.finish()


def is_safe(response):
    for name, value in SAFETY.items():
        assert response.header(name) == value, name
    assert "clipboard-write=(self)" in response.header("permissions-policy")
    assert "camera=()" in response.header("permissions-policy")
    names = {name for name, _ in response.fields}
    assert "set-cookie" not in names
    assert not any(name.startswith("access-control-") for name in names)


# Files.

@pytest.mark.parametrize("path", list(FILES))
def test_files(console, path):
    got = console.ask(path)
    assert got.status == 200 and got.header("content-type") == FILES[path][0]
    assert got.header("content-encoding") == "gzip" and gzip.decompress(got.body) == FILES[path][1]
    is_safe(got)
    bare = console.ask(path, "HEAD")
    assert bare.status == 200 and bare.body == b""
    assert bare.header("content-length") == got.header("content-length")
    tag = got.header("etag")
    same = console.ask(path, headers=[("If-None-Match", tag)])
    assert same.status == 304 and same.body == b"" and same.header("etag") == tag
    is_safe(same)
    assert console.ask(path, headers=[("If-None-Match", '"other"')]).status == 200
    # A query belongs to nobody.
    assert console.ask(f"{path}?x=1").status == 200


def test_one_connection_for_all(console):
    http = console.http()
    for _ in range(3):
        for path, (_, data) in FILES.items():
            http.send(f"GET {path} HTTP/1.1\r\nHost: {console.authority}\r\n"
                      "Accept-Encoding: gzip\r\n\r\n")
            assert gzip.decompress(http.read().body) == data
    http.close()


def test_requests_that_come_together(console):
    http = console.http()
    one = (f"GET /app.js HTTP/1.1\r\nHost: {console.authority}\r\nAccept-Encoding: gzip\r\n\r\n")
    http.send(one * 8)
    for _ in range(8):
        assert gzip.decompress(http.read().body) == FILES["/app.js"][1]
    http.close()


@pytest.mark.parametrize("path", [
    "/index.html", "/manifest", "/0.gz", "/../manifest", "/app.js/", "//app.js", "/ws/", "/metrics",
    "/v1/files?path=/etc/passwd", "/readyz", "/healthz", "/%2e%2e/manifest", "/app.js%00",
    "/app%2ejs"])
def test_nothing_else(console, path):
    got = console.ask(path)
    assert got.status == 404 and got.body == b""
    is_safe(got)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods(console, method):
    got = console.ask("/", method)
    assert got.status == 405 and got.header("allow") == "GET,HEAD"
    is_safe(got)


@pytest.mark.parametrize("accept,status", [
    (None, 406), ("identity", 406), ("gzip;q=0", 406), ("gzip;q=0.000", 406), ("br, deflate", 406),
    ("*", 200), ("*;q=0", 406), ("GZIP", 200), ("br;q=1.0, gzip;q=0.8", 200), ("gzip ; q=0.01", 200),
    ("xgzip", 406), ("", 406)])
def test_only_gzip(console, accept, status):
    headers = [] if accept is None else [("Accept-Encoding", accept)]
    got = console.ask("/", headers=headers, gzipped=False)
    assert got.status == status
    is_safe(got)


# Host: a name that somebody else has chosen for this address (DNS rebinding).

@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "localhost", "127.0.0.1", "localhost:1", "127.0.0.1:1",
    "127.0.0.2:{port}", "0.0.0.0:{port}", "[::1]:{port}", "localhost.:{port}",
    "127.0.0.1.evil.example:{port}", "localhost:{port}.evil.example", "x@127.0.0.1:{port}",
    "127.1:{port}", "2130706433:{port}", "127.0.0.1:{port}0", "127.0.0.1:0{port}",
    "127.0.0.1:{port}/", "box.example.evil:{port}", "", " "])
def test_foreign_hosts(console, host):
    host = host.format(port=console.port)
    got = console.ask("/", host=host or " ")
    assert got.status == 421 and got.body == b""
    with pytest.raises(Refused) as no:
        console.websocket(host=host or " ", origin=f"http://{host}")
    assert no.value.response.status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}",
                                  "box.example", "box.example:{port}", "box.example:9999"])
def test_own_hosts(console, host):
    host = host.format(port=console.port)
    assert console.ask("/", host=host).status == 200
    for scheme in ("http", "https"):
        ws = console.websocket(host=host, origin=f"{scheme}://{host}")
        assert ws.response.status == 101
        ws.close()


def test_no_host_and_two(console):
    for lines in ("", f"Host: {console.authority}\r\nHost: {console.authority}\r\n",
                  f"Host: {console.authority}\r\nHost: evil.example\r\n"):
        http = console.http()
        http.send(f"GET / HTTP/1.1\r\n{lines}Accept-Encoding: gzip\r\n\r\n")
        assert http.read().status == 421
        http.wait_eof()


def test_ipv6(fleet, tmp_path):
    console = Console(fleet, tmp_path, url="ws://[::1]:0")
    assert console.host == "[::1]" and console.ask("/").status == 200
    assert console.ask("/", host=f"localhost:{console.port}").status == 200
    assert console.ask("/", host=f"127.0.0.1:{console.port}").status == 421
    console.page().sync()


# Origin: a page from elsewhere.

@pytest.mark.parametrize("origin", [
    "", "null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:1",
    "http://localhost:{port}", "file://", "http://{authority}.evil.example", "http://{authority}/",
    "ws://{authority}", "http://{authority} http://evil.example", "HTTP://{authority}",
    "{authority}", "http://x@{authority}", "chrome-extension://{authority}"])
def test_foreign_origins(console, origin):
    origin = origin.format(port=console.port, authority=console.authority)
    with pytest.raises(Refused) as no:
        console.websocket(origin=origin)
    assert no.value.response.status == 403 and no.value.response.body == b""


def test_two_origins(console):
    with pytest.raises(Refused) as no:
        console.websocket(headers=[("Origin", "http://evil.example")])
    assert no.value.response.status == 403


def test_a_page_on_another_port(console):
    """It has this host's name, and cookies would reach it: there are none to get."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(Refused) as no:
            console.websocket(origin=f"http://127.0.0.1:{port}")
        assert no.value.response.status == 403
    # Nor may it put a file of ours into itself, or read it.
    got = console.ask("/app.js", headers=[("Origin", f"http://127.0.0.1:{port}"),
                                          ("Sec-Fetch-Site", "same-site")])
    assert got.header("cross-origin-resource-policy") == "same-origin"
    assert got.header("access-control-allow-origin") is None


def test_upgrades_elsewhere(console):
    for path in ("/", "/app.js", "/ws/", "/ws2"):
        with pytest.raises(Refused):
            console.websocket(path=path)
    got = console.ask("/ws", headers=[("Origin", console.origin)])
    assert got.status == 400
    got = console.ask("/ws", "POST", headers=[("Origin", console.origin)])
    assert got.status == 405


def test_the_listener_of_clients_refuses_pages(console):
    """Even this one."""
    for origin in (console.origin, f"http://127.0.0.1:{console.server.address[1]}", "null"):
        with pytest.raises(Refused) as no:
            console.server.websocket(headers=[("Origin", origin)])
        assert no.value.response.status == 403


def test_no_client_gets_in(console):
    """A client of the protocol has no Origin, and its token is not asked for."""
    with pytest.raises(Refused) as no:
        WebSocket(console.address, host=console.authority,
                  headers=[("Authorization", f"Bearer {console.token}")])
    assert no.value.response.status == 406
    with pytest.raises(Refused) as no:
        WebSocket(console.address, path="/ws", host=console.authority)
    assert no.value.response.status == 403


def test_a_token_in_the_url_is_not_read(console):
    link = console.watcher.call("console/link")["token"]
    for path in (f"/ws?token={link}", f"/ws#{link}"):
        ws = console.websocket(path=path, headers=[("Cookie", f"token={link}"),
                                                   ("Authorization", f"Bearer {link}")])
        page = Page(ws)
        assert page.error("console/list")[0] == -32600
        assert ws.receive_close() == 1008
    assert console.page(link)


def test_refusals_are_in_the_log(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    watcher = console.page()
    with pytest.raises(Refused):
        console.websocket(origin="http://evil.example")
    console.ask("/", host="evil.example")
    lines = watcher.call("console/audit")["lines"]
    reasons = {line["reason"] for line in lines if line["event"] == "refused" and "reason" in line}
    assert reasons == {"Host is not that of the console", "Origin is not that of the console"}


# Those who want too much.

def test_strangers_make_room(console):
    """64 connections that never log in keep nobody out."""
    idle = [console.websocket() for _ in range(PLACES + 8)]
    assert idle[0].receive_close() == 1013
    link = console.watcher.call("console/link")["token"]
    page = console.page(link)
    page.sync()
    console.watcher.sync()
    assert console.ask("/").status == 200
    for ws in idle:
        ws.close()


def test_silent_connections_make_room(console):
    idle = [connect_tcp(console.address) for _ in range(PLACES + 8)]
    assert console.ask("/").status == 200
    console.watcher.sync()
    for sock in idle:
        sock.close()


def test_a_large_first_message(console):
    ws = console.websocket()
    ws.send_bytes(head(TEXT, 10 << 20, key=b"\0\0\0\0"))
    assert ws.receive_close() == 1009
    # One that is within the maximum, but no login.
    ws = console.websocket()
    text = json.dumps({"id": 1, "method": "console/login",
                       "params": {"token": "x" * 60_000}}).encode()
    ws.send_bytes(frame(TEXT, text))
    assert ws.receive_close() == 1008


def test_a_large_head(console):
    http = console.http()
    http.send(f"GET / HTTP/1.1\r\nHost: {console.authority}\r\nX: " + "x" * 70_000)
    assert http.read().status == 431
    http.wait_eof()


def test_a_body_is_not_read(console):
    http = console.http()
    http.send(f"GET / HTTP/1.1\r\nHost: {console.authority}\r\nAccept-Encoding: gzip\r\n"
              "Content-Length: 1000000\r\n\r\n")
    assert http.read().status == 200
    http.close()
    ws = console.http()
    ws.send(f"GET /ws HTTP/1.1\r\nHost: {console.authority}\r\nOrigin: {console.origin}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 5\r\n\r\nhello")
    assert ws.read().status == 400
    ws.close()


def test_a_reader_that_stops(fleet, tmp_path):
    """Files on their way are borrowed, never copied whole for each connection."""
    console = Console(fleet, tmp_path)
    page = console.page()
    slow = []
    for _ in range(20):
        http = Http(connect_tcp(console.address, rcvbuf=2048))
        one = f"GET /app.js HTTP/1.1\r\nHost: {console.authority}\r\nAccept-Encoding: gzip\r\n\r\n"
        http.send(one * 200)
        slow.append(http)
    page.sync()
    for http in slow:
        http.close()
    page.sync()
    assert console.ask("/").status == 200


def test_garbage_after_the_upgrade(console):
    ws = console.websocket()
    ws.send_bytes(b"\xff" * 100)
    assert ws.receive_close() in (1002, 1003, None)
    console.watcher.sync()


def test_hang_up_at_every_step(console):
    """Nothing is left behind, whenever the browser goes."""
    before = console.server.fds()
    for data in (b"G", b"GET / HTTP/1.1\r\n",
                 f"GET /app.js HTTP/1.1\r\nHost: {console.authority}\r\n"
                 "Accept-Encoding: gzip\r\n\r\n".encode()):
        sock = connect_tcp(console.address)
        sock.send(data)
        sock.close()
    console.websocket().close()
    ws = console.websocket()
    ws.send_bytes(frame(TEXT, b'{"id":1,"method":"console/login"'))
    ws.close()
    page = console.page(console.watcher.call("console/link")["token"])
    page.send("console/list")
    page.transport.reset()
    console.server.wait_fds(before)


def test_the_link_is_on_stderr_alone(console):
    text = console.server.stderr()
    assert len(re.findall("console: ", text)) == 1 and console.token in text
    assert isinstance(console.watcher, Client)
    with pytest.raises((Refused, Ended, Closed)):
        console.server.websocket(path=f"/#{console.token}", headers=[("Origin", console.origin)])

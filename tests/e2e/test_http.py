"""HTTP routes, Origin refusal and the checks of the upgrade, in their order."""

import re

import pytest

from harness.http import Ended
from harness.ws import TEXT, Refused, frame, upgrade_request

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": KEY}
TEXT_PLAIN = "text/plain; charset=utf-8"


def upgrade_with(**changes):
    """Upgrade headers with some changed or (None) left out; names with _ for -."""
    fields = dict(UPGRADE)
    for name, value in changes.items():
        fields[name.replace("_", "-")] = value
    return [(k, v) for k, v in fields.items() if v is not None]


@pytest.fixture
def http(shared):
    connection = shared.http()
    yield connection
    connection.close()


def check_plain(response, status, body=b""):
    assert (response.status, response.body) == (status, body)
    assert all(name == name.lower() for name, _ in response.fields)
    assert response.header("content-length") is not None
    assert re.fullmatch(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT",
                        response.header("date"))
    assert response.header("server") is None
    if body:
        assert response.header("content-type") == TEXT_PLAIN


@pytest.mark.parametrize("path", ["/readyz", "/healthz"])
class TestReady:
    def test_get(self, http, path):
        check_plain(http.ask(path), 200)

    def test_query(self, http, path):
        check_plain(http.ask(path + "?a=b"), 200)

    def test_head(self, http, path):
        response = http.ask(path, "HEAD")
        assert response.status == 200 and response.body == b""
        check_plain(http.ask(path), 200)

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"])
    def test_other_method(self, http, path, method):
        response = http.ask(path, method)
        check_plain(response, 405)
        assert response.header("allow") == "GET,HEAD"


@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz/", "/x", "//",
                                  "/readyzz", "/READYZ", "/index.html"])
@pytest.mark.parametrize("headers", [[], upgrade_with()], ids=["plain", "upgrade"])
def test_not_found(http, path, headers):
    check_plain(http.ask(path, headers=headers), 404)


@pytest.mark.parametrize("value", ["", "null", "http://localhost", "https://example.com"])
@pytest.mark.parametrize("path, method, headers", [
    ("/", "GET", upgrade_with()), ("/", "POST", []), ("/", "GET", []), ("/readyz", "GET", []),
    ("/healthz", "HEAD", []), ("/readyz", "POST", []), ("/nowhere", "GET", []),
])
def test_origin_is_refused(http, value, path, method, headers):
    response = http.ask(path, method, [*headers, ("Origin", value)])
    if method == "HEAD":
        assert response.status == 403
    else:
        check_plain(response, 403)
    check_plain(http.ask("/readyz"), 200)


def test_origin_name_in_any_case(http):
    check_plain(http.ask("/readyz", headers=[("oRiGiN", "x")]), 403)


def test_keep_alive(http):
    for _ in range(3):
        check_plain(http.ask("/readyz"), 200)
    check_plain(http.ask("/x"), 404)
    check_plain(http.ask("/readyz"), 200)


def test_pipelined(http):
    http.send("GET /readyz HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
    assert [http.read().status for _ in range(3)] == [200, 404, 200]


def test_many_pipelined(http):
    http.send("GET /readyz HTTP/1.1\r\n\r\n" * 500)
    assert {http.read().status for _ in range(500)} == {200}


def test_connection_close(http):
    check_plain(http.ask("/readyz", headers=[("Connection", "close")]), 200)
    http.wait_eof()


def test_http_1_0_closes(http):
    assert http.ask("/readyz", version="1.0").status == 200
    http.wait_eof()


def test_head_byte_by_byte(http):
    for byte in b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n":
        http.send(bytes([byte]))
    check_plain(http.read(), 200)


@pytest.mark.parametrize("how", ["length", "chunked"])
def test_body_is_never_taken_for_a_request(http, how):
    inner = "GET /readyz HTTP/1.1\r\n\r\n"
    if how == "length":
        head, body = f"Content-Length: {len(inner)}", inner
    else:
        head, body = "Transfer-Encoding: chunked", f"{len(inner):x}\r\n{inner}\r\n0\r\n\r\n"
    http.send(f"POST /x HTTP/1.1\r\n{head}\r\n\r\n{body}")
    assert http.read("POST").status in (400, 404, 411, 501)
    try:
        http.send("GET /marker HTTP/1.1\r\n\r\n")
        assert http.read().status == 404
    except (Ended, BrokenPipeError, ConnectionResetError):
        pass


def test_upgrade(shared):
    http = shared.http()
    response = http.ask("/", headers=upgrade_with())
    assert response.status == 101
    assert response.header("connection") == "upgrade"
    assert response.header("upgrade") == "websocket"
    assert response.header("sec-websocket-accept") == ACCEPT
    assert response.header("date")
    http.close()


@pytest.mark.parametrize("target", ["/?a=b", "http://localhost/", "http://localhost",
                                    "http://localhost/?x"])
def test_upgrade_targets(http, target):
    assert http.ask(target, headers=upgrade_with()).status == 101


@pytest.mark.parametrize("changes", [
    {"Connection": "keep-alive, Upgrade"}, {"Connection": "upgrade"}, {"Connection": "notupgrade"},
    {"Upgrade": "WebSocket"}, {"Sec_WebSocket_Key": "abc"},
    {"Sec_WebSocket_Protocol": "foo, bar"},
    {"Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits"},
    {"Authorization": "Bearer ignored"},
])
def test_upgrade_variants(http, changes):
    response = http.ask("/", headers=upgrade_with(**changes))
    assert response.status == 101
    assert response.header("sec-websocket-protocol") is None
    assert response.header("sec-websocket-extensions") is None


def test_upgrade_without_host(http):
    http.send("GET / HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in upgrade_with()) + "\r\n")
    assert http.read().status == 101


METHOD = b"Request method must be `GET`"
CONNECTION = b"Connection header did not include 'upgrade'"
NO_UPGRADE = b"`Upgrade` header did not include 'websocket'"
VERSION = b"`Sec-WebSocket-Version` header did not include '13'"
NO_KEY = b"`Sec-WebSocket-Key` header missing"


@pytest.mark.parametrize("changes, body", [
    ({"Connection": None}, CONNECTION),
    ({"Connection": "close"}, CONNECTION),
    ({"Upgrade": None}, NO_UPGRADE),
    ({"Upgrade": "h2c"}, NO_UPGRADE),
    ({"Upgrade": "websocket, foo"}, NO_UPGRADE),
    ({"Sec_WebSocket_Version": None}, VERSION),
    ({"Sec_WebSocket_Version": "8"}, VERSION),
    ({"Sec_WebSocket_Version": "13, 8"}, VERSION),
    ({"Sec_WebSocket_Key": None}, NO_KEY),
    # Two faults: the earlier check answers.
    ({"Connection": None, "Upgrade": None}, CONNECTION),
    ({"Upgrade": None, "Sec_WebSocket_Version": None}, NO_UPGRADE),
    (dict.fromkeys(["Connection", "Upgrade", "Sec_WebSocket_Version", "Sec_WebSocket_Key"]),
     CONNECTION),
])
def test_upgrade_refused(http, changes, body):
    response = http.ask("/", headers=upgrade_with(**changes))
    check_plain(response, 400, body)
    assert response.header("sec-websocket-version") is None


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("headers", [[], upgrade_with()], ids=["plain", "upgrade"])
def test_upgrade_needs_get(http, method, headers):
    check_plain(http.ask("/", method, headers), 405, METHOD)


def test_plain_get_of_root(http):
    check_plain(http.ask("/"), 400, CONNECTION)
    check_plain(http.ask("/readyz"), 200)


def test_http_1_0_upgrade(http):
    response = http.ask("/", headers=upgrade_with(), version="1.0")
    check_plain(response, 426,
                b"WebSocket request couldn't be upgraded since no upgrade state was present")


def test_http_1_0_upgrade_without_key(http):
    check_plain(http.ask("/", headers=upgrade_with(Sec_WebSocket_Key=None), version="1.0"),
                400, NO_KEY)


@pytest.mark.parametrize("junk", [
    b"\0\1garbage\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /readyz\r\n\r\n",
    b"GET /readyz HTTP/9.9\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\nno colon here\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\n: empty name\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\nbad name: x\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\nx: a\0b\r\n\r\n",
    b"G\x7fT /readyz HTTP/1.1\r\n\r\n",
], ids=repr)
def test_unparsable(http, junk):
    http.send(junk)
    response = http.read()
    assert response.status == 400
    assert response.header("connection") == "close"
    http.wait_eof()


def test_tls_hello(http):
    """Answered at once although no line ever ends."""
    http.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
    response = http.read()
    assert response.status == 400 and response.header("connection") == "close"
    http.wait_eof()


@pytest.mark.parametrize("field", [
    "Content-Length: x", "Content-Length: -1", "Content-Length: 99999999999999999999999",
    "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: gzip", "Transfer-Encoding: chunked, x"])
def test_doubtful_body(http, field):
    """A body of unknown extent ends the connection; its bytes are never a request."""
    http.send(f"POST /readyz HTTP/1.1\r\n{field}\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
    assert http.read("POST").status in (400, 405, 413, 501)
    try:
        http.wait_eof()
    except (ConnectionResetError, Ended):
        pass


def many(count):
    return [(f"X-{i}", "a") for i in range(count)]


def test_hundred_headers(http):
    check_plain(http.ask("/readyz", headers=many(99)), 200)


def test_too_many_headers(http):
    response = http.ask("/readyz", headers=many(150))
    assert response.status == 431 and response.header("connection") == "close"
    http.wait_eof()


def test_large_head_is_accepted(http):
    check_plain(http.ask("/readyz", headers=[("X", "a" * 60000)]), 200)


def test_head_over_64_kib(http):
    http.send(b"GET /readyz HTTP/1.1\r\nX: " + b"a" * 65536)
    response = http.read()
    assert response.status == 431 and response.header("connection") == "close"


def test_long_target(http):
    http.send(b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n")
    response = http.read()
    assert response.status == 414 and response.header("connection") == "close"


def test_frames_right_after_the_request(shared):
    request = b'{"id":1,"method":"initialize","params":{"clientName":"early"}}'
    ws = shared.websocket(early=frame(TEXT, request))
    assert b'"sessionId"' in ws.receive()
    ws.close()


def test_refused_upgrade_keeps_the_connection(shared):
    http = shared.http()
    assert http.ask("/", headers=upgrade_with(Sec_WebSocket_Version="12")).status == 400
    assert http.ask("/", headers=upgrade_with()).status == 101
    http.close()


def test_websocket_class_reports_refusal(shared):
    with pytest.raises(Refused) as refused:
        shared.websocket(headers=[("Origin", "x")])
    assert refused.value.response.status == 403


def test_request_split_at_every_byte_of_the_end(shared):
    request = upgrade_request()
    for cut in range(len(request) - 4, len(request)):
        http = shared.http()
        http.send(request[:cut])
        http.send(request[cut:])
        assert http.read().status == 101
        http.close()

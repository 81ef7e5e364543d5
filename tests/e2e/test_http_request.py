"""http/request: what is sent, what is answered, redirects, failures, limits. No network but
loopback, and a server that does what each test says."""

import socket
import threading

import pytest

from harness.fleet import Fleet
from harness.origin import Origin
from harness.rpc import b64
from harness.web import available, body_of, header, headers_of, params

pytestmark = pytest.mark.skipif(not available(), reason="built without exec-server-http")

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ENV = {"TOKEN": "t0ken", "BLANK": "", "LINES": "a\nb", "OPENAI_API_KEY": "secret"}


def echo(x):
    x.answer(200, "X-A: 1", "x-b:  b ", "X-a: 2", body=x.body)


@pytest.fixture(name="origins", scope="module")
def make_origins():
    made = []

    def make(handle, **options):
        made.append(Origin(handle, **options))
        return made[-1]
    yield make
    for origin in made:
        origin.close()


@pytest.fixture(name="web", scope="module")
def web_server(nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    yield made.start(env=ENV)
    made.finish()


@pytest.fixture(name="ask")
def make_ask(web):
    """Calls http/request on a connection of its own."""
    client = web.client()
    yield lambda url, **more: client.call("http/request", params(url, **more))
    client.close()


@pytest.fixture(name="refuse")
def make_refuse(web):
    """The error of an http/request."""
    client = web.client()
    yield lambda url, **more: client.error("http/request", params(url, **more))
    client.close()


def sent(origin, number=-1):
    return [line.decode() for line in origin.seen[number].lines]


# What is sent.


def test_a_request_has_no_header_of_ours_but_accept_and_host(ask, origins):
    o = origins(echo)
    result = ask(o.url + "/a?b=c")
    assert result["status"] == 200 and body_of(result) == b""
    assert headers_of(result) == [("x-a", "1"), ("x-a", "2"), ("x-b", "b"),
                                  ("content-length", "0")]
    assert sent(o) == ["GET /a?b=c HTTP/1.1", "accept: */*", f"host: 127.0.0.1:{o.port}"]


def test_headers_keep_their_order_in_groups(ask, origins):
    o = origins(echo)
    ask(o.url, headers=[header("X-One", "1"), header("Accept", "a/b"), header("x-one", "é"),
                        header("Host", "own"), header("Empty", "")])
    assert [line.rstrip() for line in sent(o)[1:]] == [
        "x-one: 1", "x-one: é", "accept: a/b", "host: own", "empty:"]


@pytest.mark.parametrize("method", ["get", "PROPFIND", "x-Y.Z"])
def test_methods_are_sent_as_they_are(ask, origins, method):
    o = origins(echo)
    ask(o.url, method=method)
    assert sent(o)[0] == f"{method} / HTTP/1.1"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "own"])
def test_a_body_is_sent_with_its_length_alone(ask, origins, method):
    o = origins(echo)
    data = bytes(range(256)) * 1000
    assert body_of(ask(o.url, method=method, bodyBase64=b64(data))) == data
    assert sent(o)[1:] == ["accept: */*", f"host: 127.0.0.1:{o.port}", "content-length: 256000"]


@pytest.mark.parametrize("body", ["", None])
def test_an_empty_body_has_no_length(ask, origins, body):
    o = origins(echo)
    ask(o.url, method="POST", bodyBase64=body)
    assert not any(line.startswith("content-") for line in sent(o))


def test_user_info_becomes_a_header(ask, origins):
    o = origins(echo)
    ask(f"http://user:pa%40ss@127.0.0.1:{o.port}/x#frag")
    assert sent(o)[:2] == ["GET /x HTTP/1.1", "authorization: Basic dXNlcjpwYUBzcw=="]


def test_a_url_is_normalised(ask, origins):
    o = origins(echo)
    ask(f" HTTP://127.0.0.1:{o.port}/a/../b c/é?x=y z\n")
    assert sent(o)[0] == "GET /b%20c/%C3%A9?x=y%20z HTTP/1.1"


def test_a_variable_is_appended_to_its_header(ask, origins):
    o = origins(echo)
    ask(o.url, headers=[header("Authorization", "Bearer ", valueEnvVar="TOKEN")])
    assert "authorization: Bearer t0ken" in sent(o)


@pytest.mark.parametrize("name, text", [
    ("NOPE", "requires executor environment variable NOPE"),
    ("BLANK", "requires a non-empty executor environment variable BLANK"),
    ("openai_api_key", "cannot use executor environment variable openai_api_key"),
    ("OPENAI_API_KEY", "cannot use executor environment variable OPENAI_API_KEY")])
def test_variables_that_cannot_be_used(refuse, name, text):
    assert refuse("http://127.0.0.1:1/", headers=[header("A", "", valueEnvVar=name)]) == (
        -32602, f"http/request header A {text}")


def test_a_variable_with_a_line_end_is_no_header(refuse):
    assert refuse("http://127.0.0.1:1/", headers=[header("A", "", valueEnvVar="LINES")]) == (
        -32602, "http/request header value is invalid for A: failed to parse header value")


# What is refused before anything is sent.


@pytest.mark.parametrize("wrong, text", [
    ({"method": ""}, "http/request method is invalid: invalid HTTP method"),
    ({"method": "GE T"}, "http/request method is invalid: invalid HTTP method"),
    ({"url": "/x"}, "http/request url is invalid: relative URL without a base"),
    ({"url": "http://"}, "http/request url is invalid: empty host"),
    ({"url": "http://h:65536/"}, "http/request url is invalid: invalid port number"),
    ({"url": "http://h/" + 65536 * "a"}, "http/request url is invalid: it has more than 65536 "
                                          "bytes"),
    ({"url": "file:///etc/passwd"}, "http/request only supports http and https URLs, got file"),
    ({"headers": [header("a b", "")]},
     "http/request header name is invalid: invalid HTTP header name"),
    ({"headers": [header("a", "\r\nx: y")]},
     "http/request header value is invalid for a: failed to parse header value"),
    ({"headers": [header("a", "b")] * 1024}, "http/request has more than 1023 headers"),
    ({"headers": None}, "invalid type: null, expected a sequence"),
    ({"bodyBase64": "!!!"}, "Invalid symbol 33, offset 0."),
    ({"timeoutMs": -1}, "invalid number"),
    ({"redirectPolicy": "FOLLOW"}, "unknown variant `FOLLOW`, expected `follow` or `stop`")])
def test_bad_params(refuse, wrong, text):
    good = {"url": "http://127.0.0.1:1/"}
    assert refuse(**{**good, **wrong}) == (-32602, text)


def test_a_request_needs_no_name(web, origins):
    o = origins(echo)
    client = web.client()
    assert client.call("http/request", {"method": "GET", "url": o.url})["status"] == 200
    assert client.error("http/request", {"method": "GET", "url": o.url, "streamResponse": True}
                        ) == (-32602, "missing field `requestId`")


# What is answered.


@pytest.mark.parametrize("raw, status, headers, body", [
    (b"HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno", 404, [("content-length", "2")], b"no"),
    (b"HTTP/1.1 204 No\r\n\r\n", 204, [], b""),
    (b"HTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200,
     [("content-length", "0")], b""),
    (b"HTTP/1.1 200 OK\r\nx: \xe9\r\ny: z\r\ncontent-length: 0\r\n\r\n", 200,
     [("y", "z"), ("content-length", "0")], b""),
    (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc", 200,
     [("content-encoding", "gzip"), ("content-length", "3")], b"abc"),
    (CHUNKED + b"1\r\na\r\n2;x=y\r\nbc\r\n0\r\nt: 1\r\n\r\n", 200,
     [("transfer-encoding", "chunked")], b"abc"),
    (b"HTTP/1.0 200 OK\r\n\r\nto the end", 200, [], b"to the end")])
def test_answers(ask, origins, raw, status, headers, body):
    def handle(x):
        x.send(raw)
        return False
    result = ask(origins(handle).url)
    assert (result["status"], headers_of(result), body_of(result)) == (status, headers, body)


def test_a_large_body(ask, origins):
    data = bytes(range(251)) * 80000  # 20 MB: several pieces
    o = origins(lambda x: x.answer(body=data))
    assert body_of(ask(o.url)) == data


def test_bodies_of_all_lengths(ask, origins):
    o = origins(echo)
    for size in (1, 2, 3, 4, 5, 16383, 16384, 16385, 131071, 131072, 131073, 400001):
        data = (b"0123456789abc" * (size // 13 + 1))[:size]
        assert body_of(ask(o.url, method="POST", bodyBase64=b64(data))) == data


def test_connections_are_used_again_and_cookies_forgotten(ask, origins):
    o = origins(lambda x: x.answer(200, "set-cookie: a=b"))
    for _ in range(3):
        ask(o.url)
    assert o.connections == 1
    assert not any("cookie" in line for line in sent(o))


# Redirects.


def hop(status, location, there=None):
    def handle(x):
        if x.target.startswith("/from"):
            x.answer(status, f"location: {location or there.url + '/to'}", body=b"moved")
        else:
            x.answer(body=x.method.encode() + b" " + x.body)
    return handle


@pytest.mark.parametrize("status, method, arrives", [
    (301, "POST", b"GET "), (302, "POST", b"GET "), (303, "PUT", b"GET "), (307, "POST", b"POST b"),
    (308, "PUT", b"PUT b"), (301, "PUT", b"PUT b"), (302, "GET", b"GET ")])
def test_redirects(ask, origins, status, method, arrives):
    o = origins(hop(status, "../to?x"))
    body = {} if method == "GET" else {"bodyBase64": b64("b")}
    result = ask(o.url + "/from/here", method=method, headers=[header("Content-Type", "t")], **body)
    assert body_of(result) == arrives
    assert o.seen[1].target == "/to?x" and o.seen[1].header("referer") == o.url + "/from/here"
    assert o.seen[1].header("content-type") == (None if arrives == b"GET " and method != "GET"
                                                 else "t")


def test_secrets_stay_with_their_origin(ask, origins):
    there = origins(echo)
    here = origins(hop(302, None, there))
    names = ["authorization", "cookie", "cookie2", "proxy-authorization", "www-authenticate"]
    ask(here.url + "/from", headers=[header(n, "s") for n in names] + [header("keep", "k"),
                                                                       header("Host", "own")])
    assert all(here.seen[0].header(n) == "s" for n in names)
    assert not any(there.seen[0].header(n) for n in names)
    assert there.seen[0].header("keep") == "k"
    assert there.seen[0].header("host") == f"127.0.0.1:{there.port}"
    assert there.seen[0].header("referer") == here.url + "/"


def test_ten_redirects_and_no_more(ask, refuse, origins):
    def handle(x):
        left = int(x.target[1:])
        x.answer(302, f"location: /{left - 1}") if left else x.answer(body=b"here")
    o = origins(handle)
    assert body_of(ask(o.url + "/10")) == b"here"
    assert len(o.seen) == 11
    assert refuse(o.url + "/11") == (-32603, "http/request failed: too many redirects")
    assert len(o.seen) == 22


def test_redirects_that_are_not_followed(ask, refuse, origins):
    o = origins(hop(302, "ftp://x/"))
    assert refuse(o.url + "/from") == (
        -32603, "http/request failed: redirect target uses unsupported URL scheme: ftp")
    assert ask(o.url + "/from", redirectPolicy="stop")["status"] == 302
    for status, location in ((300, "/to"), (304, "/to"), (302, "http://[")):
        result = ask(origins(hop(status, location)).url + "/from")
        assert (result["status"], len(headers_of(result))) == (status, 2)


def test_a_redirect_does_not_wait_for_its_body(ask, origins):
    def handle(x):
        if x.target == "/from":
            x.send(b"HTTP/1.1 302 X\r\nlocation: /to\r\ncontent-length: 10\r\n\r\nabc")
            return not x.ended()
        return x.answer(body=b"here")
    assert body_of(ask(origins(handle).url + "/from")) == b"here"


class Early:
    """Answers a POST with a redirect before it has read the body; then reads it, or does not."""

    def __init__(self, reads):
        self.reads, self.seen = reads, []
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.sock.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        held = []
        while True:
            try:
                sock = self.sock.accept()[0]
                held.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                head = sock.recv(60, socket.MSG_WAITALL)
                self.seen.append(head.split(b"\r\n")[0].decode())
                if head.startswith(b"POST"):
                    sock.sendall(b"HTTP/1.1 303 X\r\nlocation: /to\r\ncontent-length: 0\r\n\r\n")
                else:
                    sock.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n"
                                 b"content-length: 4\r\n\r\nhere")
                while self.reads and len(sock.recv(1 << 20)) > 0:
                    pass
            except OSError:
                return


@pytest.mark.parametrize("reads", [False, True])
def test_a_redirect_may_come_before_the_body_is_sent(ask, reads):
    """The program neither sends on from a body that it has dropped, nor waits for the peer."""
    early = Early(reads)
    body = "QUJD" * (2 << 20)
    assert body_of(ask(early.url + "/from", method="POST", bodyBase64=body)) == b"here"
    early.sock.close()
    assert early.seen == ["POST /from HTTP/1.1", "GET /to HTTP/1.1"]


# Failures.


def send_fault(url):
    return -32603, f"http/request failed: error sending request for url ({url})"


BODY_FAULT = -32603, "failed to read http/request response body: error decoding response body"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://nope.invalid/"])
def test_nobody_answers(refuse, url):
    assert refuse(url) == send_fault(url)


@pytest.mark.parametrize("raw, after_head", [
    (b"", False), (b"garbage\r\n\r\n", False), (b"HTTP/1.1 20", False),
    (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", False),
    (b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n", False),
    (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1025 + b"\r\n", False),
    (b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 300000 + b"\r\n\r\n", False),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", True),
    (CHUNKED + b"3\r\nabc\r\nzz\r\n", True), (CHUNKED + b"3\r\nabc\r\n", True)])
def test_answers_that_are_none(refuse, origins, raw, after_head):
    def handle(x):
        x.send(raw)
        return False
    url = origins(handle).url + "/"
    assert refuse(url) == (BODY_FAULT if after_head else send_fault(url))


@pytest.mark.parametrize("fault", [
    "dead port", "no such name", "no answer", "broken body", "redirect to a dead port", "time limit"])
def test_a_failure_leaves_the_next_request_alone(web, origins, fault):
    def handle(x):
        if x.target == "/broken":
            x.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
            return False
        if x.target == "/moved":
            x.send(b"HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 3\r\n\r\nabc")
            return False
        if x.target == "/none":
            return False
        if x.target == "/silent":
            return not x.ended()
        return echo(x)
    o = origins(handle)
    url, more = {
        "dead port": ("http://127.0.0.1:1/", {}), "no such name": ("http://nope.invalid/", {}),
        "no answer": (o.url + "/none", {}), "broken body": (o.url + "/broken", {}),
        "redirect to a dead port": (o.url + "/moved", {}),
        "time limit": (o.url + "/silent", {"timeoutMs": 50})}[fault]
    client = web.client()
    for _ in range(3):
        client.error("http/request", params(url, **more))
        assert client.call("http/request", params(o.url + "/ok"))["status"] == 200
    client.close()


def test_a_time_limit_covers_everything(refuse, origins):
    o = origins(lambda x: not x.ended())
    assert refuse(o.url + "/", timeoutMs=50) == send_fault(o.url + "/")
    assert refuse(o.url, timeoutMs=0) == (
        -32603, "http/request failed: route-aware request timed out")
    o.wait_closed()

    def slow(x):
        x.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        return not x.ended()
    # The head may come late on a busy machine.
    body = origins(slow)
    assert refuse(body.url + "/", timeoutMs=2000) in (BODY_FAULT, send_fault(body.url + "/"))


def test_a_body_above_the_limit(refuse, origins):
    block = bytes(1 << 20)

    def handle(x):
        x.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(49):
            x.send(block)
        return False
    code, text = refuse(origins(handle).url)
    assert code == -32603 and text.startswith(
        "failed to read http/request response body: it is too large: limit is 49283072 bytes")

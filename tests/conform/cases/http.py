"""HTTP routes, the Origin rule and the checks of the upgrade request."""

import asyncio

from harness.case import case
from harness.http import GOOD, ask, response
from harness.peer import WAIT
from harness.websocket import WebSocket, frame, upgrade_request


def without(name):
    return "".join(h + "\r\n" for h in GOOD.split("\r\n") if h and not h.startswith(name + ":"))


def with_headers(count):
    return "".join(f"X{i}: a\r\n" for i in range(count))


REQUESTS = {f"{m} {path}": f"{m} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            for m in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
            for path in ("/", "/readyz", "/nope")}
REQUESTS.update({
    f"GET {path}": f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"
    for path in ("/readyz?x=1", "/readyz/", "/healthz", "/health", "/livez", "/metrics", "//",
                 "/READYZ", "/readyz#x", "*")})
REQUESTS.update({
    "POST with a body": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
    "upgrade": f"GET / HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade with query": f"GET /?a=b HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade absolute target": f"GET http://x/ HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade elsewhere": f"GET /nope HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade on readyz": f"GET /readyz HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade POST": f"POST / HTTP/1.1\r\n{GOOD}\r\n",
    "upgrade HTTP/1.0": f"GET / HTTP/1.0\r\n{GOOD}\r\n",
    "readyz HTTP/1.0": "GET /readyz HTTP/1.0\r\n\r\n",
    "readyz HTTP/1.0 keep-alive": "GET /readyz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "unknown HTTP/1.0 keep-alive": "GET /nope HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
    "readyz HTTP/1.0 close": "GET /readyz HTTP/1.0\r\nConnection: close\r\n\r\n",
    "readyz connection close": "GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n",
    "readyz without Host": "GET /readyz HTTP/1.1\r\n\r\n",
    "upgrade without Host": f"GET / HTTP/1.1\r\n{without('Host')}\r\n",
    "no Connection": f"GET / HTTP/1.1\r\n{without('Connection')}\r\n",
    "no Upgrade": f"GET / HTTP/1.1\r\n{without('Upgrade')}\r\n",
    "no version": f"GET / HTTP/1.1\r\n{without('Sec-WebSocket-Version')}\r\n",
    "no key": f"GET / HTTP/1.1\r\n{without('Sec-WebSocket-Key')}\r\n",
    "no key, HTTP/1.0": f"GET / HTTP/1.0\r\n{without('Sec-WebSocket-Key')}\r\n",
    "Connection keep-alive, Upgrade":
        f"GET / HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\n{without('Connection')}\r\n",
    "Connection notupgrade":
        f"GET / HTTP/1.1\r\nConnection: notupgrade\r\n{without('Connection')}\r\n",
    "Connection close": f"GET / HTTP/1.1\r\nConnection: close\r\n{without('Connection')}\r\n",
    "Upgrade upper case": f"GET / HTTP/1.1\r\nUpgrade: WEBSOCKET\r\n{without('Upgrade')}\r\n",
    "Upgrade h2c": f"GET / HTTP/1.1\r\nUpgrade: h2c\r\n{without('Upgrade')}\r\n",
    "Upgrade list": f"GET / HTTP/1.1\r\nUpgrade: websocket, foo\r\n{without('Upgrade')}\r\n",
    "version 8":
        f"GET / HTTP/1.1\r\nSec-WebSocket-Version: 8\r\n{without('Sec-WebSocket-Version')}\r\n",
    "short key": f"GET / HTTP/1.1\r\nSec-WebSocket-Key: abc\r\n{without('Sec-WebSocket-Key')}\r\n",
    "empty key": f"GET / HTTP/1.1\r\nSec-WebSocket-Key:\r\n{without('Sec-WebSocket-Key')}\r\n",
    "lower-case names": f"GET / HTTP/1.1\r\n{GOOD.lower()}\r\n",
    "subprotocol": f"GET / HTTP/1.1\r\n{GOOD}Sec-WebSocket-Protocol: foo\r\n\r\n",
    "extension": f"GET / HTTP/1.1\r\n{GOOD}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
    "authorization ignored": f"GET / HTTP/1.1\r\n{GOOD}Authorization: Bearer x\r\n\r\n",
    "Origin readyz": "GET /readyz HTTP/1.1\r\nOrigin: http://a\r\n\r\n",
    "Origin upgrade": f"GET / HTTP/1.1\r\n{GOOD}Origin: http://x\r\n\r\n",
    "Origin null": f"GET / HTTP/1.1\r\n{GOOD}Origin: null\r\n\r\n",
    "Origin empty": f"GET / HTTP/1.1\r\n{GOOD}Origin: \r\n\r\n",
    "Origin on an unknown path": "GET /nope HTTP/1.1\r\norigin: http://a\r\n\r\n",
    "Origin POST": "POST / HTTP/1.1\r\nORIGIN: x\r\nContent-Length: 0\r\n\r\n",
    "garbage": "\0\x01garbage\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "bad version": "GET / HTTP/3.7\r\n\r\n",
    "header without colon": "GET /readyz HTTP/1.1\r\nnonsense\r\n\r\n",
    "blank in header name": "GET /readyz HTTP/1.1\r\na b: c\r\n\r\n",
    "100 headers": f"GET /readyz HTTP/1.1\r\n{with_headers(100)}\r\n",
    "101 headers": f"GET /readyz HTTP/1.1\r\n{with_headers(101)}\r\n",
    "long target": f"GET /{'x' * 70000} HTTP/1.1\r\n\r\n",
    "header of 100 kB": f"GET /readyz HTTP/1.1\r\nX: {'x' * 100000}\r\n\r\n",
    "header of 600 kB": f"GET /readyz HTTP/1.1\r\nX: {'x' * 600000}\r\n\r\n",
    "long header": f"GET /readyz HTTP/1.1\r\nX: {'x' * 50000}\r\n\r\n",
    "bare LF": "GET /readyz HTTP/1.1\nHost: x\n\n",
    "empty line first": "\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
})


def add(name, request):
    @case(name)
    async def one(t):
        t.see("answer", await ask(t, request))


for _name, _request in REQUESTS.items():
    add(_name, _request)


@case("pipelined")
async def pipelined(t):
    reader, writer = await t.tcp()
    writer.write(b"GET /readyz HTTP/1.1\r\n\r\nGET /nope HTTP/1.1\r\n\r\n" + upgrade_request())
    t.see("answers", [await response(reader) for _ in range(3)])


@case("message-with-the-upgrade")
async def eager(t):
    """A client may send its first message before it saw the answer to the upgrade."""
    reader, writer = await t.tcp()
    writer.write(upgrade_request() + frame(1, '{"id":1,"method":"nope"}'))
    t.see("upgrade", (await response(reader))["status"])
    t.see("answer", (await WebSocket(reader, writer).read_frame())[2].decode())


@case("http2-preface")
async def http2(t):
    reader, writer = await t.tcp()
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5))
    first = await asyncio.wait_for(reader.readexactly(9), WAIT)
    t.see("answer", "HTTP/1" if first.startswith(b"HTTP/1") else "HTTP/2")


@case("request-in-pieces")
async def pieces(t):
    reader, writer = await t.tcp()
    for byte in b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n":
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    t.see("answer", await response(reader))

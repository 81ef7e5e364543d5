"""An HTTP server with fixed answers, for one case; it notes what it was sent."""

import asyncio
import contextlib


def answer(status, *headers, body=b""):
    lines = [f"HTTP/1.1 {status} X", *headers, f"content-length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


FIXED = {
    "/ok": answer(200, "x-a: 1", "Content-Type: text/plain", "X-A:  2 ", body=b"hello"),
    "/latin": answer(200, "x-bad: \xe9", "x-ok: yes", body=b"ok"),
    "/404": answer(404, body=b"nope"),
    "/204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "/reason": answer("299 Odd Reason"),
    "/gzip": answer(200, "content-encoding: gzip", body=b"abc"),
    "/trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: X-T\r\n\r\n"
                 b"3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
    "/interim": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + answer(200, body=b"ok"),
    "/until-end": b"HTTP/1.1 200 OK\r\n\r\nto the end",
    "/cookie": answer(200, "set-cookie: a=1", "set-cookie: __cf_bm=2"),
    "/loop": answer(302, "location: /loop"),
    "/ftp": answer(302, "location: ftp://x/"),
    "/none": answer(302, body=b"red"),
    "/bad-location": answer(302, "location: http://[", body=b"red"),
    "/300": answer(300, "location: /ok"),
    "/304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "/trunc": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
    "/bad-chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    "/garbage": b"this is no HTTP\r\n\r\n",
    "/nothing": b"",
}
ENDS = {"/until-end", "/trunc", "/bad-chunk", "/garbage", "/nothing"}
STALLS = {"/slow": b"", "/slow-body": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"}


class Origin:
    def __init__(self):
        self.seen = []
        self.writers = []
        self.other = None  # another origin, for redirects there

    async def start(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def close(self):
        self.server.close()
        for writer in self.writers:
            writer.close()

    def _answer(self, path, body):
        kind, _, rest = path[1:].partition("/")
        if kind in ("echo", "Echo"):
            return answer(200, body=body)
        if kind.isdigit() and rest:  # /302/here, /302/there: a redirect, perhaps elsewhere
            there = self.other.url if rest == "there" else ""
            return answer(int(kind), f"location: {there}/ok", body=b"red")
        if kind == "location":
            return answer(302, f"location: {rest}")
        return FIXED.get(path.partition("?")[0], answer(200, body=b"ok"))

    async def _serve(self, reader, writer):
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                first = await reader.readexactly(1)
                if first == b"\x16":  # TLS
                    break
                head = (first + await reader.readuntil(b"\r\n\r\n"))[:-4]
                lines = head.decode("utf-8", "replace").split("\r\n")
                length = [int(h.split(":")[1]) for h in lines[1:]
                          if h.lower().startswith("content-length:")]
                body = await reader.readexactly(length[0]) if length else b""
                self.seen.append([*(line.rstrip() for line in lines), *([body.decode("latin-1")] if body else [])])
                path = lines[0].split(" ")[1]
                if path in STALLS:
                    writer.write(STALLS[path])
                    await reader.read()
                    break
                writer.write(self._answer(path, body))
                if path in ENDS:
                    break
        with contextlib.suppress(ConnectionError):
            writer.close()

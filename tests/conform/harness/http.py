"""HTTP requests as raw text, and the answer to them."""

import asyncio
import re

from .peer import WAIT
from .websocket import KEY, PING, WebSocket, frame

GOOD = ("Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n")
DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\Z")


async def response(reader, method="GET"):
    """One response: status line, headers, body."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT)).decode("latin-1")
    status, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name] = "<date>" if name == "date" and DATE.match(value) else value
    size = 0 if method == "HEAD" else int(headers.get("content-length", 0))
    return {"status": status, "headers": headers,
            "body": (await reader.readexactly(size)).decode("latin-1")}


async def afterwards(reader, writer, answer):
    """Whether the connection lives on, shown by using it once more."""
    try:
        if " 101 " in answer["status"]:
            ws = WebSocket(reader, writer)
            ws.write(frame(PING, b"x"))
            return f"WebSocket, opcode {(await asyncio.wait_for(ws.read_frame(), WAIT))[0]}"
        writer.write(b"GET /readyz HTTP/1.1\r\n\r\n")
        return "HTTP, " + (await response(reader))["status"]
    except (asyncio.IncompleteReadError, ConnectionError):
        return "closed"


async def ask(t, request, server="plain"):
    reader, writer = await t.tcp(server)
    request = request.encode("latin-1") if isinstance(request, str) else request
    writer.write(request)
    try:
        answer = await response(reader, request.split(b" ", 1)[0].decode("latin-1"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return "closed without an answer"
    answer["afterwards"] = await afterwards(reader, writer, answer)
    return answer

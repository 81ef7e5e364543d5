"""A small MCP server over HTTP (streamable): one tool, which tells the length and the beginning of
what it is given. Its answers are JSON, or event streams."""

import asyncio
import json

from . import mcp_server


class McpHttp:
    def __init__(self):
        self.seen = []  # (HTTP method, MCP method)
        self.agents = set()  # of the fields `authorization`
        self._server = None

    async def listen(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        return self._server.sockets[0].getsockname()[1]

    def close(self):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                self.agents.add(fields.get("authorization"))
                writer.write(self._answer(head[0].split()[0], body))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    def _answer(self, method, body):
        message = json.loads(body) if method == "POST" else {}
        self.seen.append((method, message.get("method")))
        session = "mcp-session-id: s1\r\n"
        if method == "GET":
            return b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
        if method != "POST" or "id" not in message:
            return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"],
                           "result": mcp_server.answer(message)})
        if message["method"] != "tools/call":
            return (f"HTTP/1.1 200 OK\r\n{session}content-type: application/json\r\n"
                    f"content-length: {len(text)}\r\n\r\n{text}").encode()
        event = f"event: message\ndata: {text}\n\n"
        return (f"HTTP/1.1 200 OK\r\n{session}content-type: text/event-stream\r\n"
                f"transfer-encoding: chunked\r\n\r\n{len(event):x}\r\n{event}\r\n0\r\n\r\n").encode()

"""A bridge from MCP's streamable HTTP to servers on stdin and stdout, for suites that speak HTTP.

A client that says `initialize` gets a server of its own, and a session. Requests without a session
share one server; the bridge gives them ids of their own. Each request is answered with an event
stream: what the server sends until the answer, then the answer."""

import contextlib
import http.server
import itertools
import json
import queue
import subprocess
import threading
import urllib.parse
import uuid

MODERN = ("io.modelcontextprotocol/protocolVersion",
          "io.modelcontextprotocol/clientCapabilities")
STATUS = {-32601: 404, -32602: 400, -32022: 400}  # of an error, for requests without a session
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Upstream:
    """One server; `waiting` has the queue of each open request."""

    def __init__(self, start):
        self.process = start()
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.lock:
                if "method" not in message:
                    waiting = [self.waiting[message["id"]]] if message["id"] in self.waiting else []
                else:
                    waiting = self._listeners(message)
            for place in waiting:
                place.put(message)

    def _listeners(self, message):
        """A message that answers nothing goes to the request it is about, else to the newest."""
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        about = meta.get("io.modelcontextprotocol/subscriptionId")
        if about in self.waiting:
            return [self.waiting[about]]
        token = params.get("progressToken")
        places = [p for p in self.waiting.values() if token is not None and p.token == token]
        return places or list(self.waiting.values())[-1:]

    def send(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def open(self, message):
        """Sends a request under an id of ours; the place of what comes back."""
        place = queue.SimpleQueue.__new__(Place)
        number = next(self.numbers)
        place.token = ((message.get("params") or {}).get("_meta") or {}).get("progressToken")
        place.number, place.id = number, message["id"]
        with self.lock:
            self.waiting[number] = place
        self.send({**message, "id": number})
        return place

    def done(self, place):
        with self.lock:
            self.waiting.pop(place.number, None)

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Place(queue.SimpleQueue):
    """Where the messages of one request arrive."""

    token = number = id = None


class Bridge(http.server.ThreadingHTTPServer):
    """`start()` makes a server's process. `aliases` are tools that the suite calls: name to the
    arguments of a call of `shell`."""

    daemon_threads = True

    def __init__(self, start, aliases=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.start_upstream, self.aliases = start, aliases or {}
        self.sessions, self.shared = {}, Upstream(start)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        """Clients hang up as they like."""

    def close(self):
        self.shutdown()
        self.server_close()
        for upstream in [self.shared, *self.sessions.values()]:
            upstream.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, text, code=-32600, number=None):
        self.answer(status, json.dumps({"jsonrpc": "2.0", "id": number, "error": {
            "code": code, "message": text}}).encode(), Content_Type="application/json")

    def is_local(self):
        """Other names lead here by DNS rebinding."""
        origin = urllib.parse.urlsplit(self.headers.get("Origin") or "").netloc
        return all(name.rpartition(":")[0] in LOCAL or name in LOCAL
                   for name in (self.headers.get("Host") or "", origin) if name)

    # pylint: disable=invalid-name
    def do_GET(self):
        self.answer(405, Allow="POST, DELETE")

    def do_DELETE(self):
        upstream = self.server.sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        if upstream is None:
            self.error(404, "no such session")
            return
        upstream.close()
        self.answer(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.is_local():
            self.error(403, "this is not my name")
            return
        try:
            message = json.loads(body)
        except ValueError:
            self.error(400, "Parse error", -32700)
            return
        self.serve(message)

    def serve(self, message):
        params = message.get("params") or {}
        session = self.headers.get("Mcp-Session-Id")
        more = {}
        modern = any(key in (params.get("_meta") or {}) for key in MODERN)
        if modern:
            upstream = self.server.shared
        elif message.get("method") == "initialize":
            session = more["Mcp_Session_Id"] = uuid.uuid4().hex
            upstream = self.server.sessions[session] = Upstream(self.server.start_upstream)
        elif session in self.server.sessions:
            upstream = self.server.sessions[session]
        else:
            self.error(404 if session else 400, "no such session", number=message.get("id"))
            return
        if "method" in message and "id" in message:
            place = upstream.open(self.translated(message))
            first = place.get() if modern else None
            if modern and "error" in first:
                error = first["error"]
                self.answer(STATUS.get(error["code"], 200), json.dumps(
                    {**first, "id": message["id"]}).encode(), Content_Type="application/json")
            else:
                self.stream(place, first, more)
            upstream.done(place)
        else:
            upstream.send(message)
            self.answer(202)

    def translated(self, message):
        """A call of a tool of the suite as one of ours."""
        params = message.get("params") or {}
        alias = self.server.aliases.get(params.get("name"))
        if message["method"] != "tools/call" or alias is None:
            return message
        return {**message, "params": {**params, "name": "shell", "arguments": alias}}

    def stream(self, place, first, more):
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Cache-Control": "no-cache",
                            "Connection": "close", **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            while True:
                came, first = first or place.get(), None
                last = "method" not in came
                if last:
                    came["id"] = place.id
                self.wfile.write(b"event: message\ndata: " + json.dumps(came).encode() + b"\n\n")
                self.wfile.flush()
                if last:
                    break


def stdio(command, **more):
    """How a Bridge starts a server."""
    return lambda: subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, **more)

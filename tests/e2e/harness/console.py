"""A server with a console, and pages that look at it."""

import gzip
import json
import re

from .http import Http
from .rpc import Client, b64
from .waiting import until
from .ws import WebSocket, connect_tcp

LINK = re.compile(r"^console: http://(127\.0\.0\.1|\[::1\]):([0-9]+)/#([A-Za-z0-9_-]{43})$", re.M)

FILES = {
    "/": ("text/html; charset=utf-8", b"<!doctype html><title>page</title>"),
    "/app.js": ("text/javascript;charset=utf-8", b"document.title = 'x';\n" * 20_000),
    "/icon.svg": ("image/svg+xml", b"<svg/>"),
}


def write_page(directory, files=None):
    """Makes a directory for --console-page."""
    directory.mkdir(exist_ok=True)
    lines = []
    for number, (path, (kind, data)) in enumerate((files or FILES).items()):
        (directory / f"{number}.gz").write_bytes(gzip.compress(data, mtime=0))
        lines.append(f"{path} {kind} {number}.gz\n")
    (directory / "manifest").write_text("".join(lines))
    return directory


class Page(Client):
    """Somebody who looks at the console."""

    sampler = None

    def login(self, **params):
        result = self.call("console/login", params)
        self.secret = result["secret"]  # pylint: disable=attribute-defined-outside-init
        return result

    def file(self, data):
        """Sizes of terminals are kept in the view, between its events."""
        message = json.loads(data)
        if message.get("method") != "console/resized":
            return super().file(data)
        self.received += 1
        params = message["params"]
        view = self.views[params["attachId"]]
        assert set(params) == {"attachId", "processId", "seq", "size"}, params
        assert params["processId"] == view.name and params["seq"] >= view.seen, params
        view.sizes.append({"seq": params["seq"], **params["size"]})
        return message

    def attach(self, session, process, **params):
        name = process if isinstance(process, str) else process.name
        result = self.call("process/attach", {"sessionId": session, "processId": name, **params})
        assert set(result) == {"attachId", "sizes"}
        view = self.views[result["attachId"]]
        view.sizes = result["sizes"]
        return view

    def list(self, after=None):
        """All that has changed, put together from as many answers as it takes."""
        whole = {"sessions": {}, "processes": {}, "removed": [], "removedSessions": [],
                 "full": None}
        while True:
            part = self.call("console/list", {} if after is None else {"after": after})
            whole["full"] = part["full"] if whole["full"] is None else whole["full"]
            for row in part["sessions"]:
                whole["sessions"][row["sessionId"]] = row
            for row in part["processes"]:
                whole["processes"][row["sessionId"], row["processId"]] = row
            whole["removed"] += [tuple(pair) for pair in part["removed"]]
            whole["removedSessions"] += part["removedSessions"]
            after = whole["revision"] = part["revision"]
            if not part["more"]:
                return whole

    def row(self, process):
        """The row of a process, by its id."""
        name = process if isinstance(process, str) else process.name
        rows = [row for key, row in self.list()["processes"].items() if key[1] == name]
        assert len(rows) == 1, rows
        return rows[0]

    def of(self, process):
        """The params that name a process."""
        row = self.row(process)
        return {"sessionId": row["sessionId"], "processId": row["processId"]}

    def watch(self, process, **params):
        where = self.of(process)
        return self.attach(where["sessionId"], where["processId"], **params)

    def type(self, process, text, **params):
        return self.call("console/write", {**self.of(process), "chunk": b64(text), **params})

    def sync(self):
        self.call("console/resources", {"processes": []})


class Console:
    """A server with a console; `server` is that of the protocol."""

    def __init__(self, fleet, directory, *args, **options):
        page = write_page(directory / "page")
        env = {"EXEC_SERVER_LOG": "error"}
        self.server = fleet.start("--console", options.pop("url", "ws://127.0.0.1:0"),
                                  "--console-page", str(page), *args, quiet=False, env=env,
                                  **options)
        found = LINK.search(self.server.stderr())
        assert found, self.server.stderr()
        self.host, self.port, self.token = found[1], int(found[2]), found[3]
        self.authority = f"{self.host}:{self.port}"
        self.origin = f"http://{self.authority}"
        self.address = self.host.strip("[]"), self.port

    def websocket(self, host=None, origin=None, path="/ws", headers=(), **options):
        """An upgrade as a browser asks for it; origin "" leaves the header out."""
        origin = self.origin if origin is None else origin
        fields = [("Origin", origin)] if origin else []
        ws = WebSocket(self.address, path=path, host=host or self.authority,
                       headers=[*fields, *headers], **options)
        self.server.clients.append(ws)
        return ws

    def connect(self, **options):
        return Page(self.websocket(**options))

    def page(self, token=None, **options):
        """A page that has logged in, with the first token or a further one."""
        page = self.connect(**options)
        page.login(token=token or self.token)
        return page

    def http(self):
        http = Http(connect_tcp(self.address))
        self.server.clients.append(http)
        return http

    def ask(self, target, method="GET", host=None, headers=(), gzipped=True):
        """One request on a connection of its own."""
        http = self.http()
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.authority}"]
        if gzipped:
            lines.append("Accept-Encoding: gzip, deflate, br")
        lines += [f"{name}: {value}" for name, value in headers]
        http.send("\r\n".join(lines) + "\r\n\r\n")
        try:
            return http.read(method)
        finally:
            http.close()


def settled(page, process, state="closed"):
    """Waits until the row of a process is in a state."""
    until(lambda: page.row(process)["state"] == state, f"{process} {state}")
    return page.row(process)

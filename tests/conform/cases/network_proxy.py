"""networkProxy of process/start: what the command is given, what its proxy refuses and allows, whom
it asks, and what the client is told. No name but *.invalid and no address but loopback is used."""

import asyncio
import json
import re

from harness.case import case
from harness.peer import ABSENT

PROBE = r"""
import os, socket, struct, sys
def at(name): return os.environ[name].split("//")[1].split(":")
def dial(name): return socket.create_connection((at(name)[0], int(at(name)[1])), 60)
def all_of(s, data=b""):
    while True:
        head, _, body = data.partition(b"\r\n\r\n")
        length = [l[15:] for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")]
        if length and len(body) >= int(length[0]): return data
        try: more = s.recv(65536)
        except OSError: return data
        if not more: return data
        data += more
def told(data):
    head, _, body = data.decode("latin-1").partition("\r\n\r\n")
    lines = head.split("\r\n")
    kept = [l for l in lines[1:] if l.split(":")[0].lower() in ("content-type", "x-proxy-error")]
    return [lines[0].split(" ")[1] if " " in lines[0] else lines[0], sorted(kept), body]
def http(method, url, host=None, more="", body=""):
    s = dial("HTTP_PROXY")
    host = host or url.split("/")[2]
    s.sendall(f"{method} {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n{body}".encode())
    return told(all_of(s))
def connect(target, inside=""):
    s = dial("HTTPS_PROXY")
    s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    first = s.recv(65536)
    if b" 200 " not in first: return told(all_of(s, first))
    s.sendall(inside.encode())
    return ["tunnel", told(all_of(s))]
def socks(host, port, inside=""):
    s = dial("ALL_PROXY")
    s.sendall(b"\5\1\0")
    if s.recv(2, socket.MSG_WAITALL) != b"\5\0": return "no greeting"
    s.sendall(b"\5\1\0\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    answer = s.recv(2, socket.MSG_WAITALL)
    if answer != b"\5\0": return "refused"
    s.recv(8, socket.MSG_WAITALL)
    s.sendall(inside.encode())
    return ["tunnel", told(all_of(s))]
def variables():
    words = ("proxy", "codex_network", "electron")
    return sorted(f"{k}={v}" for k, v in os.environ.items() if any(w in k.lower() for w in words))
"""
# The reference looks every allowed name up, for long: none is allowed that does not exist.
LISTS = {"ok.invalid": "deny", "*.wild.invalid": "deny", "**.both.invalid": "deny",
         "b?d.invalid": "deny", "mid*e.invalid": "deny", "x.deny.invalid": "none",
         "127.0.0.1": "deny", "::1": "deny"}
ALLOWED = {"127.0.0.1": "allow", "no.invalid": "deny"}
CLOSE = "GET /in HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\n\r\n"


def launch(domains=None, timeout=ABSENT, outer=None, **members):
    proxy = {"enabled": True, "enableSocks5": True, "enableSocks5Udp": False,
             "allowUpstreamProxy": False, "dangerouslyAllowAllUnixSockets": False, "mode": "full",
             "domains": domains, "allowLocalBinding": False, **members}
    proxy = {k: v for k, v in proxy.items() if v is not ABSENT}
    made = {"proxy": proxy, "policyDecisionTimeoutMs": timeout, **(outer or {})}
    return {k: v for k, v in made.items() if v is not ABSENT}


class Network:
    """A connection, a server on loopback, and one process for each label."""

    def __init__(self, t, server):
        self.t = t
        self.server = server
        self.port = server.sockets[0].getsockname()[1]
        self.answers = {}  # by host: what the client answers

    @classmethod
    async def start(cls, t):
        async def serve(reader, writer):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                line = head.split(b"\r\n")[0]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: %d\r\n"
                             b"Connection: close\r\n\r\n%s" % (len(line), line))
                await writer.drain()
            except (asyncio.IncompleteReadError, OSError):
                pass
            writer.close()
        self = cls(t, await asyncio.start_server(serve, "127.0.0.1", 0))
        self.c = await t.connect()
        return self

    def mask(self, value):
        text = json.dumps(value).replace(f":{self.port}", ":PORT")
        text = text.replace(f'"port": {self.port}', '"port": 1').replace(
            f'\\"port\\":{self.port}', '\\"port\\":1')
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text)
        return json.loads(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:N", text))

    async def attack(self, label, policy, *attacks, process_id=None):
        """Runs the attacks one after another; sees output, questions and decisions."""
        mark = len(self.c.notes)
        code = PROBE + "".join(f"print({a}, flush=True)\n" for a in attacks)
        code = code.replace("PORT", str(self.port))
        name = label if process_id is None else process_id
        params = {"processId": name, "argv": ["/usr/bin/python3", "-c", code], "cwd": "file:///",
                  "env": {"PATH": "/usr/bin:/bin"}, "tty": False, "arg0": None,
                  "networkProxy": policy}
        answer = await self.c.call("process/start", params)
        if isinstance(answer, str):
            self.t.see(label, answer)
            return
        handled = set()

        def answer_all():
            for note in self.c.notes[mark:]:
                if note["method"] == "network/policyRequest" and note["id"] not in handled:
                    handled.add(note["id"])
                    reply = self.answers.get(note["params"]["request"]["host"])
                    if reply is not None:
                        self.c.send(json.dumps({"id": note["id"], **reply},
                                               separators=(",", ":")))
            return any(n["method"] == "process/closed" and n["params"]["processId"] == name
                       for n in self.c.notes[mark:])
        await self.c.until(answer_all)
        self.t.see(label, self.told(mark, name))

    def told(self, mark, name):
        import base64  # pylint: disable=import-outside-toplevel
        notes = self.c.notes[mark:]

        def of(method):
            return [n["params"] for n in notes
                    if n["method"] == method and n["params"]["processId"] == name]
        chunks = sorted((p["seq"], p["stream"], base64.b64decode(p["chunk"]).decode())
                        for p in of("process/output"))
        return self.mask({
            "stdout": "".join(c for _, s, c in chunks if s == "stdout").splitlines(),
            "stderr": "".join(c for _, s, c in chunks if s == "stderr"),
            "asked": of("network/policyRequest"), "decided": of("network/policyDecision")})

    def close(self):
        self.server.close()


def network_case(name):
    def register(function):
        async def run(t):
            n = await Network.start(t)
            try:
                await function(n)
            finally:
                n.close()
        return case(name)(run)
    return register


@network_case("variables")
async def variables(n):
    for label, members in (("plain", {}), ("local", {"allowLocalBinding": True}),
                           ("no socks", {"enableSocks5": False})):
        await n.attack(label, launch(**members), "variables()")


@network_case("lists")
async def lists(n):
    hosts = ("ok.invalid", "OK.Invalid", "ok.invalid.", "a.ok.invalid", "a.wild.invalid",
             "a.b.wild.invalid", "wild.invalid", "evil-wild.invalid", "both.invalid",
             "a.both.invalid", "evilboth.invalid", "bad.invalid", "baad.invalid", "middle.invalid",
             "x.deny.invalid", "other.invalid", "127.0.0.1", "127.0.0.2")
    await n.attack("http", launch(LISTS), *[f"http('GET', 'http://{h}/')" for h in hosts])
    await n.attack("connect", launch(LISTS), *[f"connect('{h}:443')" for h in hosts])
    await n.attack("socks", launch(LISTS), *[f"socks('{h}', 80)" for h in hosts])
    await n.attack("nothing", launch(None), "http('GET', 'http://ok.invalid/')")
    await n.attack("everything", launch({"*": "allow", "no.invalid": "deny"}),
                   "http('GET', 'http://no.invalid/')", "http('GET', 'http://127.0.0.1/')",
                   "http('GET', 'http://localhost/')", "http('GET', 'http://10.0.0.1/')",
                   "http('GET', 'http://169.254.169.254/')")


@network_case("open-way")
async def open_way(n):
    await n.attack("allowed literal", launch(ALLOWED), "http('GET', 'http://127.0.0.1:PORT/a?b')",
                   f"connect('127.0.0.1:PORT', {CLOSE!r})", f"socks('127.0.0.1', PORT, {CLOSE!r})")
    await n.attack("local", launch({"*": "allow"}, allowLocalBinding=True),
                   "http('GET', 'http://127.0.0.1:PORT/')",
                   f"connect('127.0.0.1:PORT', {CLOSE!r})")
    await n.attack("body", launch(ALLOWED), "http('POST', 'http://127.0.0.1:PORT/', "
                   "more='Content-Length: 3\\r\\n', body='abc')")


@network_case("limited")
async def limited(n):
    policy = launch({**ALLOWED}, mode="limited")
    await n.attack("methods", policy, *[f"http('{m}', 'http://127.0.0.1:PORT/')"
                                        for m in ("GET", "OPTIONS", "DELETE", "PUT", "x")],
                   "http('POST', 'http://other.invalid/')")
    await n.attack("tunnels", policy, f"connect('127.0.0.1:PORT', {CLOSE!r})",
                   f"socks('127.0.0.1', PORT, {CLOSE!r})", "connect('other.invalid:443')")


@network_case("decider")
async def decider(n):
    def decide(kind, **more):
        return {"result": {"decision": {"type": kind, **more}}}
    n.answers = {
        "no.other": decide("deny", reason="user said no"), "ask.other": decide("ask", reason="why"),
        "error.other": {"error": {"code": -32601, "message": "nope"}},
        "odd.other": {"result": {"decision": {"type": "maybe"}}}, "null.other": {"result": None},
        "long.other": decide("deny", reason="x" * 1025),
        "control.other": decide("deny", reason="a\nb"), "none.other": decide("deny"),
        "127.0.0.1": decide("allow")}
    policy = launch({"ok.invalid": "allow", "no.invalid": "deny"}, 60000)
    await n.attack("answers", policy, *[f"http('GET', 'http://{host}/')" for host in n.answers])
    await n.attack("tunnels", policy, "connect('no.other:443')", "socks('ask.other', 80)")
    await n.attack("not asked", policy, "http('GET', 'http://no.invalid/')",
                   "http('GET', 'http://localhost/')")
    await n.attack("review", launch({"*.other": "allow"}, 60000, reviewDomains=["no.other"]),
                   "http('GET', 'http://no.other/')")
    await n.attack("review alone", launch({"no.other": "allow"}, reviewDomains=["no.other"]),
                   "http('GET', 'http://no.other/')")


@network_case("params")
async def params(n):
    good = launch(ALLOWED)
    rows = {"not enabled": launch(enabled=False), "null": None, "text": "x", "empty": {},
            "no proxy": {"policyDecisionTimeoutMs": 1}, "timeout 0": launch(timeout=0),
            "timeout text": launch(timeout="1"), "timeout null": launch(timeout=None),
            "timeout negative": launch(timeout=-1), "mode": launch(mode="none"),
            "domains list": launch([]), "permission": launch({"x": "maybe"}),
            "sockets": launch(unixSockets={"/x": "allow"}),
            "sockets none": launch(unixSockets={"/x": "none"}),
            "review text": launch(reviewDomains="x"), "review null": launch(reviewDomains=None),
            "audit": launch(outer={"auditMetadata": {"model": "m", "slug": None, "other": 1}}),
            "audit number": launch(outer={"auditMetadata": {"model": 1}}),
            "ids": launch(outer={"environmentId": "e", "executionId": None}),
            "id number": launch(outer={"environmentId": 1}), "unknown": launch(other=1),
            "unknown outside": launch(outer={"other": 1})}
    for name in ("enabled", "enableSocks5", "enableSocks5Udp", "allowUpstreamProxy",
                 "dangerouslyAllowAllUnixSockets", "mode", "allowLocalBinding", "domains"):
        rows[f"without {name}"] = launch(**{name: ABSENT})
        rows[f"{name} number"] = launch(**{name: 1})
    for pattern in ("", "*", "*.", "**.", "***.x", "a b", "http://x", "x/y", "x:80", "[::1]", "::1",
                    "[x]", "[*]", "x.", "1.2.3.4", "é.x", "*.é", "a*b", "a?b", "x@y"):
        for permission in ("allow", "deny"):
            rows[f"{permission} {pattern!r}"] = launch({pattern: permission})
    for label, policy in rows.items():
        await n.attack(label, policy, "'started'")
    for label, name in (("no id", ""), ("a long id", "i" * 257), ("the longest id", "i" * 256)):
        await n.attack(label, launch(ALLOWED, 1000), "'started'", process_id=name)
        await n.attack(f"{label}, not asked", good, "'started'", process_id=name + "n"[:len(name)])

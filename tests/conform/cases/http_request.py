"""http/request: what is sent to an HTTP server on loopback, and what the client hears."""

import base64
import json

from harness.case import case
from harness.origin import Origin
from harness.peer import ABSENT, b64

DELTA = "http/request/bodyDelta"


class Web:
    """A connection, two origins, and the ports masked in all that is seen."""

    def __init__(self, t):
        self.t = t
        self.unordered = False

    async def start(self, server="plain"):
        self.here, self.there = await Origin().start(), await Origin().start()
        self.here.other = self.there
        self.c = await self.t.connect(server)
        return self

    def mask(self, value):
        text = json.dumps(value)
        for port, name in ((self.here.port, "<here>"), (self.there.port, "<there>")):
            text = text.replace(f":{port}", f":{name}")
        return json.loads(text)

    async def ask(self, label, path="/ok", method="GET", **more):
        """Sees the answer and what the origins were sent for it."""
        params = {"method": method, "url": self.here.url + path, "requestId": label, **more}
        params = {k: v for k, v in params.items() if v is not ABSENT}
        self.here.seen.clear()
        self.there.seen.clear()
        got = await self.c.call("http/request", params)
        # A removed field of the reference leaves its place to the last one: an accident.
        seen = [[r[0], *(sorted(r[1:]) if self.unordered else r[1:])]
                for r in self.here.seen + self.there.seen]
        self.t.see(label, self.mask({"answer": got, "sent": seen}))
        return got

    def deltas(self, name):
        return [n["params"] for n in self.c.notes
                if n["method"] == DELTA and n["params"]["requestId"] == name]

    async def stream(self, label, path, name=None, **more):
        """Like ask(), with the whole stream: its body, its numbers and its last frame."""
        name = label if name is None else name
        mark = len(self.c.notes)
        got = await self.ask(label, path, requestId=name, streamResponse=True, **more)
        if isinstance(got, str):
            return
        await self.c.until(lambda: any(
            n["params"].get("done") for n in self.c.notes[mark:] if n["method"] == DELTA))
        frames = [n["params"] for n in self.c.notes[mark:] if n["method"] == DELTA]
        body = b"".join(base64.b64decode(f["deltaBase64"]) for f in frames)
        self.t.see(f"{label}: stream", {
            "body": body.decode() if len(body) < 100 else len(body), "last": {
                k: v for k, v in frames[-1].items() if k != "seq"},
            "members": list(frames[0]),
            "numbered": [f["seq"] for f in frames] == list(range(1, len(frames) + 1)),
            "data": all(f["deltaBase64"] and not f["done"] and f["error"] is None
                        for f in frames[:-1])})

    def close(self):
        self.here.close()
        self.there.close()


def header(name, value, variable=ABSENT):
    made = {"name": name, "value": value, "valueEnvVar": variable}
    return {k: v for k, v in made.items() if v is not ABSENT}


def web_case(name):
    def register(function):
        async def run(t):
            web = await Web(t).start()
            try:
                await function(web)
            finally:
                web.close()
        return case(name)(run)
    return register


@case("before-initialized")
async def before_initialized(t):
    c = await t.open()
    ask = {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r"}
    t.see("before initialize", await c.call("http/request", ask))
    await c.call("initialize", {"clientName": "x"})
    t.see("before initialized", await c.call("http/request", ask))


@web_case("answers")
async def answers(w):
    for path in ("/ok", "/latin", "/404", "/204", "/reason", "/gzip", "/trailers", "/interim",
                 "/until-end", "/cookie", "/ok?a=b"):
        await w.ask(path, path)
    await w.ask("after cookies")
    await w.ask("head", method="HEAD")


@web_case("methods")
async def methods(w):
    for method in ("get", "PROPFIND", "DELETE", "OPTIONS", "x!#$%&'*+-.^_`|~1", "", "GE T", "a/b",
                   "é", "PUT\n"):
        await w.ask(method, method=method)


@web_case("urls")
async def urls(w):
    host = f"127.0.0.1:{w.here.port}"
    for url in ("/ok", "", "ok", "//127.0.0.1/", "ftp://x/", "file:///etc/passwd", "FTP://x", "a:b",
                "mailto:x@y", "http://", "http:///", "http://:80/", "http://[", "http://[::g]/",
                "http://1.2.3.4.5/", "http://256.1.1.1/", "http://a b/", "http://a:b/",
                "http://a:65536/", "http://a:99999999999/", "http://a%00b/", "ws://x/",
                "http://nope.invalid/", "http://127.0.0.1:1/", "http://u:p@127.0.0.1:1/a?b=c"):
        await w.ask(url, url=url)
    for url in (f"http://{host}/ok#frag", f"HTTP://{host}/A/../ok", f"http:{host}/ok",
                f"http:\\\\{host}\\ok", f" http://{host}/ok\n", f"http://{host}",
                f"http://{host}?q", f"http://{host}/a b/é?q=x y&z=é", f"http://{host}/%41%zz/\"<>`",
                f"http://{host}/?'\"<>`{{}}", f"http://{host}/a/%2e%2E/b/./c/..", f"http://{host}/..",
                f"http://user:pa%40ss@{host}/ok", f"http://user@{host}/ok", f"http://:p@{host}/ok",
                f"http://a@b:c@{host}/ok", f"http://0x7f.1:{w.here.port}/ok",
                f"http://{host}/a\tb", f"http://{host}//a//b/"):
        await w.ask(url.replace(str(w.here.port), "<here>"), url=url)


@web_case("bodies")
async def bodies(w):
    await w.ask("POST", "/echo", "POST", bodyBase64=b64("hello=1"))
    await w.ask("POST empty", "/echo", "POST", bodyBase64="")
    await w.ask("POST null", "/echo", "POST", bodyBase64=None)
    await w.ask("POST absent", "/echo", "POST")
    await w.ask("GET", "/echo", "GET", bodyBase64=b64("xx"))
    await w.ask("PUT typed", "/echo", "PUT", bodyBase64=b64("xx"),
                headers=[header("Content-Type", "a/b")])
    await w.ask("length of its own", "/echo", "POST", bodyBase64=b64("abc"),
                headers=[header("X", "1"), header("Content-Length", "3"), header("Y", "2")])
    await w.ask("bad", "/echo", "GET", bodyBase64="!!!")
    await w.ask("bad padding", "/echo", "GET", bodyBase64="YQ")


@web_case("headers")
async def headers(w):
    lists = {
        "order": [header("X-One", "1"), header("Accept", "a/b"), header("x-one", "2"),
                  header("User-Agent", "ua")],
        "host": [header("Host", "example.test")],
        "bad name": [header("bad name", "1")],
        "empty name": [header("", "1")],
        "bad value": [header("x", "a\nb")],
        "bad value NUL": [header("x", "a\0b")],
        "bad value DEL": [header("X-Name", "a\x7fb")],
        "tab": [header("x", "a\tb")],
        "utf8": [header("x-u", "é")],
        "empty value": [header("x-e", ""), header("y", "1")],
        "variable": [header("Authorization", "Bearer ", "FOO")],
        "variable null": [header("x", "v", None)],
        "variable missing": [header("Authorization", "Bearer ", "NOPE_X")],
        "variable empty": [header("Authorization", "Bearer ", "EMPTY")],
        "variable denied": [header("Authorization", "", "openai_api_key")],
        "variable denied and set": [header("x", "", "OPENAI_IDENTITY_TOKEN_FILE")],
        "bad name and variable": [header("a b", "", "NOPE_X")],
        "authorization": [header("Authorization", "Mine")],
        "bad entries": [{"name": "x"}],
        "bad entry": [1],
        "no list": {},
        "null": None,
    }
    for label, listed in lists.items():
        await w.ask(label, headers=listed)
    w.unordered = True
    await w.ask("connection", headers=[header("Connection", "close"),
                                       header("Transfer-Encoding", "chunked")])
    await w.ask("user info and header", url=w.here.url.replace("//", "//u:p@") + "/ok",
                headers=[header("Authorization", "Mine")])


@web_case("redirects")
async def redirects(w):
    w.unordered = True
    sent = [header("Content-Type", "text/plain"), header("Authorization", "s"),
            header("Cookie", "k=v"), header("X-Keep", "1"), header("Host", "own.test"),
            header("Referer", "http://before/"), header("Content-Language", "en"),
            header("Proxy-Authorization", "p"), header("WWW-Authenticate", "w")]
    for code in (301, 302, 303, 307, 308):
        for method in ("GET", "POST", "PUT", "HEAD"):
            for place in ("here", "there"):
                body = {} if method in ("GET", "HEAD") else {"bodyBase64": b64("abc")}
                await w.ask(f"{code} {method} {place}", f"/{code}/{place}?x=1", method,
                            headers=sent, **body)
    for path in ("/loop", "/ftp", "/none", "/bad-location", "/300", "/304", "/300/here",
                 "/305/here", "/location/../up", "/location/?q", "/location/x#frag",
                 "/location/\\\\evil"):
        await w.ask(path, path)
    await w.ask("log in", f"/location/http://u:p@127.0.0.1:{w.here.port}/ok")
    await w.ask("user info of the first", "/302/here",
                url=w.here.url.replace("//", "//u:p@") + "/302/here")
    await w.ask("stop", "/302/here", redirectPolicy="stop")
    await w.ask("follow", "/302/here", redirectPolicy="follow")
    await w.ask("to a dead port", "/location/http://127.0.0.1:1/dead")
    for policy in ("FOLLOW", None, 1, {}, "error"):
        await w.ask(f"policy {policy}", redirectPolicy=policy)


@web_case("failures")
async def failures(w):
    for path in ("/trunc", "/bad-chunk", "/garbage", "/nothing"):
        await w.ask(path, path)
    await w.ask("https to plain", url=w.here.url.replace("http:", "https:") + "/ok")
    await w.ask("timeout 0", timeoutMs=0)
    await w.ask("timeout 0, bad method", method="", timeoutMs=0)
    await w.ask("timeout", "/slow", timeoutMs=300)
    await w.ask("timeout in the body", "/slow-body", timeoutMs=300)
    for value in (-1, 1.5, "1", None, 18446744073709551615, 18446744073709551616):
        await w.ask(f"timeoutMs {value}", timeoutMs=value)


@web_case("params")
async def params(w):
    good = {"method": "GET", "url": w.here.url + "/ok", "requestId": "r"}
    for name in good:
        w.t.see(f"without {name}", w.mask(await w.c.call(
            "http/request", {k: v for k, v in good.items() if k != name})))
        for value in (None, 1, {}):
            w.t.see(f"{name} {value}", w.mask(
                await w.c.call("http/request", {**good, name: value})))
    for name, value in (("streamResponse", None), ("streamResponse", 1), ("zzz", 1)):
        w.t.see(f"{name} {value}", w.mask(await w.c.call("http/request", {**good, name: value})))
    for label, bad in {"method and url": {"method": "", "url": "x"},
                       "url and headers": {"url": "x", "headers": [header("a b", "1")]},
                       "scheme and headers": {"url": "a:b", "headers": [header("a b", "1")]},
                       "headers and body": {"headers": [header("a b", "1")], "bodyBase64": "!"},
                       "body and policy": {"bodyBase64": "!", "redirectPolicy": "x"}}.items():
        w.t.see(label, w.mask(await w.c.call("http/request", {**good, **bad})))
    w.t.see("nothing", await w.c.call("http/request"))


@web_case("streams")
async def streams(w):
    for path in ("/ok", "/204", "/404", "/302/here", "/trunc", "/bad-chunk", "/until-end",
                 "/trailers"):
        await w.stream(path, path)
    await w.stream("timeout", "/slow-body", timeoutMs=300)
    await w.stream("empty name", "/ok", "")
    await w.stream("refused", "", url="http://127.0.0.1:1/")
    w.t.see("the name is free again", len(w.deltas("")) > 0)


@web_case("active-name")
async def active_name(w):
    await w.ask("first", "/slow-body", requestId="dup", streamResponse=True)
    await w.c.until(lambda: w.deltas("dup"))
    await w.ask("second", requestId="dup", streamResponse=True)
    await w.ask("buffered", requestId="dup")
    w.t.see("status", await w.c.call("environment/status"))

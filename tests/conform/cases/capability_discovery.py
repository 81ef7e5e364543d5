"""capabilityRoots/discoverV1: what is found below a root, limits, warnings, the sandbox."""

import json
import os

from harness.case import case
from harness.peer import ABSENT

METHOD = "capabilityRoots/discoverV1"
SKILL = "---\nname: n\ndescription: d\n---\n"
CODEX, CLAUDE, CURSOR = (f".{name}-plugin/plugin.json" for name in ("codex", "claude", "cursor"))


class Box:
    def __init__(self, t, c):
        self.t, self.c = t, c

    def tree(self, files):
        for name, content in files.items():
            self.t.file(name, content)

    async def ask(self, label, *roots, **more):
        asked = [{"id": f"id {n}", "path": f"file://{self.t.dir}/{r}" if r[:1] != "/" else
                  f"file://{r}", **more} for n, r in enumerate(roots)]
        answer = shorten(await self.c.call(METHOD, {"roots": asked}))
        if isinstance(answer, dict):
            answer = dict(zip(roots, answer["roots"]))
        self.t.see(label, answer)


def shorten(value):
    """Long texts and lists: their lengths."""
    if isinstance(value, dict):
        return {k: shorten(v) for k, v in value.items()}
    if isinstance(value, list):
        return [len(value), shorten(value[0])] if len(value) > 40 else [shorten(v) for v in value]
    return f"{len(value)} {value[:20]}" if isinstance(value, str) and len(value) > 1000 else value


def box_case(name, slow=False):
    def register(function):
        async def run(t):
            await function(Box(t, await t.connect()))
        return case(name, slow)(run)
    return register


@case("before-initialized")
async def before_initialized(t):
    c = await t.open()
    for method, params in ((METHOD, {"roots": []}), ("capabilities/discoverV2",
                                                     {"cwd": "file:///"})):
        t.see(f"{method} before initialize", await c.call(method, params))
    await c.call("initialize", {"clientName": "x"})
    for method, params in ((METHOD, {"roots": []}), ("capabilities/discoverV2",
                                                     {"cwd": "file:///"})):
        t.see(f"{method} before initialized", await c.call(method, params))


@box_case("params")
async def params(b):
    good = {"id": "a", "path": "file:///nope"}
    for value in (ABSENT, None, 5, "x", [], {}, [5], [None], [[]], [{}], [good, 5], [good, good]):
        shown = "absent" if value is ABSENT else json.dumps(value)
        sent = {} if value is ABSENT else {"roots": value}
        b.t.see(f"roots {shown}", await b.c.call(METHOD, sent))
    for field in ("id", "path", "sandbox"):
        for value in (ABSENT, None, 5, "", "x", [], {}, True):
            root = {k: v for k, v in {**good, field: value}.items() if v is not ABSENT}
            shown = "absent" if value is ABSENT else json.dumps(value)
            b.t.see(f"{field} {shown}", await b.c.call(METHOD, {"roots": [root]}))
    for path in ("file://host/x", "file:///C:/x", "http://x/", "file:///a%00b", "file:///",
                 "file:///nope/../etc/passwd", "file:///etc/passwd/", "file:///a%20b", "file:///é",
                 "file:///etc/passwd/x"):
        answer = await b.c.call(METHOD, {"roots": [{**good, "path": path}]})
        if path != "file:///":
            b.t.see(f"path {path}", answer)
    for n in (128, 129):
        answer = await b.c.call(METHOD, {"roots": [{**good, "id": str(i)} for i in range(n)]})
        b.t.see(f"{n} roots", [r["id"] for r in answer["roots"]]
                if isinstance(answer, dict) else answer)
    b.t.see("129 bad roots", await b.c.call(METHOD, {"roots": [5] * 129}))
    b.t.see("unknown member", await b.c.call(METHOD, {"roots": [{**good, "zz": 1}], "zz": 1}))
    b.t.see("null", await b.c.call(METHOD, None))


@box_case("roots")
async def roots(b):
    b.tree({"r/SKILL.md": SKILL, "file": "x", "other/x": "", "a b/ü/SKILL.md": SKILL,
            "empty/x": ""})
    os.symlink("r", b.t.dir + "/link")
    os.symlink("file", b.t.dir + "/to-file")
    os.symlink("nowhere", b.t.dir + "/dangling")
    os.symlink("loop", b.t.dir + "/loop")
    os.mkfifo(b.t.dir + "/fifo")
    await b.ask("kinds", "r", "file", "other", "link", "to-file", "dangling", "loop", "fifo",
                "none", "r/", "other/../r", "a b", "a%20b", "empty", "file/x")


@box_case("manifests")
async def manifests(b):
    names = (CODEX, CLAUDE, CURSOR)
    for mask in range(8):
        b.tree({f"m{mask}/{name}": f'{{"name":"{i}"}}' for i, name in enumerate(names)
                if mask >> i & 1})
        b.t.file(f"m{mask}/.mcp.json", "mcp")
    await b.ask("which", *(f"m{mask}" for mask in range(8)))
    for i, text in enumerate(('', '{', '[]', '5', 'null', '{"name":5}', '{"name":""}', b'\xff',
                              '{"name":"a","name":"b"}', '{"mcpServers":{},"mcpServers":"./x"}')):
        b.t.file(f"bad{i}/{CODEX}", text)
        b.t.file(f"bad{i}/{CLAUDE}", '{"name":"claude"}')
        b.t.file(f"bad{i}/.mcp.json", "mcp")
        b.t.file(f"bad{i}/x", "x")
    await b.ask("bad", *(f"bad{i}" for i in range(10)))
    twice = ('{"x":1,"x":2,"mcpServers":"./x"}', '{"apps":"./x","apps":"./x","mcpServers":"./x"}',
             '{"version":1,"version":2,"apps":"x"}', '["./x","./x"]', '["./x"]', '["./x","./x","./x"]',
             '[null,"./x"]', '[{},5]', '{"name":1,"name":2,"apps":5,"mcpServers":[]}')
    for i, text in enumerate(twice):
        b.tree({f"twice{i}/{CODEX}": text, f"twice{i}/.mcp.json": "mcp", f"twice{i}/.app.json": "app",
                f"twice{i}/x": "x"})
    await b.ask("twice", *(f"twice{i}" for i in range(len(twice))))
    os.makedirs(b.t.dir + "/dir/" + CODEX)
    b.t.file(f"dir/{CLAUDE}", "{}")
    os.makedirs(b.t.dir + "/to/.codex-plugin")
    os.symlink("../real.json", b.t.dir + "/to/" + CODEX)
    b.t.file("to/real.json", '{"name":"linked"}')
    os.makedirs(b.t.dir + "/pipe/.codex-plugin")
    os.mkfifo(b.t.dir + "/pipe/" + CODEX)
    os.makedirs(b.t.dir + "/dangling/.codex-plugin")
    os.symlink("../none", b.t.dir + "/dangling/" + CODEX)
    os.makedirs(b.t.dir + "/loop/.codex-plugin")
    os.symlink("plugin.json", b.t.dir + "/loop/" + CODEX)
    b.t.file("notdir/.codex-plugin", "x")
    await b.ask("kinds", "dir", "to", "pipe", "dangling", "loop", "notdir")


DECLARED = ["./x.json", "x.json", "../x.json", "./../x.json", "./", "", "./sub/x.json", "/etc/passwd",
            "./sub/../x.json", "./sub\\x.json", "./a..b", "./..", "./none", "./sub", ".//x.json",
            "././x.json", "./x.json?a#b", "./%2e%2e/x", "./a%20b", "./a b", "./é", "./\u0001",
            "./x.json/", {}, {"a": 1}, [], ["./x.json"], None, 5, True]


@box_case("declared")
async def declared(b):
    for field in ("mcpServers", "apps", "mcp_servers", "skills"):
        names = []
        for i, value in enumerate(DECLARED):
            root = f"{field}{i}"
            b.tree({f"{root}/{CODEX}": json.dumps({field: value}), f"{root}/x.json": "x",
                    f"{root}/.mcp.json": "default", f"{root}/.app.json": "app",
                    f"{root}/sub/x.json": "sub", f"{root}/a b": "a b", f"{root}/é": "é",
                    f"{root}/a%20b": "percent", f"{root}/a..b": "dots", f"{root}/sub\\x.json": "bs"})
            names.append(root)
        await b.ask(field, *names)


@box_case("nested")
async def nested(b):
    b.tree({"o/" + CLAUDE: '{"name":"outer"}', "o/mid/x": "", "o/mid/in/SKILL.md": SKILL,
            "o/p1/" + CODEX: '{"name":"p1","mcpServers":"bad"}', "o/p1/" + CLAUDE: '{"name":"c"}',
            "o/p2/" + CURSOR: "{", "o/p2/" + CLAUDE: b"\xff", "o/p1/s/SKILL.md": SKILL,
            "o/p1/deep/" + CODEX: "{}", "o/p1/deep/skills/a/SKILL.md": SKILL, "o/.mcp.json": "x",
            "o/plugin.json": "x", "o/x/.other-plugin/plugin.json": "{}",
            "o/.codex-plugin/in/" + CODEX: "{}"})
    await b.ask("roots", "o", "o/mid", "o/mid/in", "o/p1", "o/p2", "o/p1/s", "o/x", "o/p1/deep/skills",
                "o/.claude-plugin", "o/p1/.codex-plugin")


@box_case("skills")
async def skills(b):
    meta = "agents/openai.yaml"
    b.tree({"s/b/SKILL.md": SKILL, "s/b/" + meta: "x: 1", "s/a/SKILL.md": "no front matter",
            "s/a/agents/openai.yml": "x", "s/.hidden/SKILL.md": "h", "s/SKILL.md": "root",
            "s/.git/x/SKILL.md": "git", "s/c/skill.md": "lower", "s/c/SKILL.md.bak": "x",
            "s/utf/SKILL.md": b"a\xffb", "s/cut/SKILL.md": b"a\xe2\x82", "s/nul/SKILL.md": "a\0b",
            "s/bom/SKILL.md": "\ufeff---\n", "s/empty/SKILL.md": "", "s/meta/SKILL.md": "m",
            "s/meta/" + meta: b"\xff", "s/B/SKILL.md": "B", "s/é/SKILL.md": "é",
            "s/a b/SKILL.md": "space", "s/%41/SKILL.md": "percent", "s/a-/SKILL.md": "dash",
            "s/node_modules/x/SKILL.md": "nm"})
    os.makedirs(b.t.dir + "/s/dir/SKILL.md/SKILL.md")
    os.makedirs(b.t.dir + "/s/links")
    os.symlink("../b/SKILL.md", b.t.dir + "/s/links/SKILL.md")
    os.makedirs(b.t.dir + "/s/dang")
    os.symlink("none", b.t.dir + "/s/dang/SKILL.md")
    os.makedirs(b.t.dir + "/s/pipe")
    os.mkfifo(b.t.dir + "/s/pipe/SKILL.md")
    os.makedirs(b.t.dir + "/s/mdir/" + meta)
    b.t.file("s/mdir/SKILL.md", "md")
    os.symlink("b", b.t.dir + "/s/zlink")
    os.symlink("..", b.t.dir + "/s/up")
    os.symlink("loop", b.t.dir + "/s/loop")
    await b.ask("all", "s")
    os.makedirs(os.fsencode(b.t.dir) + b"/bytes/a\xffb")
    with open(os.fsencode(b.t.dir) + b"/bytes/a\xffb/SKILL.md", "w"):
        pass
    b.t.file("bytes/ok/SKILL.md", "ok")
    await b.ask("names that are not UTF-8", "bytes")


@box_case("depth")
async def depth(b):
    at = "d"
    for n in range(9):
        b.t.file(f"{at}/SKILL.md", str(n))
        b.t.file(f"{at}/{CODEX}", f'{{"name":"{n}"}}')
        b.t.file(f"{at}/s/SKILL.md", str(n))
        at += f"/{n}"
    await b.ask("depth", "d", "d/0")


MIB = 1 << 20


@box_case("file-size")
async def file_size(b):
    for name in ("SKILL.md", CODEX, ".mcp.json", "agents/openai.yaml"):
        for size in (MIB, MIB + 1):
            root = f"{size}{name.replace('/', '')}"
            b.tree({f"{root}/SKILL.md": "x", f"{root}/{CODEX}": "{}", f"{root}/{name}": "x" * size})
            await b.ask(root, root)
    b.t.file("two/SKILL.md", "é" * (MIB // 2))
    b.t.file("two/x/SKILL.md", b"x" * MIB + b"\xff")
    await b.ask("bytes, not characters", "two")


@box_case("bundle", slow=True)
async def bundle(b):
    for n in range(17):
        b.t.file(f"b/{n:02}/SKILL.md", "x" * MIB)
    b.t.file("b/99/SKILL.md", "small")
    await b.ask("seventeen", "b")
    b.t.file("c/" + CODEX, "x" * MIB)
    for n in range(15):
        b.t.file(f"c/{n:02}/SKILL.md", "x" * (MIB - 1))
    b.t.file("c/97/SKILL.md", "x" * 15)
    b.t.file("c/98/SKILL.md", "y")
    b.t.file("c/99/SKILL.md", "")
    await b.ask("to the byte", "c", "b")


@box_case("traversal", slow=True)
async def traversal(b):
    for n in range(2005):
        os.makedirs(f"{b.t.dir}/dirs/{n:04}")
    b.t.file("dirs/zz/SKILL.md", "last")
    b.t.file("dirs/0000/SKILL.md", "first")
    for n in range(1000):
        for kind in ("exact", "over"):
            os.makedirs(f"{b.t.dir}/{kind}/{n:04}")
    answer = await b.c.call(METHOD, {"roots": [{"id": k, "path": f"file://{b.t.dir}/{k}"}
                                               for k in ("dirs", "exact")]})
    for root in answer["roots"]:
        b.t.see(root["id"], [root["warnings"], root["error"]])
    for n in range(20010):
        b.t.file(f"files/{n:05}")
    answer = await b.c.call(METHOD, {"roots": [{"id": "f", "path": f"file://{b.t.dir}/files"}]})
    b.t.see("files", [answer["roots"][0][k] for k in ("warnings", "error")])


def read_only(*paths, deny=()):
    entries = [{"path": {"type": "path", "path": p}, "access": "read"} for p in paths]
    entries += [{"path": {"type": "path", "path": p}, "access": "deny"} for p in deny]
    return {"permissions": {"type": "managed", "file_system": {
        "type": "restricted", "entries": entries}, "network": "restricted"},
        "windowsSandboxLevel": "disabled"}


@box_case("sandbox")
async def sandbox(b):
    d = b.t.dir
    b.tree({"in/a/SKILL.md": "a", "in/secret/SKILL.md": "s", "in/" + CODEX: "{}", "out/SKILL.md": "o",
            "in/.mcp.json": "m", CLAUDE: '{"name":"above"}', "in/sub/x/SKILL.md": "x"})
    os.symlink("../out", d + "/in/link")
    os.symlink("../../out/SKILL.md", d + "/in/sub/SKILL.md")
    for label, box in (("read", read_only("file://" + d + "/in")),
                       ("all", read_only("file:///")),
                       ("deny", read_only("file://" + d + "/in",
                                          deny=["file://" + d + "/in/secret"])),
                       ("deny a file", read_only("file://" + d + "/in",
                                                 deny=["file://" + d + "/in/.mcp.json"])),
                       ("nothing", read_only()),
                       ("disabled", {"permissions": {"type": "disabled"},
                                         "windowsSandboxLevel": "disabled"}),
                       ("null", None)):
        await b.ask(label, "in", "in/sub", "out", "in/secret", "none", sandbox=box)

"""environmentConfig/read: layers, trust, selection, and how TOML is written again."""

import json
import os
import random
import subprocess

from harness.case import case
from harness.peer import ABSENT, StdioPeer

METHOD = "environmentConfig/read"
MODEL = [["model"]]


class Box:
    """A server with a home of its own, and a project."""

    def __init__(self, t):
        self.t = t
        self.home = os.path.join(t.dir, "home")
        self.project = os.path.join(t.dir, "project")
        os.makedirs(self.project)

    async def start(self, **env):
        os.makedirs(self.home, exist_ok=True)
        side = self.t.side
        self.c = await StdioPeer.spawn(self.t, [*side.command, "--listen", "stdio"], cwd=side.cwd,
                                       env={**side.env, "HOME": self.home, **env})
        self.t.peers.append(self.c)
        await self.c.hello()
        return self

    def user(self, text="", trust=None, level="trusted"):
        """Writes the user's configuration; `trust` is the text of a path in the box, or a list."""
        for path in [trust] if isinstance(trust, str) else trust or []:
            text += f'\n[projects."{path}"]\ntrust_level = "{level}"\n'
        self.t.file("home/.codex/config.toml", text)

    async def ask(self, label, cwd=None, config=None, requirements=ABSENT):
        cwd = self.project if cwd is None else cwd
        self.t.see(label, await self.c.call(METHOD, {
            "cwd": f"file://{cwd}", "configPaths": MODEL if config is None else config,
            "requirementsPaths": [] if requirements is ABSENT else requirements}))


def box_case(name, **env):
    def register(function):
        async def run(t):
            await function(await Box(t).start(**env))
        return case(name)(run)
    return register


@case("before-initialized")
async def before_initialized(t):
    c = await t.open()
    params = {"cwd": "file:///", "configPaths": MODEL, "requirementsPaths": []}
    t.see("before initialize", await c.call(METHOD, params))
    await c.call("initialize", {"clientName": "x"})
    t.see("before initialized", await c.call(METHOD, params))


@box_case("params")
async def params(b):
    good = {"cwd": "file:///tmp", "configPaths": MODEL, "requirementsPaths": []}
    for field in good:
        for value in (ABSENT, None, 5, "x", [], [[]], [["a"], []], [[1]], ["a"], {}, True,
                      [["a", None]]):
            changed = {k: v for k, v in {**good, field: value}.items() if v is not ABSENT}
            shown = "absent" if value is ABSENT else json.dumps(value)
            b.t.see(f"{field} {shown}", await b.c.call(METHOD, changed))
    for cwd in ("file://host/x", "file:///C:/x", "http://x/", "/tmp", "file:///a%00b", "file:///",
                "file:///nope/../tmp", "file:///etc/passwd", "file:///a%20b"):
        b.t.see(f"cwd {cwd}", await b.c.call(METHOD, {**good, "cwd": cwd}))
    b.t.see("no paths, foreign cwd", await b.c.call(
        METHOD, {**good, "cwd": "file://host/x", "configPaths": []}))
    b.t.see("unknown member", await b.c.call(METHOD, {**good, "zz": 1}))
    b.t.see("null", await b.c.call(METHOD, None))


@box_case("no-files")
async def no_files(b):
    await b.ask("nothing")
    await b.ask("nothing, requirements", requirements=MODEL)
    await b.ask("missing cwd", cwd="/nope/x")


@box_case("selection")
async def selection(b):
    b.user('model = "u"\nlist = [1, {a = 1}]\n[mcp_servers.one]\nurl = "x"\n'
           '[mcp_servers.one.headers]\na = "b"\n[mcp_servers.two]\ncommand = "y"\n[empty]\n')
    for number, paths in enumerate((
            [["model"]], [["mcp_servers"]], [["mcp_servers"], ["model"]], [["mcp_servers", "two"]],
            [["mcp_servers", "one", "headers"]], [["mcp_servers", "one", "headers", "a"]],
            [["mcp_servers", "none"]], [["model", "x"]], [["list", "a"]], [["none"]],
            [["empty"]], [["empty", "x"]], [["mcp_servers", "two"], ["mcp_servers", "one"]],
            [["mcp_servers", "one", "url"], ["mcp_servers"]], [[""]], [["model"], ["model"]])):
        await b.ask(f"{number}", config=paths)
    await b.ask("requirements only", config=[], requirements=MODEL)


@box_case("trust")
async def trust(b):
    p, sub = b.project, b.project + "/sub"
    for d, name in ((p, "top"), (sub, "sub"), (sub + "/deep", "deep")):
        b.t.file(os.path.relpath(d, b.t.dir) + "/.codex/config.toml", f'model = "{name}"\n')
    places = (p, sub, sub + "/deep", sub + "/none/below")

    async def look(label):
        for at in places:
            await b.ask(f"{label}: {os.path.relpath(at, b.t.dir)}", cwd=at)
    b.user('model = "u"\n')
    await look("nobody")
    b.user('model = "u"\n', p)
    await look("no repository")
    os.mkdir(p + "/.git")
    await look("empty .git")
    b.t.file("project/.git/HEAD", "x")
    await look("HEAD")
    b.user('model = "u"\n', sub)
    await look("sub alone")
    b.user('model = "u"\n', [p, sub], "untrusted")
    await look("untrusted")
    b.user(f'[projects."{p}"]\ntrust_level = "untrusted"\n[projects."{sub}"]\n'
           'trust_level = "trusted"\n')
    await look("only the top untrusted")
    b.user(f'[projects."{sub}"]\ntrust_level = "untrusted"\n[projects."{p}"]\n'
           'trust_level = "trusted"\n')
    await look("only sub untrusted")
    b.user("", b.t.dir)
    await look("above")
    b.user("", p + "/")
    await look("trailing slash")
    os.symlink("project", b.t.dir + "/link")
    places = (p, b.t.dir + "/link", b.t.dir + "/link/sub")
    b.user("", b.t.dir + "/link")
    await look("link")
    b.user("", p)
    await look("through a link")
    os.rename(p + "/.git", b.t.dir + "/elsewhere")
    b.t.file("project/.git", "gitdir: /nowhere\n")
    await look(".git file")


@box_case("work-tree")
async def work_tree(b):
    subprocess.run("git init -q . && git -c user.email=a@b -c user.name=c commit -q --allow-empty "
                   "-m x && git worktree add -q ../tree", shell=True, cwd=b.project, check=True,
                   env={"PATH": os.environ["PATH"], "HOME": b.home},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    b.t.file("tree/.codex/config.toml", 'model = "tree"\n')
    b.user("", b.project)
    await b.ask("main trusted", cwd=b.t.dir + "/tree")
    b.user("", b.project, "untrusted")
    await b.ask("main untrusted", cwd=b.t.dir + "/tree")


@box_case("markers")
async def markers(b):
    sub = b.project + "/sub"
    b.t.file("project/.codex/config.toml", 'model = "top"\n')
    b.t.file("project/sub/.codex/config.toml", 'model = "sub"\n')
    b.t.file("project/.hg", "")
    for number, value in enumerate(('[".hg"]', '[]', '[".git"]', '["x", ".hg"]', '5', '[1]', '""',
                                    '[""]')):
        b.user(f"project_root_markers = {value}\n", [b.project, sub])
        await b.ask(f"{number} sub", cwd=sub)
        await b.ask(f"{number} top")


@box_case("bad-trust")
async def bad_trust(b):
    for number, text in enumerate(("projects = 3", "projects = []", '[projects]\n"/x" = 1',
                                   '[projects."/x"]\ntrust_level = "foo"',
                                   '[projects."/x"]\ntrust_level = 3', '[projects."/x"]',
                                   '[projects."/x"]\nother = 1', 'projects = "x"',
                                   'projects = true')):
        b.user(f'model = "u"\n{text}\n' if "[" not in text[:1] else f'model = "u"\n{text}\n')
        await b.ask(f"{number}")


@box_case("bad-files")
async def bad_files(b):
    path = b.project + "/.codex/config.toml"
    b.user('model = "u"\n', b.project)
    for number, text in enumerate((b'model = \n', b'x\n', b'\xff', b'a = 1\nb = "\xc3"\n', b'',
                                   b'a = 1\na = 2\n')):
        b.t.file("project/.codex/config.toml", text)
        await b.ask(f"project {number}")
        b.user('model = "u"\n')
        await b.ask(f"untrusted project {number}")
        os.remove(path)
        b.t.file("home/.codex/config.toml", text)
        await b.ask(f"user {number}")
        b.user('model = "u"\n', b.project)
    os.mkdir(path)
    await b.ask("directory")
    os.rmdir(path)
    os.mkfifo(path)
    await b.ask("FIFO")
    os.remove(path)
    os.symlink("../../other", path)
    await b.ask("dangling link")
    b.t.file("other", 'model = "other"\n')
    await b.ask("link")
    os.remove(path)
    os.rmdir(os.path.dirname(path))
    b.t.file("project/.codex", "")
    await b.ask(".codex is a file")
    b.user('model = "u"\n', b.home)
    await b.ask("home", cwd=b.home)


KEYS = ("model model_provider model_providers openai_base_url chatgpt_base_url notify profile "
        "profiles otel experimental_realtime_ws_base_url mcp_servers hooks plugins sandbox_mode "
        "approval_policy projects features").split()


@box_case("project-keys")
async def project_keys(b):
    b.user("", b.project)
    for key in KEYS:
        table = key in ("model_providers", "profiles", "otel", "mcp_servers", "hooks", "plugins",
                        "projects", "features")
        b.t.file("project/.codex/config.toml", f"[{key}]\n" if table else f'{key} = "x"\n')
        await b.ask(f"project {key}", config=[[key]])


TEXTS = ["", "a", "\"", "'", "'\"", "\\", "\\'", "a\nb", "a\n'''b", 'a\n"""b', "\t", "\t\n", "\x01",
         "\x7f\n", "\n", "\\\n", "'\n", "\"\"\"", "'''", "\"\"\"'''", "\u00e9\u2028", "\r\n",
         "a\\\n'''", "\"\"\"\"\"\"\n", "x\"\n", "\x00", "\b\f\\", "'\\\n\"", "\"\"\\\n"]
NUMBERS = ["0", "-0", "1", "-9223372036854775808", "0x1F", "1_000", "0.0", "-0.0", "1.5", "1e22",
           "1e23", "5e-324", "1.7976931348623157e308", "0.1", "1e-7", "123456.789e3", "nan", "-nan",
           "+inf", "-inf", "3.0", "1e0", "100.0", "0.30000000000000004"]
TIMES = ["1979-05-27T07:32:00Z", "1979-05-27 07:32:00-07:00", "1979-05-27T00:32:00.999999",
         "1979-05-27", "07:32:00", "00:32:00.5", "1979-05-27T07:32:00.120Z",
         "1979-05-27T07:32:00-00:00", "1979-05-27t07:32:00z", "00:32:00.123456789"]


def quoted(text):
    return json.dumps(text).replace("\x7f", "\\u007f")


@box_case("strings-and-keys")
async def strings_and_keys(b):
    b.user("[t]\n" + "".join(f"k{n} = {quoted(s)}\n" for n, s in enumerate(TEXTS)))
    await b.ask("strings", config=[["t"]])
    b.user("[t]\nlist = [" + ", ".join(map(quoted, TEXTS)) + "]\n")
    await b.ask("strings in a list", config=[["t"]])
    keys = sorted(set(TEXTS) | {"1", "a-b", "a.b", "a b", "A_9"})
    b.user("[t]\n" + "".join(f"{quoted(k)} = {n}\n" for n, k in enumerate(keys)))
    await b.ask("keys", config=[["t"]])
    b.user("".join(f"[t.{quoted(k)}]\nx = {n}\n" for n, k in enumerate(keys)))
    await b.ask("headers", config=[["t"]])


@box_case("numbers-and-times")
async def numbers_and_times(b):
    values = NUMBERS + TIMES + ["true", "false"]
    b.user("[t]\n" + "".join(f"k{n} = {v}\n" for n, v in enumerate(values)))
    await b.ask("values", config=[["t"]])
    b.user("[t]\nlist = [" + ", ".join(values) + "]\n")
    await b.ask("list", config=[["t"]])


def random_value(r, depth):
    kind = r.randrange(7 if depth < 4 else 4)
    if kind < 2:
        return r.choice(NUMBERS)
    if kind < 4:
        return r.choice([quoted(r.choice(TEXTS)), "true", r.choice(TIMES)])
    if kind == 4:
        return "[" + ", ".join(random_value(r, depth + 1) for _ in range(r.randrange(4))) + "]"
    names = r.sample("abcdefg", r.randrange(4))
    return "{" + ", ".join(f"{n} = {random_value(r, depth + 1)}" for n in names) + "}"


def random_text(seed):
    r = random.Random(seed)
    lines = [f"{n} = {random_value(r, 0)}" for n in r.sample("tuvwxyz", 5)]
    for n in r.sample("abcdef", 4):
        if r.random() < 0.5:
            lines.append(f"[{n}]\nx = {random_value(r, 0)}\ny.z = 1")
        else:
            lines += [f"[[{n}]]\nx = {random_value(r, 0)}"] * r.randrange(1, 3)
            lines += [f"[{n}.sub]", f"[[{n}.more]]", f"q = {random_value(r, 0)}", f"[[{n}.more]]"]
    return "\n".join(lines) + "\n"


def add_generated(part):
    @box_case(f"generated-{part}")
    async def generated(b):
        for seed in range(part * 20, part * 20 + 20):
            b.user(random_text(seed))
            await b.ask(f"{seed}", config=[[k] for k in "tuvwxyzabcdef"])


for _part in range(4):
    add_generated(_part)


@case("codex-home")
async def codex_home(t):
    t.file("conf/config.toml", 'model = "here"\n')
    t.file("conf2/.codex/config.toml", 'model = "there"\n')
    os.symlink("conf", t.dir + "/link")
    for label, env in (("set", {"CODEX_HOME": t.dir + "/conf"}),
                       ("link", {"CODEX_HOME": t.dir + "/link"}),
                       ("empty", {"CODEX_HOME": "", "HOME": t.dir + "/conf2"}),
                       ("no home", {"HOME": t.dir + "/nope"})):
        b = Box.__new__(Box)
        b.t, b.home, b.project = t, t.dir + "/x", t.dir
        await b.start(**env)
        await b.ask(label)

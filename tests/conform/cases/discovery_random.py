"""Both methods of capability discovery on random trees. They follow from the run's seed."""

import json
import os
import random

from harness.case import REGISTRY, case

from . import capability_discovery as v1
from . import capability_v2 as v2

NAMES = ["a", "b", "c", "s", "skills", ".hidden", "é", "a b", "B", "a-", "%41", "x.y", "node_modules"]
MANIFESTS = [v1.CODEX, v1.CLAUDE, v1.CURSOR]
SCALARS = ["x", "a b", "'q'", '"d"', "5", "-0", "1.5", "1e3", "0x1F", "0o17", "true", "no", "null", "~",
           "", "[]", "[a, b]", "{}", "{a: b}", "|\n  x\n  y", ">\n  x\n\n  y", ">-\n  x\n  y\n", "é",
           "&a b", "*a", "!!str 5", "!x y", "# c", "a # c", "a#c", "x: y", "x:y", "- a", "'open",
           '"open', '"\\u00e9"', '"a\\nb"', '"a\\tb"', "  lead", "trail  ", "a\n  b", "a\n\n  b",
           "y" * 64, "z" * 1025, "2020-01-01", "@x", "`x", "%x", "a\tb", "? x", ",", "]", "'a''b'",
           "\u3000", "\u00a0x", "a\u2028b", "\ufeffx", "<x>", "a: b: c", "http://x/y", "C:\\x"]
KEYS = ["name", "description", "name", "description", "metadata", "license", "allowed-tools", "x",
        '"name"', "'description'", "Name", "short-description", "1", "?", "a b"]
META_KEYS = ["short-description", "short-description", "x", "shortDescription"]
VALUES = ["x", "", " ", "é", "a:b", "./x.json", "x.json", "../x.json", "./sub/x.json", "./none", 5, -1,
          1.5, True, None, [], ["./x.json"], {}, {"a": {"command": "c"}}, "y" * 70, "\u0001", "1.2.3"]
FIELDS = ["name", "version", "mcpServers", "apps", "skills", "interface", "description", "x",
          "displayName", "mcp_servers"]
MARKETS, VERSIONS = ["m", "m-2", "a b", ".dot"], ["1", "1.0.0", "1.0.0-a", "local", "10.0.0", "x", ".y"]


class Tree:
    """Makes the same random files on both sides."""

    def __init__(self, t, seed):
        self.t, self.r = t, random.Random(seed)
        self.directories, self.left = [], 60

    def maybe(self, share):
        return self.r.random() < share

    def front(self):
        if self.maybe(0.2):
            return self.r.choice(v2.FRONT)
        if self.maybe(0.2):
            return v1.SKILL
        lines = []
        for _ in range(self.r.randint(0, 5)):
            key = self.r.choice(KEYS)
            if key == "metadata" and self.maybe(0.8):
                lines += ["metadata:"] + [f"  {self.r.choice(META_KEYS)}: {self.r.choice(SCALARS)}"
                                          for _ in range(self.r.randint(0, 2))]
            else:
                lines.append(f"{key}:{self.r.choice([' ', ' ', ' ', '  ', ''])}{self.r.choice(SCALARS)}")
        if self.maybe(0.6):
            lines += [f"{key}: {self.r.choice(SCALARS)}" for key in ("name", "description")]
        begin = self.r.choice(["---", "---", "---", "---", "--- ", "----", ""])
        end = self.r.choice(["---", "---", "---", "---\nbody", "--- ", "...", "", " ---"])
        return self.r.choice(["\n", "\n", "\n", "\r\n"]).join([begin, *lines, end, ""])

    def metadata(self):
        if self.maybe(0.6):
            return self.r.choice(v2.META)
        tool = {self.r.choice(["type", "value", "url", "command", "transport", "description", "oauth"]):
                self.r.choice(VALUES) for _ in range(self.r.randint(0, 6))}
        return json.dumps({self.r.choice(["dependencies", "policy", "interface", "x"]): self.r.choice([
            {"tools": [tool, {"type": "a", "value": "b"}]}, {"products": self.r.choice(VALUES)},
            {"allow_implicit_invocation": self.r.choice(VALUES)}, self.r.choice(VALUES)])
            for _ in range(self.r.randint(0, 3))}, ensure_ascii=False)

    def manifest(self):
        if self.maybe(0.1):
            return self.r.choice(["", "{", "[]", "null", "5", '{"name":"a"}x', '{"name":"a",}', b"\xff"])
        fields = [(self.r.choice(FIELDS), self.r.choice(VALUES)) for _ in range(self.r.randint(0, 5))]
        fields = [(k, {self.r.choice(["displayName", "x"]): v} if k == "interface" else v)
                  for k, v in fields]
        return "{" + ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in fields) + "}"

    def link(self, at):
        target = self.r.choice(["..", ".", "none", "loop", "SKILL.md", "../a", "../b/SKILL.md"])
        name = self.r.choice(["SKILL.md", "loop", "zlink", ".mcp.json", "a"])
        if not os.path.lexists(f"{self.t.dir}/{at}/{name}"):
            os.symlink(target, f"{self.t.dir}/{at}/{name}")

    def file(self, at, name, content):
        if not os.path.lexists(f"{self.t.dir}/{at}/{name}"):
            self.t.file(f"{at}/{name}", content)

    def fill(self, at, depth=0):
        """A directory, and those below it."""
        self.left -= 1
        self.directories.append(at)
        os.makedirs(f"{self.t.dir}/{at}", exist_ok=True)
        if self.maybe(0.5):
            self.file(at, "SKILL.md", b"a\xffb" if self.maybe(0.05) else self.front())
            if self.maybe(0.4):
                self.file(at, "agents/openai.yaml", self.metadata())
        for name in MANIFESTS:
            if self.maybe(0.12):
                self.file(at, name, self.manifest())
        for name in (".mcp.json", "x.json", "sub/x.json", ".app.json"):
            if self.maybe(0.15):
                self.file(at, name, name)
        if self.maybe(0.1):
            self.link(at)
        for name in self.r.sample(NAMES, self.r.randint(0, 3)):
            if depth < 8 and self.left > 0 and not os.path.lexists(f"{self.t.dir}/{at}/{name}"):
                self.fill(f"{at}/{name}", depth + 1)


async def on_roots(t, seed, count):
    box = v1.Box(t, await t.connect())
    for n in range(count):
        tree = Tree(t, f"{seed} roots {n}")
        tree.fill(f"r{n}")
        roots = [f"r{n}", *tree.r.sample(tree.directories, min(4, len(tree.directories)))]
        await box.ask(f"tree {n}", *dict.fromkeys([*roots, f"r{n}/none", f"r{n}/SKILL.md"]))


async def on_homes(t, seed, count):
    for n in range(count):
        box = v2.Box(t)
        tree = Tree(t, f"{seed} homes {n}")
        for at in (v2.AGENTS, v2.HOME_SKILLS):
            tree.left = 30
            tree.fill(at)
        for _ in range(tree.r.randint(0, 6)):
            tree.left = 8
            at = f"{v2.CACHE}/{tree.r.choice(MARKETS)}/{tree.r.choice('pqr')}/{tree.r.choice(VERSIONS)}"
            tree.file(at, v2.MANIFEST, tree.manifest())
            tree.fill(at)
        await box.ask(f"homes {n}")
        for name in ("home", "codex"):
            os.rename(f"{t.dir}/{name}", f"{t.dir}/{name}.{n}")


def register(method, name, parts, fast, count):
    for part in range(parts):
        async def run(t, part=part):
            await method(t, f"{REGISTRY.seed} {part}", count)
        case(f"{name}-{part}", slow=part >= fast)(run)


register(on_roots, "roots", 20, 2, 10)
register(on_homes, "homes", 10, 1, 5)

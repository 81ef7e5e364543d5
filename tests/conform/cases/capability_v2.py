"""capabilities/discoverV2: the fixed places, front matter, metadata, plugins, limits."""

import json
import os

from harness.case import case
from harness.peer import ABSENT, StdioPeer

METHOD = "capabilities/discoverV2"
AGENTS, HOME_SKILLS, CACHE = "home/.agents/skills", "codex/skills", "codex/plugins/cache"
MANIFEST = ".codex-plugin/plugin.json"


def skill(name="n", description="d"):
    return f"---\nname: {name}\ndescription: {description}\n---\nbody\n"


class Box:
    """Homes of its own. Each question goes to a new server: the reference remembers places."""

    def __init__(self, t, **env):
        self.t, self.env = t, env
        os.makedirs(t.dir + "/codex", exist_ok=True)

    async def call(self, params):
        side = self.t.side
        env = {"HOME": self.t.dir + "/home", "CODEX_HOME": self.t.dir + "/codex", **self.env}
        env = {k: v for k, v in {**side.env, **env}.items() if v is not ABSENT}
        c = await StdioPeer.spawn(self.t, [*side.command, "--listen", "stdio"], cwd=side.cwd,
                                  env=env)
        try:
            await c.hello()
            return await c.call(METHOD, params)
        finally:
            await c.close()

    def tree(self, files):
        for name, content in files.items():
            self.t.file(name, content)

    async def ask(self, label, **more):
        answer = await self.call({"cwd": "file:///nope", **more})
        self.t.see(label, answer)
        return answer

    async def brief(self, label, **more):
        """Shows skills as one line each."""
        answer = await self.call({"cwd": "file:///nope", **more})
        if isinstance(answer, dict):
            answer = {"plugins": [[p["id"], p["displayName"], p["version"], p["remotePluginId"],
                                   len(p["skills"]), p["root"]] for p in answer["plugins"]],
                      "skills": {s["path"].removeprefix(f"file://{self.t.dir}"): [
                          s["name"], s["description"], s["shortDescription"]]
                          for s in answer["skills"]}, "warnings": answer["warnings"]}
        self.t.see(label, answer)


def box_case(name, slow=False):
    def register(function):
        async def run(t):
            await function(Box(t))
        return case(name, slow)(run)
    return register


@box_case("params")
async def params(b):
    b.t.file(AGENTS + "/x/SKILL.md", skill())
    for field in ("cwd", "sandbox"):
        for value in (ABSENT, None, 5, "", "x", [], {}, True):
            sent = {k: v for k, v in {"cwd": "file:///", field: value}.items() if v is not ABSENT}
            shown = "absent" if value is ABSENT else json.dumps(value)
            b.t.see(f"{field} {shown}", await b.call(sent))
    for cwd in ("file://host/x", "file:///C:/x", "http://x/", "/tmp", "file:///a%00b",
                "file:///etc/passwd"):
        b.t.see(f"cwd {cwd}", await b.call({"cwd": cwd}))
    b.t.see("unknown member", await b.call({"cwd": "file:///", "zz": 1}))
    b.t.see("null", await b.call(None))


@box_case("places")
async def places(b):
    await b.ask("nothing")
    b.tree({AGENTS + "/b/SKILL.md": skill("b"), HOME_SKILLS + "/z/SKILL.md": skill("z"),
            HOME_SKILLS + "/.system/a/SKILL.md": skill("a"), "home/.codex/skills/x/SKILL.md": skill(),
            f"{CACHE}/mkt/p/1.0.0/{MANIFEST}": '{"name":"p","version":"1"}',
            f"{CACHE}/mkt/p/1.0.0/skills/s/SKILL.md": skill("s"),
            f"{CACHE}/mkt/p/1.0.0/.mcp.json": "{}",
            f"{CACHE}/mkt/p/1.0.0/skills/s/agents/openai.yaml":
                "policy:\n  allow_implicit_invocation: true\n"})
    await b.ask("all")
    b.tree({HOME_SKILLS + "/SKILL.md": skill("root"), AGENTS + "/b/SKILL.md": skill("again", "e")})
    await b.ask("changed")
    os.rename(b.t.dir + "/codex/skills", b.t.dir + "/codex/gone")
    await b.ask("gone")
    b.t.file(HOME_SKILLS, "a file")
    await b.ask("a file")


@case("homes")
async def homes(t):
    t.file(AGENTS + "/x/SKILL.md", skill("agents"))
    t.file("home/.codex/skills/x/SKILL.md", skill("default"))
    t.file("other/skills/x/SKILL.md", skill("other"))
    os.symlink("other", t.dir + "/link")
    for label, env in (("default", {"CODEX_HOME": ABSENT}), ("empty", {"CODEX_HOME": ""}),
                       ("other", {"CODEX_HOME": t.dir + "/other"}),
                       ("link", {"CODEX_HOME": t.dir + "/link"}),
                       ("no home", {"CODEX_HOME": ABSENT, "HOME": t.dir + "/nope"}),
                       ("relative home", {"CODEX_HOME": ABSENT, "HOME": "nope"})):
        await Box(t, **env).ask(label)


FRONT = [
    "", "---", "---\n---\n", "---\nname: a\n", "---\nname: a\n---\n", "---\ndescription: d\n---\n",
    " --- \nname: a\ndescription: d\n --- \n", "\n---\nname: a\ndescription: d\n---\n",
    "---\r\nname: a\r\ndescription: d\r\n---\r\n", "\ufeff---\nname: a\ndescription: d\n---\n",
    "---\nname: a\ndescription: d\n----\n---\n", "---\nname:\ndescription: d\n---\n",
    "---\nname: ''\ndescription: ''\n---\n", "---\nname: ~\ndescription: d\n---\n",
    "---\nname: 5\ndescription: 6\n---\n", "---\nname: true\ndescription: d\n---\n",
    "---\nname: 1.50\ndescription: 0x10\n---\n", "---\nname: [a]\ndescription: d\n---\n",
    "---\nname: {a: b}\ndescription: d\n---\n", "---\nname: a\ndescription: [d]\n---\n",
    "---\nname: '  a\tb  c '\ndescription: \"x\\ny\\u00e9\\t \"\n---\n",
    "---\nname: a\ndescription: |\n  one\n  two\n\n  three\n---\n",
    "---\nname: a\ndescription: >-\n  one\n  two\n---\n", "---\nname: a\ndescription: one\n  two\n---\n",
    "---\nname: a\ndescription: Build: AWS: ECS\n---\n",
    "---\nname: a: b\ndescription: it's: so # not\n---\n",
    "---\nname: a\ndescription: d\nhint: <x: y>\n---\n", "---\nname: a\ndescription: @at\n---\n",
    "---\nname: a\ndescription: `tick`\n---\n", "---\nname: a\ndescription: [open\n---\n",
    "---\nname: a\ndescription: {open: x\n---\n", "---\nname: a\ndescription: [x] y\n---\n",
    "---\nname: a\ndescription: 'open\n---\n", "---\nname: a\ndescription: \"open\n---\n",
    "---\nname: a\ndescription: *alias\n---\n", "---\nname: &x a\ndescription: *x\n---\n",
    "---\nname: !!str 5\ndescription: d\n---\n", "---\nname: !tag a\ndescription: d\n---\n",
    "---\n- a\n- b\n---\n", "---\njust text\n---\n", "---\n5\n---\n", "---\n# comment\n---\n",
    "---\nname: a\nname: b\ndescription: d\n---\n", "---\n? name\n: a\ndescription: d\n---\n",
    "---\nname: a\ndescription: d\nx: {y: [1, {z: 2}]}\n---\n",
    "---\nname: a\ndescription: d\n\tx: y\n---\n", "---\n{name: a, description: d}\n---\n",
    "---\nname: a\ndescription: d\nmetadata:\n  short-description: s  s\n---\n",
    "---\nname: a\ndescription: d\nmetadata:\n  short-description: ''\n---\n",
    "---\nname: a\ndescription: d\nmetadata:\n  short-description: 5\n---\n",
    "---\nname: a\ndescription: d\nmetadata:\n---\n", "---\nname: a\ndescription: d\nmetadata: x\n---\n",
    "---\nname: a\ndescription: d\nmetadata: {other: [1]}\n---\n",
    "---\nname: a\ndescription: d\nmetadata: []\n---\n",
    "---\nname: a\ndescription: d\nmetadata: {short-description: [x]}\n---\n",
    "---\nname: a\ndescription: d\nmetadata: {short-description: a: b}\n---\n",
    f"---\nname: {'x' * 64}\ndescription: d\n---\n", f"---\nname: {'x' * 65}\ndescription: d\n---\n",
    f"---\nname: {'é' * 64}\ndescription: d\n---\n", f"---\nname: a\ndescription: {'y' * 3000}\n---\n",
    "---\nname: a\ndescription: d\n...\n---\n", "---\nname: a\ndescription: d\n--- x\n---\n",
    "---\n%YAML 1.1\nname: a\ndescription: d\n---\n", "---\nname: a\x07b\ndescription: d\n---\n",
    "---\nname: a\u2028b\ndescription: \u3000d\u00a0e\u0085f\n---\n", "---\nNAME: a\ndescription: d\n---\n",
    "---\nname: a\ndescription: d\n<<: {x: y}\n---\n", "---\n<<: {name: a}\ndescription: d\n---\n",
    "---\nx: &a {name: q}\n<<: *a\nname: a\ndescription: d\n---\n",
    "---\nname: null\ndescription: d\n---\n", "---\nname: Null\ndescription: no\n---\n",
    "---\nname: 0o7\ndescription: .inf\n---\n", "---\nname: 2020-01-01\ndescription: 1_000\n---\n",
    "---\nname: \"5\"\ndescription: 'null'\n---\n", "---\nname: -\ndescription: d\n---\n",
    "---\nname: a\ndescription: d\n 5: x\n---\n", "---\n5: x\nname: a\ndescription: d\n---\n",
    "---\n[a]: x\nname: a\ndescription: d\n---\n", "---\nname: a #c\ndescription: d#e\n---\n",
    "---\nname: a\ndescription: x: y: |\n---\n", "---\nname: a\ndescription: d\nkey: |\n  x: y: z\n---\n",
    "---\n name: a\n description: d: e\n---\n", "---\nname: a\ndescription:d\n---\n",
    "---\nname: a\ndescription: d\nx: y: z\nq: 'open\n---\n", "---\nname: a\ndescription: d:\n---\n",
    "---\nname: a\ndescription: 'x': y\n---\n", "---\n\"name\": a\n'description': d\n---\n",
    "---\nname: |\n  a\ndescription: d\n---\n", "---\n   \nname: a\ndescription: d\n---\n",
    "---\n\n---\n", "---\nname: a\ndescription: \"\\ud800\"\n---\n", "---\nname: a\ndescription: \"\\x41\"\n---\n",
    "---\nname: a\0b\ndescription: d\n---\n", "---\nname: a\ndescription: !!binary aGk=\n---\n",
    "---\nname: a\ndescription: !!int 5\n---\n", "---\nname: !!null x\ndescription: d\n---\n",
]


@box_case("front-matter")
async def front_matter(b):
    for n, text in enumerate(FRONT):
        b.t.file(f"{AGENTS}/{n:03}/SKILL.md", text)
    await b.brief("all")
    for n, text in enumerate(FRONT):
        os.remove(f"{b.t.dir}/{AGENTS}/{n:03}/SKILL.md")


@box_case("default-names")
async def default_names(b):
    for name in ("x", "a b", "é", " lead  two ", "y" * 64, "z" * 65, "\u3000"):
        b.t.file(f"{AGENTS}/{name}/SKILL.md", "---\ndescription: d\n---\n")
    b.t.file(f"{AGENTS}/SKILL.md", "---\ndescription: d\n---\n")
    await b.brief("all")


META = [
    "", "x: 1", "[]", "5", "text", "null", "policy:", "policy: {}", "policy: []", "policy: x",
    "policy: {allow_implicit_invocation: false}", "policy: {allow_implicit_invocation: true}",
    "policy: {allow_implicit_invocation: null}", "policy: {allow_implicit_invocation: no}",
    "policy: {allow_implicit_invocation: 'true'}", "policy: {allow_implicit_invocation: True}",
    "policy: {allow_implicit_invocation: TRUE}", "policy: {allow_implicit_invocation: 1}",
    "policy: {products: [codex]}", "policy: {products: [CODEX, chatgpt, atlas, CHATGPT, ATLAS]}",
    "policy: {products: [Codex]}", "policy: {products: [other]}", "policy: {products: codex}",
    "policy: {products: null}", "policy: {products: [codex, codex]}", "policy: {x: 1}",
    "policy: {products: [!codex ]}", "policy: {products: [5]}", "policy: {products: [{codex: 1}]}",
    "policy: {products: [codex: ]}",
    "dependencies:", "dependencies: {}", "dependencies: []", "dependencies: {tools: []}",
    "dependencies: {tools: }", "dependencies: {tools: x}", "dependencies: {tools: [x]}",
    "dependencies: {tools: [{}]}", "dependencies: {tools: [{type: a}]}",
    "dependencies: {tools: [{type: a, value: b}]}", "dependencies: {tools: [{type: '', value: b}]}",
    "dependencies: {tools: [{type: a, value: ' '}]}", "dependencies: {tools: [{type: 5, value: 6}]}",
    "dependencies: {tools: [{type: a, value: b, description: ' d  e ', transport: t, command: c, "
    "url: u}]}", "dependencies: {tools: [{type: a, value: b, description: 5}]}",
    "dependencies: {tools: [{type: a, value: b, url: []}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 80}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callback_port: 80}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 65536}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: -1}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: '80'}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 0x50}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 0o17}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 8.0}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: +80}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 0b11}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 010}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 80, callback_port: 81}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: null}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: {}}]}",
    "dependencies: {tools: [{type: a, value: b, oauth: }]}",
    "dependencies: {tools: [{type: a, value: b, oauth: x}]}",
    "dependencies: {tools: [{type: a, value: b, x: 1}, {value: c}, {type: d, value: e}]}",
    "dependencies: {tools: [{type: a, value: b, value: c}]}", "dependencies: {x: 1}",
    "dependencies: {tools: [null]}", "dependencies: {tools: [[a, b]]}",
    f"dependencies: {{tools: [{{type: {'t' * 64}, value: b}}]}}",
    f"dependencies: {{tools: [{{type: {'t' * 65}, value: b}}]}}",
    "interface:", "interface: {}", "interface: []", "interface: x", "interface: {x: 1}",
    "interface: {display_name: x}", "interface: {display_name: [x]}", "interface: {display_name: 5}",
    "interface: {icon_small: {}}", "interface: {brand_color: []}", "interface: {default_prompt: {}}",
    "interface: {short_description: []}", "interface: {icon_large: []}",
    "policy: {allow_implicit_invocation: false}\ninterface: []",
    "policy: {allow_implicit_invocation: false}\ndependencies: []",
    "policy: {allow_implicit_invocation: false}\ndependencies: {tools: [{type: a, value: b}]}",
    "policy: {allow_implicit_invocation: false}\npolicy: {}", "---\npolicy: {}\n",
    "---\npolicy: {}\n---\nx: 1\n", "policy: &a {allow_implicit_invocation: false}\nx: *a\n",
    "policy: {allow_implicit_invocation: false", "description: 5", "description: []",
]


@box_case("metadata")
async def metadata(b):
    for n, text in enumerate(META):
        b.t.file(f"{AGENTS}/{n:03}/SKILL.md", skill())
        b.t.file(f"{AGENTS}/{n:03}/agents/openai.yaml", text)
    answer = await b.call({"cwd": "file:///"})
    b.t.see("all", {s["path"][-12:-9] + " " + META[int(s["path"][-12:-9])]:
                    [s["dependencies"], s["policy"]] for s in answer["skills"]})
    b.t.see("warnings", answer["warnings"])


@box_case("metadata-lengths")
async def metadata_lengths(b):
    fields = ("type", "value", "description", "transport", "command", "url")
    sizes = (63, 64, 65, 128, 129, 256, 257, 512, 513, 1024, 1025, 2048, 2049, 4096, 4097)
    for field in fields:
        for size in sizes:
            at = f"{AGENTS}/{field}{size}"
            b.t.file(at + "/SKILL.md", skill())
            tool = {"type": "a", "value": "b", field: "é" * size}
            b.t.file(at + "/agents/openai.yaml", json.dumps({"dependencies": {"tools": [tool]}},
                                                            ensure_ascii=False))
    answer = await b.call({"cwd": "file:///"})
    b.t.see("all", {s["path"].split("/")[-2]: [
        [k, len(v)] for k, v in s["dependencies"]["tools"][0].items() if v]
        if s["dependencies"] else None for s in answer["skills"]})


@box_case("namespaces")
async def namespaces(b):
    for n, name in enumerate(('"p"', '""', '" "', '5', '" q "', f'"{"n" * 64}"', f'"{"n" * 128}"',
                              '"a:b"', 'null', '"é"')):
        at = f"{AGENTS}/{n}"
        b.t.file(f"{at}/{MANIFEST}", f'{{"name":{name}}}')
        b.t.file(f"{at}/skills/s/SKILL.md", skill("s"))
        b.t.file(f"{at}/skills/t/SKILL.md", skill("t" * 64))
    b.t.file(f"{AGENTS}/bad/{MANIFEST}", "{")
    b.t.file(f"{AGENTS}/bad/s/SKILL.md", skill("s"))
    b.t.file(f"{AGENTS}/none/{MANIFEST}", "{}")
    b.t.file(f"{AGENTS}/none/s/SKILL.md", skill("s"))
    b.t.file(f"{AGENTS}/none/in/{MANIFEST}", '{"name":"inner"}')
    b.t.file(f"{AGENTS}/none/in/s/SKILL.md", skill("s"))
    b.t.file(f"{AGENTS}/dup/{MANIFEST}", '{"name":"a","name":"b"}')
    b.t.file(f"{AGENTS}/dup/s/SKILL.md", skill("s"))
    await b.brief("all")


VERSIONS = [["1.0.0"], ["1.0.0", "2.0.0"], ["9.0.0", "10.0.0"], ["local", "1.0.0"], ["a", "b"],
            ["1.0.0-beta", "1.0.0"], ["1.0.0+a", "1.0.0+b"], ["1", "2.0"], ["1.0", "1.0.0"],
            [".hidden"], ["a b"], ["é"], ["1.0.0", "zzz"], ["zzz", "1.0.0", "aaa"], ["-x"], ["a+b"],
            ["1.2.3-alpha.10", "1.2.3-alpha.9"], ["v1.0.0", "v0.9.0"], ["01.0.0", "1.0.0"],
            ["a~b"], ["_x"], ["1.0.0-a.b", "1.0.0-a"], ["1.0.0-1", "1.0.0-a"], ["x" * 64], ["x" * 200]]


@box_case("versions")
async def versions(b):
    for n, names in enumerate(VERSIONS):
        for version in names:
            b.t.file(f"{CACHE}/mkt/p{n}/{version}/{MANIFEST}", "{}")
    os.makedirs(f"{b.t.dir}/{CACHE}/mkt/link/1.0.0")
    b.t.file(f"{CACHE}/mkt/link/1.0.0/{MANIFEST}", "{}")
    os.symlink("1.0.0", f"{b.t.dir}/{CACHE}/mkt/link/2.0.0")
    b.t.file(f"{CACHE}/mkt/file/1.0.0", "x")
    b.t.file(f"{CACHE}/mkt/nomanifest/1.0.0/x", "x")
    b.t.file(f"{CACHE}/mkt/badmanifest/1.0.0/{MANIFEST}", "{")
    await b.brief("all")


@box_case("plugin-names")
async def plugin_names(b):
    for market in ("mkt", "a b", "é", ".dot", "a.b", "A_-9", "a@b", "x" * 64, "x" * 65, "a+b", "-"):
        for name in ("p", ".dot", "a b", "a.b", "é", "q@r"):
            b.t.file(f"{CACHE}/{market}/{name}/1/{MANIFEST}", "{}")
    os.symlink("mkt", f"{b.t.dir}/{CACHE}/linked")
    os.symlink("p", f"{b.t.dir}/{CACHE}/mkt/alias")
    await b.brief("all")


@box_case("display-names")
async def display_names(b):
    for n, text in enumerate(('{"name":"x"}', '{}', '{"name":""}', '{"name":5}', '{"name":" x "}',
                              '{"interface":{"displayName":"D"}}', '{"interface":{"displayName":""}}',
                              '{"interface":{"displayName":" D  E "}}', '{"interface":5}',
                              '{"interface":{"displayName":5}}', '{"displayName":"T"}', '[]',
                              '{"name":"x","interface":null}', '{"name":"x","interface":{}}',
                              '{"name":"x","version":"7"}', '{"name":"x","name":"y"}', '{',
                              '{"name":"x","interface":{"displayName":null}}',
                              '{"name":"other","interface":{"displayName":"D","x":[1]}}', 'null',
                              '{"interface":{"display_name":"U"}}',
                              json.dumps({"interface": {"displayName": "d" * 3000}}))):
        b.t.file(f"{CACHE}/m/p{n:02}/1/{MANIFEST}", text)
        b.t.file(f"{CACHE}/m/p{n:02}/1/skills/s/SKILL.md", skill("s"))
    answer = await b.call({"cwd": "file:///"})
    b.t.see("all", {p["id"]: [p["displayName"], p["version"], [s["name"] for s in p["skills"]],
                              p["files"]["manifest"]["contents"][:40]] for p in answer["plugins"]})
    b.t.see("warnings", answer["warnings"])


TWICE = [f'{{"{name}":"a","{name}":"b"}}' for name in
         ("name", "version", "mcpServers", "apps", "skills", "interface", "description", "x")]
MANIFESTS = TWICE + [
    *(f'{{"{field}":{value}}}' for field in ("apps", "mcpServers", "skills", "version", "description")
      for value in ("true", "5", "null", "[]", "{}", '"./m.json"', '["./m.json"]')),
    "[]", '["x"]', '["x","y"]', '["a",null,null]', '["a",null,null,null]', '["a",null,null,null,null]',
    '["a",["D"],null,null]', '["a",{"displayName":"D"},null,null]', '["a",null,{"x":1},null]',
    '["a",null,"./m.json","./m.json"]', '["a",null,null,5]', '["a",5,null,null]', "[5,null,null,null]",
    "[null,null,null,null]", '{"interface":[]}', '{"interface":["D"]}', '{"interface":["D","E"]}',
    '{"interface":{"displayName":"a","displayName":"b"}}', '{"interface":{"x":1,"x":2}}',
    '{"mcpServers": { "b" : 1.50 , "a":{"y":[1, 2],"x":"\\u00e9\\n\\/"},"b":2.50}}',
    '{"mcpServers":{"b":1e3,"a":123456789012345678901234567890,"c":-0.0,"d":1E400,"e":-0,"f":1E-05,'
    '"g":2e+7}}', '{"mcpServers":{"a":{"x":1,"x":2,"z":3,"x":[{}]}},"apps":"./m.json"}',
    '{"mcpServers":{"a":[],"b":{},"c":[{},[]],"d":null,"e":true,"f":false,"":""}}',
    '{"mcpServers":{"f":"\\ud83d\\ude00\\u0001\\u007f\\"\\\\"}}', '{"mcpServers":{"a":1},"apps":5}',
]


@box_case("manifests")
async def manifests(b):
    """Types, members that are there twice, arrays for objects, MCP servers in the manifest."""
    for n, text in enumerate(MANIFESTS):
        at = f"{CACHE}/m/p{n:02}/1"
        b.tree({f"{at}/{MANIFEST}": text, f"{at}/skills/s/SKILL.md": skill("s"),
                f"{at}/.app.json": "app", f"{at}/.mcp.json": "mcp", f"{at}/m.json": "m",
                f"{AGENTS}/{n:02}/{MANIFEST}": text, f"{AGENTS}/{n:02}/skills/s/SKILL.md": skill("s")})
    answer = await b.call({"cwd": "file:///"})
    plugins = {p["id"][1:3]: [p["displayName"], [s["name"] for s in p["skills"]], p["files"]]
               for p in answer["plugins"]}
    names = {s["path"].removeprefix(f"file://{b.t.dir}/{AGENTS}/")[:2]: s["name"]
             for s in answer["skills"]}
    for n, text in enumerate(MANIFESTS):
        b.t.see(text, [plugins.get(f"{n:02}"), names.get(f"{n:02}")])
    b.t.see("warnings", answer["warnings"])


@box_case("plugin-content")
async def plugin_content(b):
    at = f"{CACHE}/m/p/1"
    b.tree({f"{at}/{MANIFEST}": '{"name":"p","mcpServers":"./m.json","apps":"./a.json"}',
            f"{at}/m.json": "m", f"{at}/a.json": "a", f"{at}/SKILL.md": skill("top"),
            f"{at}/skills/b/SKILL.md": skill("b"), f"{at}/skills/a/SKILL.md": skill("z"),
            f"{at}/skills/bad/SKILL.md": "bad", f"{at}/skills/bin/SKILL.md": b"\xff",
            f"{CACHE}/m/q/1/.claude-plugin/plugin.json": '{"name":"q","mcpServers":"bad"}',
            f"{CACHE}/m/q/1/.mcp.json": "default"})
    await b.ask("all")


@box_case("many-skills", slow=True)
async def many_skills(b):
    for n in range(1990):
        b.t.file(f"{AGENTS}/{n:04}/SKILL.md", skill(f"n{n}"))
    for n in range(80):
        b.t.file(f"{HOME_SKILLS}/{n:04}/SKILL.md", skill(f"h{n}"))
    answer = await b.call({"cwd": "file:///"})
    b.t.see("skills", [len(answer["skills"]), answer["skills"][-1], answer["warnings"]])


@box_case("many-bytes", slow=True)
async def many_bytes(b):
    for n in range(10):
        b.t.file(f"{AGENTS}/{n:04}/SKILL.md", skill(f"n{n}", "x" * 900_000))
    answer = await b.call({"cwd": "file:///"})
    b.t.see("skills", [[s["name"] for s in answer["skills"]], answer["warnings"]])


@box_case("many-plugins", slow=True)
async def many_plugins(b):
    for n in range(520):
        b.t.file(f"{CACHE}/m/p{n:04}/1/{MANIFEST}", "{}")
    answer = await b.call({"cwd": "file:///"})
    b.t.see("plugins", [len(answer["plugins"]), answer["plugins"][-1]["id"], answer["warnings"]])


def sandbox(*paths, deny=()):
    entries = [{"path": {"type": "path", "path": p}, "access": "read"} for p in paths]
    entries += [{"path": {"type": "path", "path": p}, "access": "deny"} for p in deny]
    return {"permissions": {"type": "managed", "file_system": {
        "type": "restricted", "entries": entries}, "network": "restricted"},
        "cwd": "file:///", "windowsSandboxLevel": "disabled"}


@box_case("sandbox")
async def confined(b):
    home = f"file://{b.t.dir}"
    b.tree({AGENTS + "/a/SKILL.md": skill("a"), AGENTS + "/secret/SKILL.md": skill("secret"),
            HOME_SKILLS + "/c/SKILL.md": skill("c"), f"{CACHE}/m/p/1/{MANIFEST}": '{"name":"p"}',
            f"{CACHE}/m/p/1/s/SKILL.md": skill("s")})
    for label, box in (("all", sandbox("file:///")), ("nothing", sandbox()),
                       ("agents", sandbox(f"{home}/home")),
                       ("deny", sandbox("file:///", deny=[f"{home}/{AGENTS}/secret"])),
                       ("deny a file", sandbox("file:///",
                                               deny=[f"{home}/{AGENTS}/secret/SKILL.md"])),
                       ("deny the plugin", sandbox("file:///", deny=[f"{home}/{CACHE}/m/p/1"])),
                       ("deny the cache", sandbox("file:///", deny=[f"{home}/{CACHE}"]))):
        await b.brief(label, sandbox=box)

"""Every field of initialize and of the process methods: absent, null, of every wrong type and at
its limits. The requests of one field share a connection."""

import copy

from harness.case import case
from harness.peer import ABSENT
from harness.values import BASE64, NUMBERS, WRONG, Literal, ask, encode, label

SANDBOXES = [
    {"permissions": {"type": kind, **more}, "windowsSandboxLevel": "disabled"} for kind, more in (
        ("disabled", {}), ("external", {"network": "enabled"}),
        ("managed", {"file_system": {"type": "unrestricted"}, "network": "enabled"}),
        ("managed", {"file_system": {"type": "restricted", "entries": []},
                     "network": "restricted"}))
] + [{"permissions": {"type": "disabled"}}]
PROXY = {"proxy": {"enabled": False, "enableSocks5": False, "enableSocks5Udp": False,
                   "allowUpstreamProxy": False, "dangerouslyAllowAllUnixSockets": False,
                   "mode": "full", "allowLocalBinding": False}}
POLICY = {"inherit": "none", "ignoreDefaultExcludes": False, "exclude": [], "set": {},
          "includeOnly": []}
SNAPSHOT = {"scopeId": "s", "shell": {"name": "bash", "path": "/bin/bash"}}

START = {"processId": "ID", "argv": ["/bin/true"], "cwd": "file:///tmp", "env": {}, "tty": False}
OPTIONAL = {"metadata": None, "envPolicy": None, "shellSnapshot": None, "pipeStdin": False,
            "arg0": None, "enforceManagedNetwork": False, "managedNetwork": None,
            "networkProxy": None, "sandbox": None}
METHODS = {
    "process/read": {"processId": "nope", "afterSeq": 0, "maxBytes": 1, "waitMs": 0},
    "process/write": {"processId": "nope", "chunk": "YQ==", "writeId": "1"},
    "process/signal": {"processId": "nope", "signal": "interrupt"},
    "process/terminate": {"processId": "nope"},
}


async def try_values(t, c, method, base, path, values):
    """Sends the method once for each value of the field at the path."""
    for n, value in enumerate(values):
        params = copy.deepcopy(base)
        if method == "process/start":
            params["processId"] = f"{'.'.join(path)}-{n}"
        place = params
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        t.see(f"{'.'.join(path)} = {label(value)}", await ask(c, method, params))


def add(method, base, path, values, name=None):
    @case(name or f"{method.split('/')[-1]}-{'.'.join(path)}")
    async def one(t):
        c = await t.connect()
        await try_values(t, c, method, base, path, values)


for _method, _base in METHODS.items():
    for _field in _base:
        add(_method, _base, [_field], [ABSENT] + WRONG + [Literal(n) for n in NUMBERS])

for _field in list(START) + list(OPTIONAL):
    add("process/start", {**START, **OPTIONAL}, [_field], [ABSENT] + WRONG + [Literal("1.0")])
for _field in POLICY:
    add("process/start", {**START, "envPolicy": POLICY}, ["envPolicy", _field],
        [ABSENT] + WRONG + ["all", "core", "none", "ALL", {"all": None}, {"A": "b"}, {"A": None},
                            {"A": 5}, [None]])
for _field in ("threadId", "toolCallId"):
    add("process/start", {**START, "metadata": {}}, ["metadata", _field], [ABSENT] + WRONG)
for _field in ("scopeId", "shell"):
    add("process/start", {**START, "shellSnapshot": SNAPSHOT}, ["shellSnapshot", _field],
        [ABSENT] + WRONG + ["x" * 256, "x" * 257])
for _field in ("name", "path"):
    add("process/start", {**START, "shellSnapshot": SNAPSHOT}, ["shellSnapshot", "shell", _field],
        [ABSENT] + WRONG + ["fish", "zsh", "sh"])
for _field in ("loopbackPorts", "allowLocalBinding", "allowUnixSockets",
               "dangerouslyAllowAllUnixSockets"):
    add("process/start", {**START, "managedNetwork": {}}, ["managedNetwork", _field],
        [ABSENT] + WRONG + [[0], [65535], [65536], [-1]])
for _field in ("argv", "env"):
    add("process/start", START, [_field],
        [["/bin/true", v] for v in WRONG] if _field == "argv" else [{"A": v} for v in WRONG],
        name=f"start-{_field}-members")
for _field in ("processId", "argv", "cwd", "env", "tty"):
    add("process/start", {**START, "processId": 5, "argv": 5, "cwd": 5, "env": 5, "tty": 5},
        [_field], [ABSENT, 5], name=f"start-several-errors-{_field}")

add("process/write", METHODS["process/write"], ["chunk"],
    BASE64, name="write-base64")
add("process/signal", METHODS["process/signal"], ["signal"],
    ["SIGINT", "Interrupt", "INTERRUPT", " interrupt", {"interrupt": None}, {"interrupt": 1},
     {"kill": None}, ["interrupt"]], name="signal-names")
add("process/start", START, ["sandbox"], SANDBOXES, name="start-sandbox-kinds")
add("process/start", START, ["networkProxy"], [PROXY, {"proxy": None}, {"proxy": {}}],
    name="start-network-proxy-kinds")


@case("start-order-of-errors")
async def order_of_errors(t):
    """Which of several errors is reported, for two orders of the members."""
    bad = {"processId": 5, "argv": "x", "cwd": None, "env": [], "tty": "x"}
    c = await t.connect()
    t.see("declared order", await c.call("process/start", bad))
    t.see("other order", await c.call("process/start", dict(reversed(bad.items()))))
    t.see("bad and missing", await c.call("process/start", {"tty": 5}))
    t.see("bad URI and bad type", await c.call("process/start", {"cwd": "x", "argv": 5}))
    t.see("bad type and bad URI", await c.call("process/start", {"argv": 5, "cwd": "x"}))
    # What is missing comes last, behind every value that cannot be used.
    for name, params in {
            "URI": {"processId": "x", "cwd": "rel"}, "policy": {"envPolicy": {"inherit": "ALL"}},
            "sandbox": {"sandbox": {"permissions": 5}}, "member": {"sandbox": {}},
            "URI and sandbox": {"cwd": "rel", "sandbox": 5},
            "sandbox and URI": {"sandbox": 5, "cwd": "rel"}}.items():
        t.see(f"missing and bad {name}", await c.call("process/start", params))
    t.see("missing and bad Base64", await c.call("process/write", {"chunk": "!", "writeId": "a"}))
    for method, params in {
            "readFile": {"sandbox": {}}, "writeFile": {"path": "rel"}, "walk": {"path": "rel"},
            "copy": {"destinationPath": "rel"}, "writeBlock": {"chunk": "!"},
            "open": {"mode": "x"}, "remove": {"path": "rel", "recursive": 5}}.items():
        t.see(f"{method}: missing and bad", await c.call(f"fs/{method}", params))


@case("nul-in-quoted-values")
async def nul_in_quotes(t):
    c = await t.connect()
    policy = {"inherit": "a\0b", "ignoreDefaultExcludes": False, "exclude": [], "set": {},
              "includeOnly": []}
    t.see("variant", await c.call("process/start", {**START, "envPolicy": policy}))
    t.see("type", await c.call("process/start", {**START, "tty": "a\0b"}))
    t.see("profile", await c.call("process/start", {
        **START, "sandbox": {"permissions": {"type": "a\0b"}}}))
    t.see("unknown process", await c.call("process/read", {"processId": "a\0b"}))
    t.see("unknown method", await c.call("no\0method", {}))


@case("start-id-length")
async def id_length(t):
    c = await t.connect()
    for n in (0, 256, 4096):
        t.see(f"{n} bytes", await c.finish_of(["/bin/true"], processId="x" * n))


@case("start-id-of-5000-bytes")
async def long_id(t):
    c = await t.connect()
    answer = await c.call("process/start", {**START, "processId": "x" * 5000})
    t.see("answer", answer if isinstance(answer, str) else "accepted")


@case("whole-params")
async def whole_params(t):
    c = await t.connect()
    for method in ["process/start", *METHODS]:
        for value in [ABSENT] + [v for v in WRONG if not isinstance(v, list)]:
            answer = await c.call(method, value)
            t.see(f"{method} {label(value)}", answer)


INITIALIZE = {
    "clientName": [ABSENT] + WRONG + ["x" * 4096],
    "resumeSessionId": [ABSENT] + WRONG,
}


def add_initialize(field):
    @case(f"initialize-{field}")
    async def one(t):
        for value in INITIALIZE[field]:
            c = await t.open()
            params = {"clientName": "x", "extra": 1, field: value}
            c.send('{"id":1,"method":"initialize","params":%s}' % encode(params))
            message = await c.take(1)
            t.see(f"{field} = {label(value)}",
                  f"error {message['error']['code']}: {message['error']['message']}"
                  if "error" in message else sorted(message["result"]))
            await c.close()


for _field in INITIALIZE:
    add_initialize(_field)


@case("initialize-whole-params")
async def initialize_whole(t):
    for value in [ABSENT] + [v for v in WRONG if not isinstance(v, list)]:
        c = await t.open()
        t.see(label(value), await c.call("initialize", value))
        await c.close()

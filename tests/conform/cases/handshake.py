"""Lifecycle: what is answered before, between and after initialize and initialized."""

from harness.case import case
from harness.peer import ABSENT, brief

START = {"processId": "p", "argv": ["/bin/true"], "cwd": "file:///tmp", "env": {}, "tty": False}

METHODS = [
    ("process/start", START),
    ("process/read", {"processId": "p"}),
    ("process/write", {"processId": "p", "chunk": "", "writeId": "1"}),
    ("process/signal", {"processId": "p", "signal": "interrupt"}),
    ("process/terminate", {"processId": "p"}),
    ("environment/info", ABSENT),
    ("environment/status", ABSENT),
    ("nope", ABSENT),
    ("initialized", ABSENT),
]

# Methods of later parts of the server.
BAD_PARAMS = [
    ("process/start", {}), ("process/read", {}), ("process/write", {}), ("process/signal", {}),
    ("process/terminate", {}), ("process/terminate", ABSENT), ("environment/info", {"x": 1}),
    ("environment/status", []),
]


@case("before-initialize")
async def before_initialize(t):
    c = await t.open()
    for method, params in METHODS:
        t.see(method, await c.call(method, params))
    for i, (method, params) in enumerate(BAD_PARAMS):
        t.see(f"bad params {i} {method}", await c.call(method, params))


@case("before-initialized")
async def before_initialized(t):
    c = await t.open()
    await c.call("initialize", {"clientName": "x"})
    for method, params in METHODS:
        t.see(method, await c.call(method, params))
    for i, (method, params) in enumerate(BAD_PARAMS):
        t.see(f"bad params {i} {method}", await c.call(method, params))


@case("initialized-first")
async def initialized_first(t):
    c = await t.open()
    t.see("initialized", await c.exchange('{"method":"initialized"}'))


@case("notification-first")
async def notification_first(t):
    c = await t.open()
    t.see("environment/status", await c.exchange('{"method":"environment/status"}'))


@case("initialize-result")
async def initialize_result(t):
    c = await t.open()
    answer = await c.take(c.post("initialize", {"clientName": "x"}))
    t.learn_session(answer)
    t.see("initialize", brief(answer))
    c.send('{"method":"initialized"}')
    info = await c.call("environment/info")
    t.see("environment/info is the same object", info == answer["result"]["environmentInfo"])
    t.see("environment/info null", await c.call("environment/info", None))
    t.see("environment/status", await c.call("environment/status"))


@case("empty-tmpdir")
async def empty_tmpdir(t):
    info = await (await t.connect("empty-tmpdir")).call("environment/info")
    t.see("tempDir", info["tempDir"].replace(t.side.cwd, "CWD"))
    t.see("temporaryDirectories", info["temporaryDirectories"])


@case("initialize-twice")
async def initialize_twice(t):
    c = await t.connect()
    t.see("again", await c.call("initialize", {"clientName": "x"}))
    t.see("unknown session", await c.call("initialize", {"clientName": "x",
                                                         "resumeSessionId": "nope"}))
    t.see("bad params win", await c.call("initialize", {"clientName": 5}))
    t.see("still usable", await c.call("environment/status"))


@case("failed-initialize-may-be-repeated")
async def failed_initialize(t):
    c = await t.open()
    for label, params in [("no params", ABSENT), ("{}", {}), ("null", None),
                          ("unknown", {"clientName": "x", "resumeSessionId": "nope"}),
                          ("empty", {"clientName": "x", "resumeSessionId": ""}),
                          ("uuid", {"clientName": "x", "resumeSessionId":
                                    "00000000-0000-4000-8000-000000000000"}),
                          ("snake case", {"client_name": "x"})]:
        t.see(label, await c.call("initialize", params))
    t.see("still before initialize", await c.call("process/read", {"processId": "p"}))
    await c.hello(resumeSessionId=None, capabilities={}, extra=1)
    t.see("usable", await c.call("environment/status", {}))


@case("pipelined")
async def pipelined(t):
    c = await t.open()
    c.post("initialize", {"clientName": "p"}, 1)
    c.send('{"method":"initialized"}')
    c.post("environment/status", ABSENT, 2)
    first = await c.take(1)
    t.learn_session(first)
    t.see("initialize", sorted(first["result"]))
    t.see("status", brief(await c.take(2)))
    t.see("process", await c.finish_of(["echo", "x"]))


@case("duplicate-ids")
async def duplicate_ids(t):
    c = await t.connect()
    for _ in range(3):
        c.post("environment/status", ABSENT, 7)
    t.see("answers", [await c.take(7) for _ in range(3)])


@case("april-session")
async def april_session(t):
    """The example of the April interface; the reference of today refuses parts of it."""
    c = await t.open()
    t.learn_session(await c.take(c.post("initialize", {"clientName": "example-client"})))
    c.send('{"method":"initialized","params":{}}')
    script = r"""printf 'ready\n'; while IFS= read -r line; do printf 'echo:%s\n' "$line"; done"""
    p = await c.start(["bash", "-lc", script], processId="proc-1", cwd="/tmp", tty=True,
                      pipeStdin=False, arg0=None)
    t.see("start", p.response)
    t.see("write", await c.call("process/write", {"processId": "proc-1", "chunk": "aGVsbG8K"}))
    if isinstance(p.response, dict):
        await p.until_text("echo:hello", "pty")
        t.see("terminate", await p.terminate())
        t.see("end", (await p.until_closed()).summary())

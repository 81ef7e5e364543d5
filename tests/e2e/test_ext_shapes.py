"""Shapes of process/start, what an operator can switch off, process/started and process/failed."""

import pytest

from harness import procfs
from harness.rpc import PATH
from harness.waiting import patiently

DISABLED = {"permissions": {"type": "disabled"}}


def flat(client, script="exit 3", **options):
    return client.start_params(script, **options)


def prepared(client, command=("/bin/sh", "-c", "exit 3"), io=None, **request):
    return {"prepared": {
        "processId": client.new_name(),
        "request": {"command": list(command), "cwd": "file:///tmp", "env": {"PATH": PATH},
                    **request},
        "io": {"type": "pipe"} if io is None else io}}


def run(client, params):
    result = client.call("process/start", params)
    assert set(result) == {"processId", "sandboxType"}
    return client.wait_closed(client.processes[result["processId"]])


@pytest.mark.parametrize("word", ["direct", "Direct"])
def test_direct(client, word):
    assert run(client, {word: flat(client)}).exit_code == 3


def test_direct_with_everything(client):
    def attempt(limit):
        params = flat(client, "stty size; cat", size={"rows": 5, "cols": 6}, tty=True,
                      arg0="name", timeoutMs=limit)
        process = run(client, {"direct": params})
        assert process.exited["timedOut"] is True
        return True if b"5 6" in process.output() else None
    patiently(attempt, 300)


@pytest.mark.parametrize("word", ["prepared", "Prepared"])
def test_prepared(client, word):
    params = prepared(client)
    assert run(client, {word: params["prepared"]}).exit_code == 3


def test_prepared_is_run_as_it_is(client):
    params = prepared(client, ["/bin/sh", "-c", "echo $0 $V; pwd"], arg0="name", cwd="/usr",
                      env={"V": "value"})
    assert run(client, params).output() == b"name value\n/usr\n"


def test_flat_wins(client):
    """An object with processId is flat, whatever else it has."""
    params = flat(client, "exit 5", direct={"processId": "other"}, prepared=None)
    assert run(client, params).exit_code == 5


def test_order_of_requests_that_name_a_wrapped_process(client, undecided):
    """A terminate does not overtake the start that it is about, whatever the start's shape."""
    first = client.send("process/start", client.start_params([undecided.path, "-c", "true"]))
    inner = flat(client, "sleep 1000")
    start = client.send("process/start", {"direct": inner})
    end = client.send("process/terminate", {"processId": inner["processId"]})
    client.sync()
    undecided.decide()
    client.result(first)
    client.result(start)
    assert client.result(end) == {"running": True}
    client.wait_closed(client.processes[inner["processId"]])


# io.

@pytest.mark.parametrize("io, output", [
    ({"type": "pty"}, b"24 80"), ({"type": "pty", "rows": 3, "cols": 4}, b"3 4"),
    ({"type": "pty", "rows": None, "cols": None}, b"24 80"),
    ({"type": "Pty", "rows": 3, "cols": 4}, b"3 4"), ({"Pty": {"rows": 3, "cols": 4}}, b"3 4"),
    ({"pty": {"rows": 3, "cols": 4}}, b"3 4"), ({"Pty": {}}, b"24 80"), ("Pty", b"24 80"),
    ("pty", b"24 80")])
@pytest.mark.parametrize("shape", ["flat", "tty", "prepared"])
def test_terminal(client, io, output, shape):
    params = flat(client, "stty size", io=io, tty=True)
    if shape == "flat":
        del params["tty"]
    if shape == "prepared":
        params = prepared(client, ["/bin/sh", "-c", "stty size"], io)
    assert run(client, params).output().strip() == output


@pytest.mark.parametrize("mode", ["open", "closed", None, "Open", "Closed"])
@pytest.mark.parametrize("form", ["pipe", "Pipe", "type"])
@pytest.mark.parametrize("shape", ["flat", "prepared"])
def test_pipes(client, mode, form, shape):
    """Without a word about stdin it is closed."""
    io = {"type": "pipe", "stdin": mode} if form == "type" else {form: {"stdin": mode}}
    params = flat(client, "cat; exit 6", io=io)
    del params["tty"]
    if shape == "prepared":
        params = prepared(client, ["/bin/sh", "-c", "cat; exit 6"], io)
    process = client.processes[client.call("process/start", params)["processId"]]
    if mode in ("open", "Open"):
        assert client.write(process, "x", closeStdin=True) == {"status": "accepted"}
    client.wait_closed(process)
    assert process.exit_code == 6 and process.output() == (
        b"x" if mode in ("open", "Open") else b"")


@pytest.mark.parametrize("extra", [
    {"io": {"type": "pty"}, "tty": False},
    {"io": {"type": "pty", "stdin": "open"}},
    {"io": {"type": "pty", "rows": 1, "cols": 1}, "size": {"rows": 1, "cols": 1}},
    {"io": {"type": "pipe"}, "tty": True},
    {"io": {"type": "pipe", "stdin": "open"}, "pipeStdin": False},
    {"io": {"type": "pipe", "stdin": "closed"}, "pipeStdin": True},
    {"io": {"type": "pipe"}, "pipeStdin": True},
    {"io": {"type": "pipe", "rows": 1, "cols": 1}},
])
def test_contradictions(client, extra):
    params = flat(client)
    del params["tty"]
    assert client.error("process/start", {**params, **extra}) == (
        -32602, "io contradicts tty, pipeStdin or size")


@pytest.mark.parametrize("io, text", [
    ({}, "missing field `type`"),
    ({"type": "file"}, "unknown variant `file`, expected `pty` or `pipe`"),
    ({"type": "pipe", "stdin": "ajar"}, "unknown variant `ajar`, expected `open` or `closed`"),
    ({"type": "pty", "rows": 1}, "rows and cols go together"),
    ({"type": "pty", "cols": 1}, "rows and cols go together"),
    ({"type": "pty", "rows": 0, "cols": 1}, "rows and cols must be at least 1"),
    ({"Pty": 5}, "invalid type: number, expected struct ProcessIo"),
    ({"Pty": {}, "Pipe": {}}, "missing field `type`"),
    ({"PTY": {}}, "unknown variant `PTY`, expected `pty` or `pipe`"),
    ({"Pipe": {"stdin": "OPEN"}}, "unknown variant `OPEN`, expected `open` or `closed`"),
    (5, "invalid type: number, expected string or map"),
])
def test_bad_io(client, io, text):
    params = flat(client, io=io)
    del params["tty"]
    assert client.error("process/start", params) == (-32602, text)
    assert client.error("process/start", prepared(client, io=io)) == (-32602, text)


def test_neither_tty_nor_io(client):
    params = flat(client)
    del params["tty"]
    assert client.error("process/start", params) == (-32602, "missing field `tty`")
    params["io"] = None
    assert client.error("process/start", params) == (-32602, "missing field `tty`")


@pytest.mark.parametrize("change, text", [
    ({"processId": None}, "missing field `processId`"),
    ({"request": None}, "missing field `request`"),
    ({"io": None}, "missing field `io`"),
    ({"sandbox": DISABLED}, "a prepared start takes no sandbox"),
    ({"managedNetwork": {}}, "a prepared start takes no sandbox"),
    ({"networkProxy": {}}, "a prepared start takes no sandbox"),
    ({"enforceManagedNetwork": True}, "a prepared start takes no sandbox"),
])
def test_bad_prepared(client, change, text):
    inner = {**prepared(client)["prepared"], **change}
    inner = {k: v for k, v in inner.items() if v is not None}
    assert client.error("process/start", {"prepared": inner}) == (-32602, text)


def test_bad_prepared_request(client):
    for field in ("command", "cwd", "env"):
        params = prepared(client)
        del params["prepared"]["request"][field]
        assert client.error("process/start", params) == (-32602, f"missing field `{field}`")
    assert client.error("process/start", prepared(client, [])) == (
        -32602, "argv must not be empty")
    assert client.error("process/start", {"direct": 1})[0] == -32602
    assert client.error("process/start", {"prepared": []})[0] == -32602


@pytest.mark.parametrize("beside", [
    {"sandbox": DISABLED}, {"sandbox": {"permissions": {"type": "managed"}}}, {"sandbox": None},
    {"limits": {"openFiles": 10}}, {"timeoutMs": 1}, {"enforceManagedNetwork": True},
    {"unknown": 1}])
@pytest.mark.parametrize("word", ["direct", "Direct", "prepared", "Prepared"])
@pytest.mark.parametrize("first", [True, False])
def test_nothing_beside_the_shape(client, word, beside, first):
    """What stands there would have no effect: a sandbox, above all."""
    inner = flat(client) if word.lower() == "direct" else prepared(client)["prepared"]
    params = {word: inner, **beside} if first else {**beside, word: inner}
    assert client.error("process/start", params) == (
        -32602, "direct and prepared stand alone in the params")
    names = [entry["processId"] for entry in client.call("process/list")["processes"]]
    assert inner["processId"] not in names


def test_network_members_that_say_nothing(client):
    params = prepared(client)
    params["prepared"].update(sandbox=None, managedNetwork=None, networkProxy=None,
                              enforceManagedNetwork=False)
    assert run(client, params).exit_code == 3


@pytest.mark.parametrize("member", [{"limits": {"openFiles": 10}}, {"timeoutMs": 1}])
def test_prepared_takes_limits(client, member):
    """A limit is never left out without a word."""
    params = prepared(client, ["/bin/sh", "-c", "ulimit -n; sleep 1000"], io={"type": "pipe"})
    params["prepared"].update(member)
    name = client.call("process/start", params)["processId"]
    process = client.processes[name]
    if "limits" in member:
        client.wait_output(process, "\n")
        assert process.output() == b"10\n"
        client.terminate(process)
    assert ("timedOut" in client.wait_closed(process).exited) == ("timeoutMs" in member)


# What an operator can switch off.

def test_direct_not_allowed(fleet):
    """Direct is what no sandbox confines, whatever it is called."""
    client = fleet.start("--allow-direct-exec", "false").client()
    refusal = -32600, "direct execution is disabled on this server"
    assert client.error("process/start", flat(client)) == refusal
    assert client.error("process/start", flat(client, sandbox=None)) == refusal
    assert client.error("process/start", {"direct": flat(client)}) == refusal
    free = {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "enabled"}
    for permissions in ({"type": "disabled"}, {"type": "external", "network": "enabled"}, free):
        sandbox = {"permissions": permissions}
        assert client.error("process/start", flat(client, sandbox=sandbox)) == refusal
        assert client.error("process/start", {"direct": flat(client, sandbox=sandbox)}) == refusal
    managed = flat(client, sandbox=DISABLED, enforceManagedNetwork=True)
    assert run(client, managed).exit_code == 3
    confined = {"permissions": {"type": "external", "network": "restricted"}}
    assert run(client, flat(client, sandbox=confined)).exit_code == 3
    assert run(client, prepared(client)).exit_code == 3


def test_prepared_not_allowed(fleet):
    client = fleet.start("--allow-prepared-exec", "false").client()
    assert client.error("process/start", prepared(client)) == (
        -32600, "prepared execution is disabled on this server")
    assert run(client, flat(client)).exit_code == 3
    assert run(client, {"direct": flat(client)}).exit_code == 3


def test_refusal_leaves_the_id_free(fleet):
    client = fleet.start("--allow-prepared-exec", "false").client()
    params = prepared(client)
    assert client.error("process/start", params)[0] == -32600
    assert client.call("process/list") == {"processes": []}
    name = params["prepared"]["processId"]
    assert run(client, flat(client, processId=name)).exit_code == 3


def test_process_limit(fleet):
    """Of a session; processes that have closed do not count."""
    server = fleet.start("--max-processes", "3")
    client = server.client()
    running = [client.start("read go", pipeStdin=True) for _ in range(3)]
    full = -32600, "process limit reached (3)"
    assert client.start_error("true") == full
    assert server.client().run("exit 4").exit_code == 4
    client.end()
    client = server.client(resume=client.session)
    client.processes.update({p.name: p for p in running})
    assert client.start_error("true") == full
    client.ask("closeStdin", running[0])
    client.wait_closed(running[0])
    assert client.run("exit 5").exit_code == 5
    token = procfs.mark()
    held = client.start(f"sleep {token} & exit 0")
    client.wait_exited(held)
    # Exited is not closed.
    assert client.start_error("true") == full
    for pid in procfs.wait_marked(token):
        procfs.kill(pid)
    client.wait_closed(held)
    assert client.start_error(["/nonexistent"])[0] == -32603
    assert client.run("exit 6").exit_code == 6


def test_process_limit_counts_starts(fleet, undecided):
    client = fleet.start("--max-processes", "1", "--concurrent-requests", "4").client()
    start = client.send("process/start", client.start_params([undecided.path, "-c", "true"]))
    assert client.start_error("true") == (-32600, "process limit reached (1)")
    undecided.decide()
    client.result(start)


# process/started and process/failed.

BOTH = ["process/started", "process/failed"]


def test_started(server):
    """It follows the answer and precedes the output, and takes no number."""
    client = server.client(notifications=BOTH)
    process = client.run("echo $$; exit 3")
    message, = client.other
    assert list(message) == ["method", "params"] and message["method"] == "process/started"
    params = message["params"]
    assert set(params) == {"processId", "pid", "startedAtMs"}
    assert params["processId"] == process.name and params["pid"] == int(process.output())
    entry, = client.call("process/list")["processes"]
    assert params["startedAtMs"] == entry["startedAtMs"]


def test_order_of_started(server):
    client = server.client(notifications=BOTH)
    ident = client.send("process/start", client.start_params(["/bin/echo", "x"], processId="p"))
    seen = []
    while len(seen) < 5:
        message = client.pump()
        seen.append(message.get("method") or message["id"])
    assert seen == [ident, "process/started", "process/output", "process/exited", "process/closed"]


def test_failed(server):
    client = server.client(notifications=BOTH)
    params = client.start_params(["/nonexistent"])
    code, text = client.error("process/start", params)
    client.barrier()
    assert (code, text) == (-32603, "No such file or directory (os error 2)")
    assert client.other == [{"method": "process/failed", "params": {
        "processId": params["processId"], "message": text}}]


def test_cancelled(fleet, undecided):
    server = fleet.start("--concurrent-requests", "4")
    client = server.client(notifications=BOTH)
    params = client.start_params([undecided.path, "-c", "true"])
    start = client.send("process/start", params)
    assert client.terminate(params["processId"]) == {"running": True}
    text = f"process {params['processId']} start was cancelled"
    assert client.answer(start)["error"] == {"code": -32600, "message": text}
    client.barrier()
    assert client.other == [{"method": "process/failed", "params": {
        "processId": params["processId"], "message": text}}]


def test_started_reaches_the_connection_that_resumed(fleet, undecided):
    server = fleet.start("--concurrent-requests", "4")
    client = server.client(notifications=BOTH)
    params = client.start_params([undecided.path, "-c", "exit 3"])
    client.send("process/start", params)
    client.call("process/list")
    client.end()
    again = server.client(resume=client.session, notifications=BOTH)
    undecided.decide()
    again.wait(lambda: again.other, "process/started")
    assert again.other[0]["params"]["processId"] == params["processId"]
    assert again.ask("wait", params["processId"])["exitCode"] == 3


@pytest.mark.parametrize("asked", [None, [], ["process/exited"], ["x"]])
def test_not_asked_for(server, asked):
    client = server.connect()
    client.initialize(notifications=asked)
    client.run("true")
    client.start_error(["/nonexistent"])
    client.barrier()
    assert not client.other


@pytest.mark.parametrize("asked", BOTH)
def test_only_what_was_asked_for(server, asked):
    client = server.client(notifications=[asked])
    client.run("true")
    client.start_error(["/nonexistent"])
    client.barrier()
    assert [m["method"] for m in client.other] == [asked]


def test_resume_asks_anew(server):
    client = server.client(notifications=BOTH)
    client.run("true")
    assert client.other
    client.end()
    again = server.client(resume=client.session)
    again.run("true")
    again.barrier()
    assert not again.other


@pytest.mark.parametrize("value", ["process/started", 1, [1], {}, [None]])
def test_bad_notifications(server, value):
    client = server.connect()
    assert client.error("initialize", {"clientName": "x", "notifications": value})[0] == -32602
    client.initialize()

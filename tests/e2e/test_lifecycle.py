"""The handshake: initialize, initialized, and what is refused before."""

import os
import re

import pytest

EXEC = [
    ("process/start", {"processId": "p", "argv": ["true"], "cwd": "/", "env": {}, "tty": False}),
    ("process/read", {"processId": "p"}),
    ("process/write", {"processId": "p", "chunk": "", "writeId": "1"}),
    ("process/signal", {"processId": "p", "signal": "interrupt"}),
    ("process/terminate", {"processId": "p"}),
]
METHODS = [(m, p, "exec") for m, p in EXEC] + [
    ("environment/info", None, "environment info"),
    ("environment/status", {}, "environment status"),
]


@pytest.fixture
def fresh(shared):
    """A connection on which nothing was sent."""
    made = shared.connect()
    yield made
    made.close()


@pytest.mark.parametrize("method, params, family", METHODS)
def test_before_initialize(fresh, method, params, family):
    assert fresh.error(method, params) == (
        -32600, f"client must call initialize before using {family} methods")


@pytest.mark.parametrize("method, params, family", METHODS)
def test_before_initialized(fresh, method, params, family):
    fresh.call("initialize", {"clientName": "x"})
    assert fresh.error(method, params) == (
        -32600, f"client must send initialized before using {family} methods")
    fresh.notify("initialized", {})
    fresh.sync()


@pytest.mark.parametrize("stage", ["nothing", "initialize"])
def test_params_are_checked_first(fresh, stage):
    if stage == "initialize":
        fresh.call("initialize", {"clientName": "x"})
    assert fresh.error("process/terminate", {}) == (-32602, "missing field `processId`")
    assert fresh.error("process/read", {"processId": "p", "afterSeq": -1}) == (
        -32602, "invalid number")
    assert fresh.error("environment/status", [1])[0] == -32602
    assert fresh.error("nope")[0] == -32601


def test_pipelined_handshake(fresh):
    ws = fresh.transport
    first = fresh.encode("initialize", {"clientName": "x"})
    second = fresh.encode("environment/status")
    for text in (first[1], '{"method":"initialized"}', second[1]):
        ws.send_text(text)
    assert "sessionId" in fresh.result(first[0])
    assert fresh.result(second[0]) == {"status": "ready"}


def test_result(fresh):
    result = fresh.call("initialize", {"clientName": "x"})
    assert set(result) == {"sessionId", "environmentInfo"}
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        result["sessionId"])
    info = result["environmentInfo"]
    assert set(info) >= {"shell", "executorVersion", "cwd", "userHomeDir", "platformOs",
                         "temporaryDirectories", "tempDir", "capabilities"}


@pytest.mark.parametrize("login", [
    "/usr/sbin/nologin", "/bin/false", "/bin/dash", "/usr/bin/python3", "/nowhere/zsh", ""])
def test_shell_can_run_commands(fleet, tmp_path, login):
    """Whatever shell the user has, the one that clients are told of runs their scripts."""
    passwd = tmp_path / "passwd"
    passwd.write_text(f"user:x:{os.getuid()}:0::/:{login}\n")
    script = f"mount --bind {passwd} /etc/passwd && exec \"$@\""
    flags = "-m" if os.getuid() == 0 else "-rm"
    server = fleet.start(wrapper=("unshare", flags, "sh", "-c", script, "sh"))
    client = server.connect()
    info = client.call("initialize", {"clientName": "x"})["environmentInfo"]
    client.notify("initialized", {})
    shell = info["shell"]
    assert shell["name"] in ("bash", "sh") and shell["path"].endswith("/" + shell["name"])
    process = client.run([shell["path"], "-lc", "echo runs"])
    assert process.output() == b"runs\n"


def test_session_ids_differ(shared):
    ids = set()
    for _ in range(20):
        client = shared.client()
        ids.add(client.session)
        client.close()
    assert len(ids) == 20


@pytest.mark.parametrize("params, text", [
    (None, "invalid type: null, expected struct InitializeParams"),
    ({}, "missing field `clientName`"),
    ({"client_name": "x"}, "missing field `clientName`"),
    ({"clientName": 5}, "invalid type: number, expected a string"),
    ({"clientName": None}, "invalid type: null, expected a string"),
    ({"clientName": "x", "resumeSessionId": 5}, "invalid type: number, expected a string"),
    ({"clientName": "x", "resumeSessionId": ["a"]}, "invalid type: sequence, expected a string"),
])
def test_bad_params_may_be_corrected(fresh, params, text):
    assert fresh.error("initialize", params) == (-32602, text)
    fresh.initialize()
    fresh.sync()


@pytest.mark.parametrize("params", [[], ["x"], ["x", None]])
def test_array_params_are_refused(fresh, params):
    assert fresh.error("initialize", params)[0] == -32602
    fresh.initialize()


@pytest.mark.parametrize("session", ["nope", "", "00000000-0000-4000-8000-000000000000", "é\n",
                                     "x" * 1000])
def test_failed_resume_may_be_followed_by_a_new_session(fresh, session):
    assert fresh.error("initialize", {"clientName": "x", "resumeSessionId": session}) == (
        -32600, f"unknown session id {session}")
    fresh.initialize()
    fresh.sync()


@pytest.mark.parametrize("params", [
    {"clientName": ""}, {"clientName": "x", "resumeSessionId": None},
    {"clientName": "é" * 1000, "capabilities": {}, "extra": [1]}])
def test_accepted_params(fresh, params):
    assert "sessionId" in fresh.call("initialize", params)


def test_only_once(fresh):
    fresh.initialize()
    once = (-32600, "initialize may only be sent once per connection")
    assert fresh.error("initialize", {"clientName": "x"}) == once
    assert fresh.error("initialize", {"clientName": "x", "resumeSessionId": "nope"}) == once
    assert fresh.error("initialize", {})[0] == -32602
    fresh.sync()


def test_only_once_before_initialized(fresh):
    fresh.call("initialize", {"clientName": "x"})
    assert fresh.error("initialize", {"clientName": "x"})[0] == -32600


def test_early_initialized_keeps_the_connection(fresh):
    fresh.notify("initialized", {})
    assert fresh.answer(-1)["error"]["code"] == -32600
    assert fresh.error("environment/status")[1].startswith("client must call initialize")
    fresh.call("initialize", {"clientName": "x"})
    assert fresh.error("environment/status")[1].startswith("client must send initialized")
    fresh.notify("initialized")
    fresh.sync()


def test_initialized_as_a_request(fresh):
    fresh.initialize()
    assert fresh.error("initialized", {})[0] == -32601

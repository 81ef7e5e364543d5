"""The stdio transport: one JSON document per line."""

import json
import subprocess

import pytest

from harness import procfs
from harness.server import environment
from harness.settings import BINARY, SANITIZED
from harness.waiting import until

MIB = 1 << 20
PREFIX = "failed to parse JSON-RPC message from exec-server stdio: "
READY = {"status": "ready"}


@pytest.fixture
def client(fleet):
    return fleet.stdio()


@pytest.mark.parametrize("listen", ["stdio", "stdio://"])
def test_session(fleet, listen):
    client = fleet.stdio(listen=listen)
    process = client.run("printf out; printf err >&2; exit 3")
    assert process.output("stdout") == b"out"
    assert process.output("stderr") == b"err"
    assert process.exit_code == 3
    client.transport.close_stdin()
    assert client.transport.rest() == []
    assert client.transport.wait() == 0


def test_nothing_is_printed_at_start(fleet):
    client = fleet.stdio(initialize=False)
    client.transport.close_stdin()
    assert client.transport.rest() == []
    assert client.transport.wait() == 0


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends(client, end):
    client.transport.send_bytes(b'{"id":50,"method":"environment/status"}' + end)
    assert client.answer(50) == {"id": 50, "result": READY}


def test_blank_lines_and_blanks(client):
    client.transport.send_bytes(b'\n  \n\t\r\n   {"id":50,"method":"environment/status"} \t \n\n')
    assert client.answer(50) == {"id": 50, "result": READY}
    assert client.quiet()


def test_many_lines_in_one_write_and_one_line_in_many(client):
    line = b'{"id":50,"method":"environment/status"}\n'
    client.transport.send_bytes(line * 500)
    for _ in range(500):
        assert client.answer(50)["result"] == READY
    for byte in line:
        client.transport.send_bytes(bytes([byte]))
    assert client.answer(50)["result"] == READY


def test_answers_are_single_lines(client):
    client.send_raw('{"id":"a\\nb","method":"x\\r\\ny"}')
    line = client.transport.receive()
    assert json.loads(line)["id"] == "a\nb"
    client.sync()


@pytest.mark.parametrize("text", [
    "nonsense", "[]", "{}", '{"id":null,"method":"x"}', '{"a":1,"a":2}'])
def test_malformed_line(client, text):
    client.send_raw(text)
    error = client.answer(-1)["error"]
    assert error["code"] == -32600 and error["message"].startswith(PREFIX)
    client.sync()


@pytest.mark.parametrize("text", ['{"method":"stray"}', '{"id":9,"result":1}'])
def test_stray_message_keeps_the_connection(client, text):
    client.send_raw(text)
    assert client.answer(-1)["error"]["code"] == -32600
    client.sync()


def test_early_initialized(fleet):
    client = fleet.stdio(initialize=False)
    client.notify("initialized", {})
    assert client.answer(-1)["error"]["code"] == -32600
    client.initialize()
    client.sync()


def test_requests_before_the_end_are_answered(client):
    idents = [client.send("environment/status") for _ in range(300)]
    client.transport.close_stdin()
    for ident in idents:
        assert client.result(ident) == READY
    assert client.transport.rest() == []
    assert client.transport.wait() == 0


def test_whole_session_from_a_file(tmp_path):
    """Input and output may be regular files."""
    params = {"processId": "p", "argv": ["/bin/echo", "hi"], "cwd": "/", "env": {}, "tty": False}
    requests = [
        {"id": 1, "method": "initialize", "params": {"clientName": "file"}},
        {"method": "initialized"},
        {"id": 2, "method": "process/start", "params": params},
        {"id": 3, "method": "environment/status"},
        {"id": 4, "method": "process/signal",
         "params": {"processId": "none", "signal": "interrupt"}},
    ]
    (tmp_path / "in").write_text("".join(json.dumps(r) + "\n" for r in requests))
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        code = subprocess.run([BINARY, "--listen", "stdio"], stdin=source, stdout=target,
                              stderr=subprocess.DEVNULL, env=environment(), timeout=120,
                              check=False).returncode
    assert code == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert sorted(a["id"] for a in answers if "id" in a) == [1, 2, 3, 4]
    assert all("result" in a for a in answers if "id" in a)


def test_end_kills_processes_at_once(client):
    token = procfs.mark()
    client.start(f"trap '' TERM HUP INT; sleep {token} & setsid sleep {token} & sleep {token}")
    client.start(["/bin/sleep", token], tty=True)
    procfs.wait_marked(token, 4)
    client.transport.close_stdin()
    assert client.transport.wait() == 0
    assert procfs.wait_marked(token, 0) == []


def test_end_during_a_long_poll(client):
    process = client.start("sleep 1000")
    client.send("process/read", {"processId": process.name, "waitMs": 10**9})
    client.send("process/read", {"processId": process.name, "waitMs": 2**64 - 1})
    client.transport.close_stdin()
    client.transport.rest()
    assert client.transport.wait() == 0


def test_end_before_initialize_with_half_a_line(fleet):
    client = fleet.stdio(initialize=False)
    client.transport.send_bytes(b'{"id":1,"method":')
    client.transport.close_stdin()
    assert client.transport.wait() == 0


def test_line_over_the_limit(client):
    transport = client.transport
    try:
        transport.send_bytes(b" " * (64 * MIB + 1))
        transport.send_bytes(b"\n")
    except BrokenPipeError:
        pass
    assert transport.wait() == 0


def test_largest_line(client):
    line = b'{"id":50,"method":"environment/status"}'
    client.transport.send_bytes(line + b" " * (64 * MIB - len(line)) + b"\n")
    assert client.answer(50)["result"] == READY


def test_line_that_is_not_utf8(client):
    client.transport.send_bytes(b'{"id":"\xff","method":"environment/status"}\n')
    client.transport.rest()
    assert client.transport.wait() == 0


def test_closed_stdout_ends_the_server(client):
    client.transport.popen.stdout.close()
    client.send("environment/status")
    assert client.transport.wait() == 0


def test_reader_that_stalls(client):
    size = 50_000_001
    process = client.start(f"head -c{size} /dev/zero")
    until(lambda: any(procfs.writing(p) for p in procfs.marked(f"-c{size}")), "a blocked child")
    if not SANITIZED:
        assert procfs.rss(client.transport.pid) < 24 * MIB
    client.wait_closed(process)
    assert len(process.output()) == size


def test_resume_is_unknown(fleet):
    client = fleet.stdio(initialize=False)
    assert client.error("initialize", {"clientName": "x", "resumeSessionId": "gone"}) == (
        -32600, "unknown session id gone")
    client.initialize()
    client.sync()


def test_sigterm(client):
    token = procfs.mark()
    client.start(["/bin/sleep", token])
    procfs.wait_marked(token)
    client.transport.popen.terminate()
    assert client.transport.wait() == 0
    assert procfs.wait_marked(token, 0) == []

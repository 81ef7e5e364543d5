"""The wrapper against a server that is played: the recorded runs of the old wrappers."""

import json
import os
import re
import socket
import struct
import subprocess

import pytest

from harness.recordings import MISSING, PLACE
from harness.settings import BINARY, PATIENCE
from peer import OLD_WRAPPER

RECORDING = PLACE / "mcp" / "13-wrapper-protocol.jsonl"
ANSWERS = {
    "Run": '{"action":"Run"}', "Deny": '{"action":{"Deny":{"reason":"because"}}}',
    "Deny null": '{"action":{"Deny":{"reason":null}}}', "Deny {}": '{"action":{"Deny":{}}}',
    "Deny str": '{"action":"Deny"}', "closed": None, "bogus action": '{"action":"Bogus"}',
    "extra field": '{"action":"Run","x":1}', "bad json": "{x",
    **{f"Escalate {code}": '{"action":"Escalate"}' for code in (0, 7, 256, -1, 300)},
    "Escalate closed": '{"action":"Escalate"}', "Escalate bad json": '{"action":"Escalate"}',
    "arg looks like option": '{"action":"Run"}'}


def cases():
    """The recorded runs of the old wrapper that can be played."""
    if not RECORDING.exists():
        return []
    runs = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    return [run for run in runs if run["wrapper"].startswith("0.97.0") and run["case"] in ANSWERS]


def frame(stream):
    """The body of a frame and the descriptors with it."""
    head, fds, _, _ = socket.recv_fds(stream, 4, 16)
    size, = struct.unpack("<I", head)
    body = b""
    while len(body) < size:
        body += stream.recv(size - len(body))
    return body, fds


def send(stream, text):
    stream.sendall(struct.pack("<I", len(text)) + text.encode())


def play(tmp_path, request, case):
    """Runs our wrapper; its status, output, and what it sent."""
    link = tmp_path / OLD_WRAPPER
    link.symlink_to(BINARY)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.set_inheritable(True)
    env = {"A": "1", "PATH": "/usr/bin:/bin", "EXEC_WRAPPER": "/w", "BASH_EXEC_WRAPPER": "/w",
           "CODEX_ESCALATE_SOCKET": str(theirs.fileno())}
    with subprocess.Popen([link, request["file"], *request["argv"]], cwd=request["workdir"], env=env,
                          pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as wrapper:
        theirs.close()
        ours.settimeout(PATIENCE)
        data, fds, _, _ = socket.recv_fds(ours, 8192, 16)
        assert (data, len(fds)) == (b"\0", 1)
        stream = socket.socket(fileno=fds[0])
        asked, _ = frame(stream)
        answer = ANSWERS[case]
        sent = None
        if answer is not None:
            send(stream, answer)
        if case.startswith("Escalate"):
            body, fds = frame(stream)
            sent = json.loads(body), len(fds)
            os.write(fds[1], b"from-server\n")
            for fd in fds:
                os.close(fd)
            what = case.removeprefix("Escalate ")
            if what == "bad json":
                send(stream, "{x")
            elif what != "closed":
                send(stream, json.dumps({"exit_code": int(what)}))
        stream.close()
        out, err = wrapper.communicate(timeout=PATIENCE)
    ours.close()
    return wrapper.returncode, out.decode(), err.decode(), json.loads(asked), sent


@pytest.mark.parametrize("run", cases() or [None], ids=lambda run: run and run["case"])
def test_the_wrapper_does_as_the_old_one(tmp_path, run):
    if run is None:
        pytest.skip(f"{MISSING}: {RECORDING}")
    code, out, err, asked, sent = play(tmp_path, run["request_json"], run["case"])
    recorded = re.fullmatch(r"rc (-?\d+) out b'(.*)' err b'(.*)'", run["wrapper_exit"])
    assert code == int(recorded[1])
    assert out == recorded[2].encode().decode("unicode_escape")
    # Causes in JSON are worded otherwise, and the old wrapper has lost its stderr after Escalate.
    first = recorded[3].encode().decode("unicode_escape").partition("\n\nCaused by")[0]
    assert err.startswith(first)
    want = {key: run["request_json"][key] for key in ("file", "argv", "workdir")}
    assert {key: asked[key] for key in want} == want
    assert asked["env"] == {"A": "1", "PATH": "/usr/bin:/bin"} and asked["quiet"] is True
    if sent is not None:
        assert sent == ({"fds": [0, 1, 2]}, 3)


@pytest.mark.parametrize("value, text", [
    (None, "environment variable not found"), ("x", "invalid digit found in string"),
    ("-1", "CODEX_ESCALATE_SOCKET is not a valid file descriptor: -1"),
    ("99", "Bad file descriptor (os error 9)")])
def test_without_a_socket(tmp_path, value, text):
    link = tmp_path / OLD_WRAPPER
    link.symlink_to(BINARY)
    env = {} if value is None else {"CODEX_ESCALATE_SOCKET": value}
    done = subprocess.run([link, "/bin/true", "true"], env=env, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (1, f"Error: {text}\n")

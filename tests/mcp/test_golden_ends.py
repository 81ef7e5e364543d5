"""Recorded sessions in which the old server ends, or does what ours must not."""

import json
import signal

import pytest

import replay
from harness import procfs
from harness.recordings import MISSING
from harness.settings import BINARY
from harness.waiting import until
from peer import OLD_WRAPPER

GOES_ON = "the old server ends; ours answers, and goes on"
BAD_LINE = {"why": GOES_ON, "more": {"null": -32700, "3": "result"}}
NO_REQUEST = {"why": GOES_ON, "more": {"null": -32600, "3": "result"}}
NO_INITIALIZE = {"why": GOES_ON, "more": {"1": -32602}}
SIGNALLED = {"why": "the old server dies by the signal; ours ends in order", "exit": 0}

# By session: answers of ours beyond the recorded ones (by id: "result", or the code of an error),
# recorded answers that ours does not give, its exit status where it differs; and why.
OURS = {
    "03-badjson-first": {"why": GOES_ON, "more": {"null": -32700}},
    **{f"03-init-{name}": NO_INITIALIZE for name in ("6", "7", "emptyparams", "noparams")},
    "03-noinitialized": {"why": GOES_ON, "more": {"2": "result"}},
    **{f"04-raw-{name}": BAD_LINE for name in ("badutf8", "garbage", "trunc")},
    **{f"04-raw-{name}": NO_REQUEST
       for name in ("batch", "emptyobj", "jsonrpc10", "nojsonrpc", "nomethod", "number")},
    "04-raw-empty": {"why": GOES_ON, "more": {"3": "result"}},
    "08-cancel": {"why": "ours heeds cancellations: no answer, and the question is withdrawn",
                  "less": {"50", "70"}, "more": {"notifications/cancelled": "result"}},
    "08-signal-SIGHUP": SIGNALLED, "08-signal-SIGTERM": SIGNALLED,
    "08-signal-SIGINT": {"why": "the old server ends the command alone; ours ends", "less": {"80"}},
}


def chosen():
    return [session for session in replay.every()
            if session.file[:2] in ("03", "08") or session.file.startswith("04b")]


def sent(line):
    """The bytes of a recorded line of the client; None: it is another."""
    if "c2s_bytes_hex" in line:
        return bytes.fromhex(line["c2s_bytes_hex"]) + b"\n"
    if line["dir"] != "c2s":
        return None
    return (json.dumps(line["msg"]) if "msg" in line else line["raw"]).encode() + b"\n"


def outcome(message):
    return message["error"]["code"] if "error" in message else "result"


def runs_tail(server):
    """Whether the command of the sessions with signals runs."""
    for pid in procfs.below(server.process.pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read() == "tail\n":
                    return True
        except OSError:
            pass
    return False


def play(session, server, places, less, strays):
    """Sends what the client has sent; the recorded answers, each with ours."""
    pairs = []
    for line in session.lines[1:]:
        text = sent(line)
        if text is not None:
            for real, name in places:
                text = text.replace(name.encode(), str(real).encode())
            server.line(text)
            if b"tail -f" in text and "signal" in session.name:
                until(lambda: runs_tail(server), "the command runs")
                server.process.send_signal(getattr(signal, session.name.rpartition("-")[2]))
                break
        elif line["dir"] == "s2c" and "msg" in line and str(line["msg"]["id"]) not in less:
            message = line["msg"]
            ours = (server.answer(message["id"]) if "method" not in message else
                    question(server, strays))
            pairs.append((replay.normal(message, places), replay.normal(ours, places)))
    return pairs


def question(server, strays):
    """The server's next question."""
    while (message := server.other())["method"] != "elicitation/create":
        strays.append(message)
    return message


@pytest.mark.parametrize("session", chosen() or [None], ids=repr)
def test_recorded_ends(start, old, tmp_path, session):
    if session is None:
        pytest.skip(f"{MISSING}: {replay.RECORDINGS}")
    ours = OURS.get(session.name, {})
    (tmp_path / OLD_WRAPPER).symlink_to(BINARY)
    (tmp_path / "work").mkdir()
    server = start("--compat", "--intercept", "wrapper", "--bash", old.bash, "--execve",
                   tmp_path / OLD_WRAPPER, *session.options, rules=session.rules)
    strays = []
    pairs = play(session, server, [(tmp_path / "work", "/work0")], ours.get("less", ()), strays)
    code = server.close() if "signal" not in session.name else server.process.wait()
    server.reader.join()
    more = {str(key): outcome(message) for key, message in server.answers.items()}
    while not server.others.empty():
        strays.append(server.others.get())
    for message in strays:
        more[message.get("method", "null")] = outcome(message)
    assert [mine for _, mine in pairs] == [recorded for recorded, _ in pairs]
    assert more == ours.get("more", {}), ours.get("why")
    assert code == ours.get("exit", session.exit)

"""The recorded sessions of the old server, played with ours in its place (--compat)."""

import json

import pytest

import replay
from harness.recordings import MISSING
from harness.settings import BINARY
from peer import OLD_WRAPPER

# The old Bash writes behind its vectors. Which arguments and variables it damages depends on the
# number of variables and the length of paths: a session is played with several of both.
PADS = 12

# test_golden_ends.py plays those in which the old server ends, or heeds nothing.
ENDS = ("03-", "04-raw", "08-")

# Not played: the text of the client that the command runs is not in the recording. test_wrapper.py
# has such a client.
LEFT_OUT = ("09-raw-client",)

# Exchanges with another outcome: a part of the command, and why.
DIFFERENCES = {
    "01-basic": [("echo hi", "our sandbox needs no helper"),
                 ("printenv BASH_EXEC_WRAPPER", "the number of the socket; the old Bash loses "
                  "argv[0] through its heap overflow")],
    "04-errors": [("pwd", "a directory of the recording's host")],
    "05-timeouts-signals-output": [
        ("echo late", "a background child costs no output and no time"),
        ("/etc/passwd", "a program that cannot be started is 126 or 127, as without a wrapper"),
        ("caf", "bytes that are not UTF-8 become U+FFFD; no encoding is guessed"),
        ("env | sort", "the number of the socket"), ("ps -o", "a supervisor is the parent"),
        ("/proc/$$/fd", "the number of the socket"), ("/proc/self/limits", "limits of the host")],
    "06-escalation": [
        ("PPid", "a supervisor is the parent, and the sandbox has its own pids"),
        ("env | grep", "the server's own environment is not merged in; the order"),
        (">&3", "descriptors beyond 2 are passed on"),
        ("<&-", "no descriptor of the server leaks"),
        ("kill -", "death by a signal stays death by a signal"),
        ("noshebang", "a script without #! is run, as by a plain Bash"),
        ("script.sh", "a file of the recording"), ("badinterp", "a file of the recording"),
        ("ps -o", "a supervisor is the parent; a session of its own"),
        ("umask", "umask and limits of the shell are taken over"),
        ("trap", "signals that the shell ignores are ignored"),
        ("\\xff", "bytes that are not UTF-8 are passed on"),
        ("./", "files of the recording")],
    "07-elicitation": [
        ("touch /work0/eltest", "the reason, when the client could not ask"),
        ("cat /etc/hostname | cat", "a pipeline of two escalated programs ends"),
        (None, "two questions of one pipeline come in either order")],
    "10-bypass": [
        ("id", "the old Bash damages its environment; a shim of the host"),
        ("dev/shm", "/dev is the sandbox's own"), ("evil", "files of the recording"),
        ("noshebang", "files of the recording"), ("/etc/passwd", "126 and 127, as above"),
        ("time", "times"), ("exec -", "an argv[0] that begins with a dash is passed on")],
}


def played():
    return [session for session in replay.every() if not session.name.startswith((*ENDS, *LEFT_OUT))]


def known(session, request):
    """Why an exchange may differ, or None."""
    command = (request or {}).get("params", {}).get("arguments", {}).get("command")
    for part, why in DIFFERENCES.get(session.file, ()):
        if (part is None and request is None) or (part is not None and command is not None
                                                  and part in command):
            return why
    return None


@pytest.mark.parametrize("session", played() or [None], ids=repr)
def test_recorded_sessions(start, old, tmp_path, session):
    if session is None:
        pytest.skip(f"{MISSING}: {replay.RECORDINGS}")
    wrapper = tmp_path / OLD_WRAPPER
    wrapper.symlink_to(BINARY)
    for pads in range(PADS):
        work = tmp_path / f"work{pads}{'-' * (5 * pads)}"
        (work / "w").mkdir(parents=True)
        server = start("--compat", "--intercept", "wrapper", "--bash", old.bash,
                       "--execve", wrapper, *session.options, rules=session.rules,
                       env={f"PAD{i}": "" for i in range(pads)})
        places = [(work, "/work0"), (wrapper, "$EXECVE_WRAPPER"), (old.bash, "$PATCHED_BASH"),
                  (server.home, "$CODEX_HOME")]
        exchanges = list(replay.replay(session, server, places))
        different = [(json.dumps(request), json.dumps(recorded), json.dumps(ours))
                     for request, recorded, ours in exchanges
                     if recorded != ours and known(session, request) is None]
        assert exchanges and server.close() == session.exit
        if not different:
            break
    assert not different, "\n".join("\n".join(case) for case in different)

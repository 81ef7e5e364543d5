"""sandboxDenied: what a failed command's output says about the sandbox."""

import pytest

from harness.sandbox import Result, place, servers, user

__all__ = ["place", "servers", "user"]

R = "r :root"
KEYWORDS = ["operation not permitted", "permission denied", "read-only file system", "seccomp",
            "sandbox", "landlock", "failed to write file"]
DISABLED = {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}
EXTERNAL = {"permissions": {"type": "external", "network": "restricted"},
            "windowsSandboxLevel": "disabled"}

# Script, exit code, denied.
CASES = [
    ("echo x >nope", 2, True),
    ("echo x >nope; exit 0", 0, False),
    ("exit 1", 1, False),
    ("no-such-command", 127, False),
    ("echo Permission Denied; exit 3", 3, True),
    ("echo PERMISSION DENIED >&2; exit 3", 3, True),
    ("echo permission denied; exit 127", 127, True),
    ("echo permission denied; exit 126", 126, True),
    ("echo permission denied; exit 2", 2, True),
    ("echo permission; echo denied; exit 3", 3, False),
    ("printf 'permission '; printf denied; exit 3", 3, True),
    ("echo permission denied; exit 0", 0, False),
    ("echo nothing at all; exit 3", 3, False),
    ("exit 159", 159, True),
    ("exit 158", 158, False),
    ("kill -SYS $$", 159, True),
    ("kill -KILL $$", 137, False),
    ("kill -TERM $$", 143, False),
    ("ulimit -c 0; kill -SEGV $$", 139, False),
]


@pytest.mark.parametrize("script, code, denied", CASES)
def test_rule(place, script, code, denied):
    process = place.start(script, R)
    got = Result(place.client.wait_closed(process))
    assert (got.code, got.denied) == (code, denied), got
    read = place.client.read(process)
    assert read["exitCode"] == code and read["sandboxDenied"] is denied


@pytest.mark.parametrize("word", KEYWORDS)
@pytest.mark.parametrize("stream", [1, 2])
def test_keywords(place, word, stream):
    assert place.run(f"echo 'x{word.upper()}y' >&{stream}; exit 3", R).denied
    assert not place.run(f"echo '{word[:-1]}' >&{stream}; exit 3", R).denied


def test_keyword_over_both_streams(place):
    process = place.start("printf 'permission '; read go; printf denied >&2; exit 3", R,
                          pipeStdin=True)
    place.client.wait_output(process, "permission ")
    place.client.write(process, "go\n")
    assert place.client.wait_closed(process).exited["sandboxDenied"] is True


@pytest.mark.parametrize("sandbox, denied", [(DISABLED, True), (EXTERNAL, True)])
def test_any_sandbox_object_counts(place, sandbox, denied):
    assert place.run("echo permission denied; exit 3", sandbox=sandbox).denied is denied


def test_without_a_sandbox_object(place):
    process = place.client.run("echo permission denied; exit 3")
    assert process.exit_code == 3 and process.exited["sandboxDenied"] is False


def test_on_a_terminal(place):
    got = place.run("echo permission denied; exit 3", R, tty=True)
    assert got.code == 3 and got.denied


def test_network_denied(place):
    script = "import socket; socket.create_connection(('127.0.0.1', 9))"
    command = ["/usr/bin/python3", "-c", script]
    assert place.run(command, R).denied
    got = place.run(command, R, network="enabled")
    assert got.code == 1 and not got.denied and "refused" in got.text


def test_keyword_that_is_no_longer_retained(place):
    got = place.run("echo permission denied; head -c 2000000 /dev/zero | tr '\\0' x; exit 3", R)
    assert got.code == 3 and not got.denied


def test_keyword_after_much_output(place):
    got = place.run("head -c 2000000 /dev/zero | tr '\\0' x; echo permission denied; exit 3", R)
    assert got.code == 3 and got.denied


def test_program_killed_by_the_filter(place):
    """A system call of another kind: the process is killed."""
    script = ("import ctypes, mmap\n"
              "m = mmap.mmap(-1, 4096, prot=7)\n"
              "m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"
              "a = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
              "ctypes.CFUNCTYPE(ctypes.c_int)(a)()\n")
    got = place.run(["/usr/bin/python3", "-c", script], R)
    assert got.code == 159 and got.denied


def test_failed_start_is_an_error_and_no_denial(place):
    assert place.error(R, command=["/no/such/program"]) == (
        -32603, "No such file or directory (os error 2)")
    assert place.error(R, command=["no-such-program"]) == (
        -32603, "No such file or directory (os error 2)")

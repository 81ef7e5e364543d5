"""xs run -t: raw mode and the way back, sizes, escapes. Numbers are those of the acceptance list."""

import os
import re
import signal

import pytest

from harness.cutting import Proxy
from harness.settings import PATIENCE
from harness.waiting import until
from harness.xs import SIGNALS, is_stopped

READY = "stty -echo; echo ready; "


def test_09_size_at_the_start(xs):
    """tests/verify/xs does it 1,000 times."""
    for rows, cols in ((24, 80), (1, 1), (50, 200), (65535, 65535), (33, 117)):
        terminal = xs.terminal("run", "-t", "stty", "size", rows=rows, cols=cols)
        assert terminal.wait() == 0
        assert terminal.screen == f"{rows} {cols}\r\n".encode()


def test_09_no_size(xs):
    """A terminal without a size gets the server's, never 0x0."""
    terminal = xs.terminal("run", "-t", "stty", "size", rows=0, cols=0)
    assert terminal.wait() == 0 and terminal.screen == b"24 80\r\n"
    # Without any terminal here it is the same.
    assert xs.run("run", "-t", "stty", "size").out == b"24 80\r\n"


def test_10_a_resize_arrives(xs):
    terminal = xs.terminal("run", "-t", "sh", "-c",
                           "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done")
    at = terminal.expect("ready\r\n")
    for rows, cols in ((30, 90), (31, 91)):
        terminal.resize(rows, cols)
        at = terminal.expect(f"{rows} {cols}\r\n", at)
    # Of many in a row the last one counts.
    for rows in range(40, 80):
        terminal.resize(rows, 100)
    terminal.expect("79 100\r\n", at)
    terminal.type("\x03")
    assert terminal.wait() == 130


def test_10_a_resize_at_the_reference(reference, xs):
    """It cannot: xs says so once asked, and goes on."""
    terminal = xs.terminal("-v", "run", "-t", "sh", "-c", "echo ready; read a; echo got $a",
                           host=reference.url)
    terminal.expect("ready\r\n")
    terminal.resize(30, 90)
    terminal.expect("the server cannot change the size of a terminal")
    terminal.type("x\r")
    terminal.expect("got x\r\n")
    assert terminal.wait() == 0


# -- 11: modes come back; Terminal.wait() checks them

ENDS = {
    "exit": ("exit 5", 5),
    "signal": ("kill -TERM $$", 143),
    "kill": ("kill -9 $$", 137),
    "setting": ("stty raw -echo; exit 0", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_11_modes_after_an_end(xs, end):
    script, status = ENDS[end]
    terminal = xs.terminal("run", "-t", "sh", "-c", f"echo ready; read a; {script}")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("\r")
    assert terminal.wait() == status


@pytest.mark.parametrize("number", SIGNALS)
def test_11_modes_after_a_signal(xs, number):
    """TERM and HUP end xs even if the shell there ignores them."""
    terminal = xs.terminal("run", "-t", "sh", "-c", "trap '' TERM HUP; echo ready; exec sleep 1000")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.signal(number)
    assert terminal.wait() == 128 + number


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGALRM, signal.SIGXCPU])
def test_11_modes_after_a_fault(xs, number):
    terminal = xs.terminal("run", "-t", "sh", "-c", "echo ready; exec sleep 1000")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.signal(number)
    assert terminal.wait() == -number


def test_11_modes_after_a_timeout(xs):
    terminal = xs.terminal("run", "-t", "--timeout", "300ms", "sleep", "1000")
    assert terminal.wait() == 124


def test_11_modes_after_the_end_of_the_server(fleet, lone_xs):
    server = fleet.start(quiet=False)
    terminal = lone_xs.terminal("run", "-t", "sh", "-c", "echo ready; exec sleep 1000",
                                host=server.url)
    terminal.expect("ready\r\n")
    terminal.until_raw()
    server.stop()
    assert terminal.wait() == 255
    assert b"xs: " in terminal.screen


def test_11_modes_after_a_start_that_fails(xs):
    terminal = xs.terminal("run", "-t", "nosuch")
    assert terminal.wait() == 127
    assert b"xs: nosuch: No such file or directory\r\n" in terminal.screen


def test_11_suspend(xs):
    """~^Z: the terminal is usable while xs is stopped, and raw again when it goes on."""
    # The trap is there before the word: a shell without it ignores the signal.
    terminal = xs.job("run", "-t", "sh", "-c", "trap 'stty size; exit 6' WINCH; " + READY
                      + "while :; do sleep 0.01; done")
    at = terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("\r~\x1a")
    at = terminal.expect("STOPPED\r\n", at)
    assert terminal.is_restored()
    terminal.resize(33, 99)
    terminal.type("\r")
    terminal.expect("33 99\r\n", at)
    assert terminal.wait() == 6


def test_11_a_stop_from_outside(xs):
    """Whoever stopped xs may have changed the modes; they are set again."""
    terminal = xs.terminal("run", "-t", "sh", "-c", READY + "read a; echo got $a")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.signal(signal.SIGSTOP)
    until(lambda: is_stopped(terminal.pid), "the stop")
    terminal.signal(signal.SIGCONT)
    terminal.until_raw()
    terminal.type("x\r")
    terminal.expect("got x\r\n")
    assert terminal.wait() == 0


def test_11_screen_modes_are_switched_off(xs):
    """At an abnormal end; a program that ends by itself cleans up."""
    script = ("trap 'exit 0' USR1; printf '\\033[?1049h\\033[?1000h\\033[?2004h\\033[?25l'; "
              "echo ready; while :; do sleep 0.01; done")
    terminal = xs.terminal("run", "-t", "sh", "-c", script)
    at = terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("\r~.")
    assert terminal.wait() == 255
    for mode in ("1049l", "1000l", "2004l", "25h"):
        assert f"\033[?{mode}".encode() in terminal.screen[at:], terminal.screen
    terminal = xs.terminal("run", "-t", "sh", "-c", script)
    at = terminal.expect("ready\r\n")
    terminal.signal(signal.SIGUSR1)
    assert terminal.wait() == 0
    assert b"\033" not in terminal.screen[at:]


def test_11_a_terminal_that_hangs_up(xs, tmp_path):
    """The command hears of it, and xs ends."""
    gone = tmp_path / "gone"
    terminal = xs.terminal("run", "-t", "sh", "-c",
                           f"trap 'touch {gone}; exit 9' HUP; echo ready; "
                           "while :; do sleep 0.01; done")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.hang_up()
    assert terminal.popen.wait(PATIENCE) == 9
    until(gone.exists, "the signal there")


# -- escapes

def test_12_leaving_while_the_network_is_gone(server, lone_xs):
    with Proxy(server.address) as proxy:
        terminal = lone_xs.terminal("run", "-t", "sh", "-c", "echo ready; exec sleep 1000",
                                    host=proxy.url)
        terminal.expect("ready\r\n")
        terminal.until_raw()
        proxy.refusing = True
        proxy.cut_all()
        terminal.expect("the connection is lost")
        terminal.type("\r~.")
        assert terminal.wait() == 255
        assert b"~. leaves" in terminal.screen


def test_13_keys_in_an_outage(server, lone_xs):
    """They arrive once, in order; tests/verify/xs waits for ten seconds."""
    with Proxy(server.address) as proxy:
        terminal = lone_xs.terminal("run", "-t", "sh", "-c",
                                    "stty raw -echo; echo ready; head -c 3000; echo; echo end",
                                    host=proxy.url)
        terminal.expect("ready")
        terminal.until_raw()
        text = "".join(f"{i:05d}" for i in range(600))
        terminal.type(text[:500])
        proxy.refusing = True
        proxy.cut_all()
        terminal.expect("the connection is lost")
        for at in range(500, 2500, 20):  # far more pieces than may be on their way
            terminal.type(text[at:at + 20])
            terminal.read(0.005)
        proxy.refusing = False
        terminal.type("~r")  # no escape: no newline before it
        terminal.type(text[2502:])
        terminal.expect("the connection is back")
        terminal.expect("end")
        assert terminal.wait() == 0
    said = re.sub(rb"xs: [^\r]*\r\n", b"", terminal.screen)
    assert text[:2500].encode() + b"~r" + text[2502:].encode() in said


def test_13_reconnect_now(server, lone_xs):
    with Proxy(server.address) as proxy:
        terminal = lone_xs.terminal("run", "-t", "sh", "-c", "echo ready; read a; read b; echo got $b",
                                    host=proxy.url)
        terminal.expect("ready\r\n")
        terminal.until_raw()
        proxy.refusing = True
        proxy.cut_all()
        terminal.expect("the connection is lost")
        proxy.refusing = False
        terminal.type("\r~r")
        terminal.expect("the connection is back")
        terminal.type("x\r")
        terminal.expect("got x\r\n")
        assert terminal.wait() == 0


def test_escapes(xs):
    """After a newline only; twice it is sent once; others go through with it."""
    sent = b"a~.b\r~c\r~x\r"
    terminal = xs.terminal("run", "-t", "sh", "-c", "stty raw -echo; echo ready; "
                                                    f"head -c {len(sent)} | od -An -tx1 -v -w99")
    at = terminal.expect("ready")
    terminal.until_raw()
    terminal.type("a~.b\r~~c\r~x\r~?")
    at = terminal.expect("after a newline: ~. ends the command and leaves; ~d detaches\r\n", at)
    at = terminal.expect("~^Z suspends xs; ~r reconnects now; ~~ sends ~\r\n", at)
    assert terminal.wait() == 0
    assert sent.hex(" ") in terminal.screen.decode()


@pytest.mark.parametrize("args,typed", [(["--escape", "none"], b"\r~.\r~."),
                                        (["--escape", "%"], b"\r~.\r%%"),
                                        (["--escape", "^A"], b"\r~.\r\x01\x01")])
def test_another_escape(xs, args, typed):
    sent = typed.replace(b"%%", b"%").replace(b"\x01\x01", b"\x01")
    terminal = xs.terminal("run", "-t", *args, "sh", "-c",
                           f"stty raw -echo; echo ready; head -c {len(sent)} | od -An -tx1")
    at = terminal.expect("ready")
    terminal.until_raw()
    terminal.type(typed)
    assert terminal.wait() == 0
    assert bytes.fromhex(terminal.screen[at:].decode()) == sent


def test_shell(xs):
    """The login shell there, in a terminal."""
    terminal = xs.terminal("shell", env={"TERM": "dumb"})
    terminal.until_raw()
    terminal.type("echo $0 $TERM $((6*7)); exit 3\r")
    assert terminal.wait() == 3
    assert re.search(rb"-\w*sh dumb 42\r\n", terminal.screen), terminal.screen
    assert xs.run("sh", "-T", stdin=b"echo $((6*7)); exit 4").status == 4


def test_tty_with_input_that_is_none(both_hosts, xs):
    """Input from a file ends as Ctrl-D does."""
    done = xs.run("run", "-t", "cat", stdin=b"line\n", host=both_hosts)
    assert done.status == 0 and done.out.endswith(b"line\r\n"), done


@pytest.fixture(params=["ours", "reference"])
def both_hosts(request, shared):
    return shared.url if request.param == "ours" else request.getfixturevalue("reference").url


def test_messages_in_raw_mode(xs):
    """Lines of ours end with a carriage return, and typed bytes beyond the bound ring."""
    terminal = xs.terminal("run", "-t", "sh", "-c", READY + "exec sleep 1000")
    at = terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("\r~?")
    terminal.expect("~~ sends ~\r\n", at)
    terminal.type("~.")
    assert terminal.wait() == 255


def test_output_beside_the_terminal(xs, tmp_path):
    """stdout may be a file while the keys come from the terminal."""
    with open(tmp_path / "out", "wb") as out:
        terminal = xs.terminal("run", "-t", "sh", "-c", READY + "read a; echo got $a", stdout=out)
        terminal.until_raw()
        until(lambda: b"ready" in (tmp_path / "out").read_bytes(), "the output")
        terminal.type("x\r")
        assert terminal.wait() == 0
    assert (tmp_path / "out").read_bytes().endswith(b"got x\r\n")
    assert os.path.getsize(tmp_path / "out") < 100

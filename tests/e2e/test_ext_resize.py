"""process/resize and the initial size."""

import pytest

MANY = 65535


def size_of(text):
    rows, cols = text.split()
    return {"rows": int(rows), "cols": int(cols)}


@pytest.mark.parametrize("size", [None, {"rows": 1, "cols": 1}, {"rows": 50, "cols": 132},
                                  {"rows": MANY, "cols": MANY}])
def test_initial_size(client, size):
    process = client.run("stty size", tty=True, size=size)
    assert size_of(process.output().decode()) == (size or {"rows": 24, "cols": 80})


def test_resize(client):
    """The new size is there, and the foreground group hears of it."""
    process = client.start("trap 'stty size' WINCH; echo ready; while ! read line; do :; done; "
                           "stty size", tty=True, size={"rows": 10, "cols": 20})
    client.wait_output(process, "ready")
    assert client.ask("resize", process, size={"rows": 11, "cols": 21}) == {}
    client.wait_output(process, "11 21")
    assert client.ask("resize", process, size={"rows": MANY, "cols": 1}) == {}
    client.wait_output(process, f"{MANY} 1\r\n")
    client.write(process, "\n")
    client.wait_closed(process)
    assert process.output().endswith(b"%d 1\r\n" % MANY)


def test_resize_takes_no_number(client):
    process = client.start("read line", tty=True)
    before = client.read(process)["nextSeq"]
    client.ask("resize", process, size={"rows": 2, "cols": 3})
    assert client.read(process)["nextSeq"] == before
    client.terminate(process)


def test_terminal_that_everybody_closed(client):
    process = client.start("trap '' HUP; echo closing; exec </dev/null >/dev/null 2>&1; sleep 1000",
                           tty=True)
    client.wait_output(process, "closing")
    assert client.ask("resize", process, size={"rows": 2, "cols": 3}) == {}
    client.terminate(process)


def test_pipes(client):
    process = client.start("sleep 1000")
    assert client.refusal("resize", process, size={"rows": 2, "cols": 3}) == (
        -32602, f"process {process.name} is not attached to a PTY")
    client.terminate(process)


def test_unknown_process(client):
    assert client.refusal("resize", "none", size={"rows": 2, "cols": 3}) == (
        -32600, "unknown process id none")


BAD_SIZES = [
    ({"rows": 0, "cols": 80}, "rows and cols must be at least 1"),
    ({"rows": 24, "cols": 0}, "rows and cols must be at least 1"),
    ({"rows": 24}, "missing field `cols`"),
    ({"cols": 80}, "missing field `rows`"),
    ({"rows": -1, "cols": 80}, "invalid number"),
    ({"rows": 65536, "cols": 80}, "invalid number"),
    ({"rows": 1.5, "cols": 80}, "invalid number"),
    ({"rows": "24", "cols": 80}, 'invalid type: string "24", expected u16'),
    ([24, 80], "invalid type: sequence, expected struct TerminalSize"),
    ("24x80", 'invalid type: string "24x80", expected struct TerminalSize'),
]


@pytest.mark.parametrize("size, text", BAD_SIZES)
def test_bad_size(client, size, text):
    assert client.refusal("resize", "none", size=size) == (-32602, text)
    assert client.start_error("true", tty=True, size=size) == (-32602, text)


def test_missing_size(client):
    assert client.refusal("resize", "none") == (-32602, "missing field `size`")
    assert client.refusal("resize", "none", size=None)[0] == -32602


def test_size_without_a_terminal(client):
    assert client.start_error("true", size={"rows": 1, "cols": 1}) == (-32602, "size needs a PTY")

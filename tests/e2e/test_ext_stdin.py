"""process/closeStdin, and closeStdin of process/write."""

import pytest

from harness import procfs
from harness.rpc import b64

MIB = 1 << 20


def test_end_of_file(client):
    process = client.start("cat; echo end", pipeStdin=True)
    assert client.write(process, "a\n") == {"status": "accepted"}
    assert client.ask("closeStdin", process) == {"status": "accepted"}
    client.wait_closed(process)
    assert process.output() == b"a\nend\n" and process.exit_code == 0


def test_end_of_file_with_a_write(client):
    process = client.start("cat", pipeStdin=True)
    assert client.write(process, "a", closeStdin=False) == {"status": "accepted"}
    assert client.write(process, "b", closeStdin=None) == {"status": "accepted"}
    assert client.write(process, "c", closeStdin=True) == {"status": "accepted"}
    assert client.write(process, "d") == {"status": "stdinClosed"}
    assert client.write(process, "d", closeStdin=True) == {"status": "stdinClosed"}
    assert client.wait_closed(process).output() == b"abc"


def test_empty_write_that_closes(client):
    process = client.start("cat; echo end", pipeStdin=True)
    assert client.write(process, b"", closeStdin=True) == {"status": "accepted"}
    assert client.wait_closed(process).output() == b"end\n"


def test_repeated_write_id(client):
    """A repetition is accepted and changes nothing; another id finds stdin closed."""
    process = client.start("cat; echo end; sleep 1000", pipeStdin=True)
    assert client.write(process, "x", writeId="1", closeStdin=True) == {"status": "accepted"}
    assert client.write(process, "x", writeId="1", closeStdin=True) == {"status": "accepted"}
    assert client.ask("closeStdin", process, writeId="1") == {"status": "accepted"}
    assert client.ask("closeStdin", process, writeId="2") == {"status": "stdinClosed"}
    assert client.write(process, "x", writeId="3") == {"status": "stdinClosed"}
    client.wait_output(process, "xend\n")
    client.terminate(process)


def test_id_of_an_earlier_write(client):
    """An id that was a write stays one: nothing is closed."""
    process = client.start("cat", pipeStdin=True)
    client.write(process, "a", writeId="1")
    assert client.ask("closeStdin", process, writeId="1") == {"status": "accepted"}
    assert client.write(process, "b", writeId="2") == {"status": "accepted"}
    assert client.ask("closeStdin", process, writeId=None) == {"status": "accepted"}
    assert client.wait_closed(process).output() == b"ab"


@pytest.mark.parametrize("how", ["closeStdin", "write"])
def test_after_everything_accepted(client, how):
    """The end comes behind writes that are queued or wait."""
    token = procfs.mark()
    process = client.start(f"sleep {token}; wc -c", pipeStdin=True)
    pid, = procfs.wait_marked(token)
    chunk = b"x" * 65536
    writes = [client.send("process/write", {"processId": process.name, "chunk": b64(chunk)})
              for _ in range(64)]
    if how == "write":
        last = client.send("process/write", {"processId": process.name, "chunk": b64(chunk),
                                             "closeStdin": True})
    else:
        last = client.send("process/closeStdin", {"processId": process.name})
    client.barrier()
    assert writes[-1] not in client.answers and last not in client.answers
    procfs.kill(pid)
    for ident in writes + [last]:
        assert client.result(ident) == {"status": "accepted"}
    client.wait_closed(process)
    assert process.output("stdout") == b"%d\n" % ((65 if how == "write" else 64) * len(chunk))


def test_queued_bytes_arrive(client):
    """What was accepted into the queue is written before the end."""
    token = procfs.mark()
    process = client.start(f"sleep {token}; wc -c", pipeStdin=True)
    pid, = procfs.wait_marked(token)
    assert client.write(process, b"y" * 900_000, closeStdin=True) == {"status": "accepted"}
    procfs.kill(pid)
    assert client.wait_closed(process).output("stdout") == b"900000\n"


def test_without_stdin(client):
    process = client.start("sleep 1000")
    assert client.ask("closeStdin", process) == {"status": "stdinClosed"}
    assert client.write(process, "", closeStdin=True) == {"status": "stdinClosed"}
    client.terminate(process)


def test_unknown_process(client):
    assert client.ask("closeStdin", "none") == {"status": "unknownProcess"}


def test_terminal_gets_its_end_of_file_character(client):
    """The terminal stays open: a later command can read again."""
    process = client.start("cat >/dev/null; echo first; cat >/dev/null; echo second", tty=True)
    assert client.ask("closeStdin", process) == {"status": "accepted"}
    client.wait_output(process, "first")
    assert client.write(process, "text\n", closeStdin=True) == {"status": "accepted"}
    client.wait_output(process, "second")
    assert client.wait_closed(process).exit_code == 0


def test_terminal_with_another_end_of_file_character(client):
    process = client.start("stty eof ^A; echo set; cat >/dev/null; echo end", tty=True)
    client.wait_output(process, "set")
    assert client.ask("closeStdin", process) == {"status": "accepted"}
    client.wait_output(process, "end")
    client.wait_closed(process)


@pytest.mark.parametrize("data", [None, b"xy"], ids=["closeStdin", "write"])
def test_terminal_with_a_full_queue(client, data):
    """Each end of file is a chunk of the queue: what has no room waits, and goes in once."""
    token = procfs.mark()
    first, count = 300_000, 500
    total = first + count * (1 + len(data or b""))
    process = client.start(f"stty raw -echo; echo ready; sleep {token}; "
                           f"head -c {total} >/dev/null; head -c 3", tty=True)
    pid, = procfs.wait_marked(token)
    client.wait_output(process, "ready")
    assert client.write(process, b"z" * first) == {"status": "accepted"}
    params = {"processId": process.name}
    if data is not None:
        params.update(chunk=b64(data), closeStdin=True)
    method = "process/closeStdin" if data is None else "process/write"
    idents = [client.send(method, params) for _ in range(count)]
    client.barrier()
    assert any(ident in client.answers for ident in idents)
    assert idents[-1] not in client.answers
    procfs.kill(pid)
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    client.write(process, "END")
    assert client.wait_closed(process).output().endswith(b"END")


def test_after_terminate(client):
    process = client.start("sleep 1000", pipeStdin=True)
    client.terminate(process)
    assert client.refusal("closeStdin", process) == (-32603, "failed to write to process stdin")
    client.wait_closed(process)
    assert client.refusal("closeStdin", process) == (-32603, "failed to write to process stdin")


def test_command_that_closed_its_stdin(client):
    process = client.start("exec 0<&-; echo closed; sleep 1000", pipeStdin=True)
    client.wait_output(process, "closed\n")
    client.write(process, "x")
    assert client.ask("closeStdin", process) == {"status": "accepted"}
    client.terminate(process)


@pytest.mark.parametrize("params, text", [
    ({}, "missing field `processId`"),
    ({"processId": 1}, "invalid type: number, expected a string"),
    ({"processId": "p", "writeId": 1}, "invalid type: number, expected a string"),
    ({"processId": "p", "writeId": ""}, "writeId must not be empty"),
])
def test_bad_params(client, params, text):
    assert client.error("process/closeStdin", params) == (-32602, text)


def test_bad_flag_of_a_write(client):
    assert client.error("process/write", {"processId": "p", "chunk": "", "closeStdin": 1}) == (
        -32602, "invalid type: number, expected a boolean")

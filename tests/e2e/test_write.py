"""process/write: statuses, de-duplication, base64."""

import pytest

from harness import procfs
from harness.rpc import b64
from harness.waiting import until

FAILED = (-32603, "failed to write to process stdin")


def write_error(client, name, **params):
    return client.error("process/write", {"processId": name, "chunk": "", "writeId": "1",
                                          **params})


def test_echo(client):
    process = client.start("cat", pipeStdin=True)
    for i in range(20):
        assert client.write(process, f"{i}\n", writeId=str(i)) == {"status": "accepted"}
    client.wait_output(process, "".join(f"{i}\n" for i in range(20)))
    client.terminate(process)


def test_unknown_process(client):
    assert client.write("nobody", "x", writeId="1") == {"status": "unknownProcess"}
    assert client.write("nobody", "x") == {"status": "unknownProcess"}


def test_stdin_closed(client):
    running = client.start("sleep 1000")
    assert client.write(running, "x", writeId="1") == {"status": "stdinClosed"}
    client.terminate(running)
    client.wait_closed(running)
    assert client.write(running, "x", writeId="1") == {"status": "stdinClosed"}
    done = client.run("true")
    assert client.write(done, "x", writeId="1") == {"status": "stdinClosed"}


@pytest.mark.parametrize("tty", [False, True])
def test_accepted_after_the_end(client, tty):
    process = client.run("true", pipeStdin=True, tty=tty)
    for i in range(300):
        assert client.write(process, "x" * 1000, writeId=str(i)) == {"status": "accepted"}


def test_accepted_when_the_child_closed_its_stdin(client):
    process = client.start("exec 0<&-; echo closed; sleep 1000", pipeStdin=True)
    client.wait_output(process, "closed\n")
    for i in range(300):
        assert client.write(process, "x" * 1000, writeId=str(i)) == {"status": "accepted"}
    client.terminate(process)
    client.wait_closed(process)


@pytest.mark.parametrize("tty", [False, True])
def test_error_after_terminate(client, tty):
    process = client.start("sleep 1000", pipeStdin=True, tty=tty)
    assert client.write(process, "x", writeId="known") == {"status": "accepted"}
    client.terminate(process)
    assert write_error(client, process.name, writeId="new") == FAILED
    assert client.write(process, "x", writeId="known") == {"status": "accepted"}
    client.wait_closed(process)
    assert write_error(client, process.name, writeId="newer") == FAILED
    assert client.write(process, "x", writeId="known") == {"status": "accepted"}


def test_empty_chunk(client):
    process = client.start("cat", pipeStdin=True)
    assert client.write(process, "", writeId="1") == {"status": "accepted"}
    assert client.write(process, "x", writeId="2") == {"status": "accepted"}
    client.wait_output(process, "x")
    client.terminate(process)


def test_repeated_id_is_not_written_again(client):
    process = client.start("cat", pipeStdin=True)
    for ident, data in [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("b", "5"), ("é", "6"),
                        ("c" * 10000, "7"), ("c" * 10000, "8"), ("c" * 9999, "9")]:
        assert client.write(process, data, writeId=ident) == {"status": "accepted"}
    client.wait_output(process, "13679")
    client.terminate(process)
    client.wait_closed(process)
    assert process.output() == b"13679"


def test_ids_belong_to_a_process(client):
    one, two = (client.start("cat", pipeStdin=True) for _ in range(2))
    client.write(one, "1", writeId="same")
    client.write(two, "2", writeId="same")
    client.wait_output(one, "1")
    client.wait_output(two, "2")
    client.terminate(one)
    client.terminate(two)


def test_without_id_nothing_is_deduplicated(client):
    process = client.start("cat", pipeStdin=True)
    for _ in range(3):
        assert client.write(process, "x") == {"status": "accepted"}
    client.wait_output(process, "xxx")
    client.terminate(process)


def test_4096_ids_are_remembered(client):
    """First in, first out; a hit does not refresh."""
    process = client.start("cat", pipeStdin=True)
    total = 4097
    idents = [client.send("process/write", {"processId": process.name, "chunk": b64("."),
                                            "writeId": str(i)}) for i in range(total - 1)]
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    client.write(process, "no", writeId="0")
    client.write(process, ".", writeId=str(total - 1))
    # 0 was forgotten with that one, 1 was not.
    client.write(process, "no", writeId="1")
    client.write(process, "yes", writeId="0")
    client.wait_output(process, b"." * total + b"yes")
    client.terminate(process)
    client.wait_closed(process)
    assert process.output() == b"." * total + b"yes"


def test_empty_write_id(client):
    assert write_error(client, "nobody", writeId="") == (-32602, "writeId must not be empty")


@pytest.mark.parametrize("params, text", [
    ({"chunk": ""}, "missing field `processId`"),
    ({"processId": "p"}, "missing field `chunk`"),
    ({"processId": "p", "chunk": None}, None),
    ({"processId": "p", "chunk": 5}, None),
    ({"processId": "p", "chunk": [1]}, None),
    ({"processId": "p", "chunk": "", "writeId": 5}, "invalid type: number, expected a string"),
    (None, "invalid type: null, expected struct WriteParams"),
])
def test_bad_params(client, params, text):
    code, message = client.error("process/write", params)
    assert code == -32602
    assert text is None or message == text


@pytest.mark.parametrize("chunk, text", [
    ("!", None), ("!AAA", "Invalid symbol 33, offset 0."), ("AA A", "Invalid symbol 32, offset 2."),
    ("AA-_", "Invalid symbol 45, offset 2."), ("QQ", "Invalid padding"),
    ("QQ=", "Invalid padding"), ("QR==", "Invalid last symbol 82, offset 1."),
    ("aGl=", "Invalid last symbol 108, offset 2."), ("=", None), ("====", None), ("A", None),
    ("QQ==QQ==", None), ("QUJD\n", None), ("QQ===", None), ("é", None)])
def test_bad_base64(client, chunk, text):
    code, message = write_error(client, "nobody", chunk=chunk)
    assert code == -32602
    assert text is None or message == text


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 46, 47, 48, 49, 95, 96, 97, 1000, 65537, 300000])
def test_sizes(client, size):
    data = bytes((i * 7 + i // 256) & 255 for i in range(size))
    process = client.start(f"head -c {size}", pipeStdin=True)
    client.write(process, data)
    client.wait_closed(process)
    assert process.output() == data


def test_chunk_with_escapes(client):
    process = client.start("head -c 3", pipeStdin=True)
    client.send_raw('{"id":800,"method":"process/write","params":{"processId":"%s",'
                    '"chunk":"\\u0051\\u0055JD"}}' % process.name)
    assert client.answer(800)["result"] == {"status": "accepted"}
    client.wait_closed(process)
    assert process.output() == b"ABC"


def test_writer_end_is_the_only_one(client):
    """No other child holds the write end of a stdin pipe."""
    first = client.start("cat; echo eof", pipeStdin=True)
    second = client.start("cat; echo eof", pipeStdin=True)
    client.terminate(first)
    client.wait_closed(first)
    assert client.write(second, "still\n") == {"status": "accepted"}
    client.wait_output(second, "still\n")
    client.terminate(second)


def test_stdin_is_released_after_terminate(server):
    client = server.client()
    client.run("true")
    before = server.fds()
    for _ in range(10):
        process = client.start("sleep 1000", pipeStdin=True)
        client.write(process, b"x" * 200000)
        client.terminate(process)
        client.wait_closed(process)
    until(lambda: server.fds() <= before, "released descriptors")
    assert procfs.zombies(server.pid) == []

"""WebSocket framing: fragments, control frames, limits, close codes."""

import json
import struct

import pytest

from harness.rpc import b64, unb64
from harness.settings import SANITIZED
from harness.ws import (BINARY, CLOSE, CONT, PING, PONG, TEXT, Closed, frame, head)

MIB = 1 << 20
LIMIT = 64 * MIB
STATUS = b'{"id":7,"method":"environment/status"}'
READY = b'{"id":7,"result":{"status":"ready"}}'
KEY = b"\x9c\x00\xff\x35"


def masked(opcode, payload=b"", **options):
    """A frame that is the same in every run."""
    return frame(opcode, payload, **{"key": KEY, **options})


@pytest.fixture
def ws(client):
    """The raw connection of an initialised client."""
    client.sync()
    return client.transport


def alive(ws):
    ws.send_text(STATUS)
    return ws.receive() == READY


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("key", [b"\0\0\0\0", b"\xff\x01\x80\x7f"])
def test_text_and_binary_mean_the_same(ws, opcode, key):
    ws.send_frame(opcode, STATUS, key=key)
    got = ws.receive_frame()
    assert (got.fin, got.opcode, got.payload) == (True, TEXT, READY)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_fragments(ws, opcode):
    ws.send_frame(opcode, STATUS[:5], fin=False)
    for byte in STATUS[5:-1]:
        ws.send_frame(CONT, bytes([byte]), fin=False)
    ws.send_frame(CONT, fin=False)
    ws.send_frame(CONT, STATUS[-1:])
    assert ws.receive() == READY


def test_empty_first_and_last_fragment(ws):
    ws.send_frame(TEXT, fin=False)
    ws.send_frame(CONT, STATUS, fin=False)
    ws.send_frame(CONT)
    assert ws.receive() == READY


def test_frames_byte_by_byte(ws):
    for byte in frame(TEXT, STATUS) + frame(PING, b"x"):
        ws.send_bytes(bytes([byte]))
    got = [ws.receive_frame(), ws.receive_frame()]
    assert {(f.opcode, f.payload) for f in got} == {(TEXT, READY), (PONG, b"x")}


def test_control_frames_between_fragments(ws):
    ws.send_frame(TEXT, STATUS[:9], fin=False)
    ws.send_frame(PING, b"between")
    got = ws.receive_frame()
    assert (got.fin, got.opcode, got.payload) == (True, PONG, b"between")
    ws.send_frame(PONG, b"unasked")
    ws.send_frame(CONT, STATUS[9:])
    assert ws.receive() == READY


def test_utf8_split_between_fragments(ws):
    text = '{"id":"é€😀","method":"environment/status"}'.encode()
    for cut in range(7, 17):
        ws.send_frame(TEXT, text[:cut], fin=False)
        ws.send_frame(CONT, text[cut:])
        assert json.loads(ws.receive())["id"] == "é€😀"


@pytest.mark.parametrize("size", [0, 1, 124, 125])
def test_ping(ws, size):
    payload = bytes(range(size))
    ws.send_frame(PING, payload)
    got = ws.receive_frame()
    assert (got.fin, got.opcode, got.payload) == (True, PONG, payload)


def test_unsolicited_pong(ws):
    ws.send_frame(PONG, b"zz")
    assert alive(ws)


@pytest.mark.parametrize("size", [125, 126, 127, 65535, 65536, 65537, 200000])
def test_length_forms(ws, size):
    ws.send_text(STATUS + b" " * (size - len(STATUS)))
    assert ws.receive() == READY


@pytest.mark.parametrize("data", [
    masked(TEXT, STATUS, key=None),
    masked(PING, b"", key=None),
    masked(TEXT, STATUS, rsv=4),
    masked(TEXT, STATUS, rsv=2),
    masked(TEXT, STATUS, rsv=1),
    masked(PING, b"", rsv=4),
    *[masked(opcode, b"") for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)],
    masked(PING, b"x", fin=False),
    masked(PONG, b"x", fin=False),
    masked(CLOSE, b"\x03\xe8", fin=False),
    masked(PING, b"x" * 126),
    masked(CLOSE, b"\x03\xe8" + b"x" * 124),
    masked(CONT, STATUS),
    masked(CONT, b"", fin=False),
    masked(TEXT, STATUS[:5], fin=False) + masked(TEXT, STATUS),
    masked(TEXT, STATUS[:5], fin=False) + masked(BINARY, STATUS[5:]),
    masked(CLOSE, b"\x03"),
    masked(CLOSE, struct.pack("!H", 0)),
    masked(CLOSE, struct.pack("!H", 999)),
    masked(CLOSE, struct.pack("!H", 1004)),
    masked(CLOSE, struct.pack("!H", 1005)),
    masked(CLOSE, struct.pack("!H", 1006)),
    masked(CLOSE, struct.pack("!H", 1015)),
    masked(CLOSE, struct.pack("!H", 2999)),
    masked(CLOSE, struct.pack("!H", 5000)),
], ids=bytes.hex)
def test_protocol_error(ws, data):
    ws.send_bytes(data)
    assert ws.receive_close() == 1002


@pytest.mark.parametrize("data", [
    masked(TEXT, b'{"id":"\xff"}'),
    masked(TEXT, b'{"id":"\xed\xa0\x80"}'),
    masked(TEXT, b'{"id":"\xc0\xaf"}'),
    masked(TEXT, b'{"id":"\xf4\x90\x80\x80"}'),
    masked(TEXT, b'{"id":"\xe2\x82'),
    masked(TEXT, b'{"id":"\xe2', fin=False) + masked(CONT, b'\x82"}'),
    masked(TEXT, b'{"id":"\xe2', fin=False) + masked(CONT, b''),
    masked(CLOSE, struct.pack("!H", 1000) + b"\xff"),
], ids=bytes.hex)
def test_invalid_utf8(ws, data):
    ws.send_bytes(data)
    assert ws.receive_close() == 1007


def test_invalid_utf8_in_binary_is_malformed(ws):
    ws.send_frame(BINARY, b'{"id":"\xff"}')
    answer = json.loads(ws.receive())
    assert answer["id"] == -1 and answer["error"]["code"] == -32600
    assert alive(ws)


@pytest.mark.parametrize("length", [LIMIT + 1, 1 << 40])
def test_announced_length_too_large(ws, length):
    ws.send_bytes(head(TEXT, length))
    assert ws.receive_close() == 1009


def test_length_with_top_bit(ws):
    ws.send_bytes(head(TEXT, 1 << 63) + b"abc")
    assert ws.receive_close() in (1002, 1009)


def test_fragments_over_the_limit(ws):
    part = frame(CONT, b" " * (16 * MIB), fin=False, key=b"\0\0\0\0")
    ws.send_bytes(frame(TEXT, STATUS, fin=False) + part * 3)
    ws.send_bytes(head(CONT, 16 * MIB - len(STATUS) + 1))
    assert ws.receive_close() == 1009


def test_largest_frame(ws):
    ws.send_text(STATUS + b" " * (LIMIT - len(STATUS)))
    assert ws.receive() == READY


def test_largest_message_in_fragments(ws):
    part = frame(CONT, b" " * (16 * MIB), fin=False, key=b"\0\0\0\0")
    ws.send_bytes(frame(TEXT, STATUS, fin=False) + part * 3)
    ws.send_frame(CONT, b" " * (16 * MIB - len(STATUS)), key=b"\0\0\0\0")
    assert ws.receive() == READY


def test_write_over_16_mib(client):
    data = bytes(range(256)) * (68 * 1024)
    counter = client.start(f"head -c {len(data)} | cksum", pipeStdin=True)
    assert client.write(counter, data) == {"status": "accepted"}
    client.wait_closed(counter)
    assert counter.output().split()[1] == str(len(data)).encode()


def test_memory_is_given_back_after_large_messages(server):
    client = server.client()
    client.sync()
    before = server.rss()
    for _ in range(3):
        client.send_raw(STATUS + b" " * (LIMIT - len(STATUS)))
        assert client.answer(7)["result"] == {"status": "ready"}
    client.sync()
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB


def test_large_answer_is_fragmented(fleet):
    client = fleet.start("--retained-output", str(16 * MIB)).client()
    process = client.run(f"head -c {15 * MIB} /dev/zero")
    client.send_raw(json.dumps({"id": 7, "method": "process/read",
                                "params": {"processId": process.name}}))
    ws, parts = client.transport, []
    while not parts or not parts[-1].fin:
        parts.append(ws.receive_frame())
    assert len(parts) >= 2
    assert [p.opcode for p in parts] == [TEXT] + [CONT] * (len(parts) - 1)
    assert max(len(p.payload) for p in parts) <= 16 * MIB
    answer = json.loads(b"".join(p.payload for p in parts))
    assert answer["id"] == 7
    assert sum(len(unb64(c["chunk"])) for c in answer["result"]["chunks"]) == 15 * MIB


@pytest.mark.parametrize("size, code", [(65536, None), (65537, 1009)])
def test_message_before_initialize(shared, size, code):
    client = shared.connect()
    request = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    client.send_raw(request + b" " * (size - len(request)))
    if code:
        assert client.transport.receive_close() == code
    else:
        assert "sessionId" in client.result(1)
        client.send_raw(STATUS + b" " * 100000)
        assert client.answer(7)
    client.close()


def test_fragments_before_initialize(shared):
    """The bound holds for the whole message, not only for a frame."""
    ws = shared.websocket()
    ws.send_frame(TEXT, b" " * 40000, fin=False)
    ws.send_frame(CONT, b" " * 40000, fin=False)
    assert ws.receive_close() == 1009


@pytest.mark.parametrize("code, reason", [
    (1000, b""), (1000, b"bye"), (1001, b""), (1011, b"x" * 123), (3000, b""), (4999, b"")],
    ids=["1000", "1000-bye", "1001", "1011-long", "3000", "4999"])
def test_close_is_answered(ws, code, reason):
    ws.send_close(code, reason)
    assert ws.receive_close() in (code, 1000)


def test_empty_close_is_answered(ws):
    ws.send_frame(CLOSE)
    assert ws.receive_close() in (1000, 1005)


def test_close_inside_a_fragmented_message(ws):
    ws.send_frame(TEXT, STATUS[:5], fin=False)
    ws.send_close(1000)
    assert ws.receive_close() == 1000


def test_requests_before_a_close_are_answered(client):
    ws = client.transport
    ws.send_bytes(frame(TEXT, STATUS) * 50 + frame(CLOSE, struct.pack("!H", 1000)))
    for _ in range(50):
        assert ws.receive() == READY
    with pytest.raises(Closed) as end:
        ws.receive()
    assert end.value.code == 1000


def test_nothing_is_read_after_a_close(client):
    process = client.new_name()
    start = json.dumps({"id": 1, "method": "process/start",
                        "params": client.start_params("true", processId=process)}).encode()
    client.sync()
    client.transport.send_bytes(frame(CLOSE, struct.pack("!H", 1000)) + frame(TEXT, start))
    with pytest.raises(Closed) as end:
        while True:
            assert client.transport.receive() is None
    assert end.value.code == 1000


def test_close_before_initialize(shared):
    ws = shared.websocket()
    ws.send_close(1000)
    assert ws.receive_close() == 1000


def test_ping_before_initialize(shared):
    ws = shared.websocket()
    ws.send_frame(PING, b"early")
    assert ws.receive_frame().payload == b"early"
    ws.close()


def test_half_close_still_gets_answers(client):
    client.sync()
    client.transport.send_bytes(frame(TEXT, STATUS) * 20)
    client.transport.half_close()
    for _ in range(20):
        assert client.transport.receive() == READY
    client.transport.wait_eof()


def test_ping_flood_from_a_client_that_does_not_read(server):
    client = server.client()
    client.sync()
    before = server.rss()
    ws = client.transport
    flood = frame(PING, b"p" * 125) * 1000
    for _ in range(200):
        if ws.try_send(flood):
            break
    other = server.client()
    other.sync()
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB
    ws.reset()


def test_whitespace_around_a_document(ws):
    ws.send_text(b" \n\t" + STATUS + b"\r\n ")
    assert ws.receive() == READY


@pytest.mark.parametrize("payload", [b"", b"  \n ", STATUS + b"\n" + STATUS])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_not_exactly_one_document(ws, payload, opcode):
    ws.send_frame(opcode, payload)
    answer = json.loads(ws.receive())
    assert answer["id"] == -1 and answer["error"]["code"] == -32600
    assert alive(ws)


def test_base64_helper_roundtrip_through_a_process(client):
    data = bytes(range(256)) * 10
    process = client.start(f"head -c {len(data)}", pipeStdin=True)
    client.call("process/write", {"processId": process.name, "chunk": b64(data)})
    client.wait_closed(process)
    assert process.output("stdout") == data

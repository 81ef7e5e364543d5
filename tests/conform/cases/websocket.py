"""WebSocket framing: valid forms, violations, limits."""

import asyncio
import json

from harness.case import case
from harness.peer import WAIT, brief
from harness.websocket import BINARY, CLOSE, PING, PONG, TEXT, frame

STATUS = '{"id":7,"method":"environment/status"}'
CONTINUATION = 0
MIB = 1 << 20


def padded(size):
    """The request, made longer with blanks to exactly this size."""
    return STATUS.encode() + b" " * (size - len(STATUS))


FRAMES = {
    "text": [frame(TEXT, STATUS)],
    "binary": [frame(BINARY, STATUS)],
    "fragments with a ping": [frame(TEXT, STATUS[:5], fin=False), frame(PING, "pingy"),
                              frame(CONTINUATION, STATUS[5:10], fin=False),
                              frame(CONTINUATION, STATUS[10:])],
    "binary fragments": [frame(BINARY, STATUS[:5], fin=False), frame(CONTINUATION, STATUS[5:])],
    "empty fragments": [frame(TEXT, "", fin=False), frame(CONTINUATION, "", fin=False),
                        frame(CONTINUATION, STATUS)],
    "character split over fragments": [frame(TEXT, b'{"id":"\xc3', fin=False),
                                       frame(CONTINUATION,
                                             b'\xa9","method":"environment/status"}')],
    "unmasked": [frame(TEXT, STATUS, masked=False)],
    "rsv1": [frame(TEXT, STATUS, rsv=4)], "rsv2": [frame(TEXT, STATUS, rsv=2)],
    "rsv3": [frame(TEXT, STATUS, rsv=1)],
    "opcode 3": [frame(3, STATUS)], "opcode 7": [frame(7, STATUS)], "opcode 11": [frame(11)],
    "opcode 15": [frame(15)],
    "fragmented ping": [frame(PING, "x", fin=False)],
    "ping of 126 bytes": [frame(PING, "x" * 126)],
    "ping of 125 bytes": [frame(PING, "x" * 125)], "empty ping": [frame(PING)],
    "ping with any bytes": [frame(PING, bytes(range(128, 200)))],
    "three pings": [frame(PING, b"1"), frame(PING, b"2"), frame(PING, b"3")],
    "unsolicited pong": [frame(PONG, "zz")], "unmasked ping": [frame(PING, "x", masked=False)],
    "continuation first": [frame(CONTINUATION, STATUS)],
    "text inside fragments": [frame(TEXT, STATUS[:5], fin=False), frame(TEXT, STATUS)],
    "invalid UTF-8 in text": [frame(TEXT, b'{"id":"\xff"}')],
    "overlong UTF-8 in text": [frame(TEXT, b'{"id":"\xc0\x80"}')],
    "surrogate in text": [frame(TEXT, b'{"id":"\xed\xa0\x80"}')],
    "truncated UTF-8 in text": [frame(TEXT, b'{"id":"\xe2\x82')],
    "invalid UTF-8 in binary": [frame(BINARY, b'{"id":"\xff"}')],
    "empty text": [frame(TEXT)], "empty binary": [frame(BINARY)], "blanks": [frame(TEXT, "  \n ")],
    "padded": [frame(TEXT, f" \n{STATUS}\n\n")],
    "two documents": [frame(TEXT, f"{STATUS}\n{STATUS}")],
    "close": [frame(CLOSE)], "close 1000": [frame(CLOSE, b"\x03\xe8bye")],
    "close 1005": [frame(CLOSE, b"\x03\xed")], "close 999": [frame(CLOSE, b"\x03\xe7")],
    "close 3000": [frame(CLOSE, b"\x0b\xb8x")], "close of 1 byte": [frame(CLOSE, b"\x03")],
    "close with bad UTF-8": [frame(CLOSE, b"\x03\xe8\xff")],
    "length 2^40": [frame(TEXT, "abc", length=1 << 40)],
    "length 2^63": [frame(TEXT, "abc", length=1 << 63)],
    "short in 16 bits": [frame(TEXT, STATUS, bits=16)],
    "short in 64 bits": [frame(TEXT, STATUS, bits=64)],
    "medium in 64 bits": [frame(TEXT, padded(5000), bits=64)],
    "ping in 16 bits": [frame(PING, "x", bits=16)],
    "16-bit length": [frame(TEXT, padded(5000))], "64-bit length": [frame(TEXT, padded(70000))],
}
LARGE = {
    "16 MiB frame": lambda: [frame(TEXT, padded(16 * MIB))],
    "16 MiB and 1 byte frame": lambda: [frame(TEXT, padded(16 * MIB + 1))],
}
HUGE = {
    "64 MiB in fragments": lambda: [frame(TEXT, padded(16 * MIB), fin=False)] +
    [frame(CONTINUATION, b" " * (16 * MIB), fin=i == 2) for i in range(3)],
    "64 MiB and 1 byte in fragments": lambda: [frame(TEXT, padded(16 * MIB), fin=False)] +
    [frame(CONTINUATION, b" " * (16 * MIB), fin=False) for i in range(3)] +
    [frame(CONTINUATION, b" ")],
}


async def exchange(t, frames):
    """Sends frames and a final request on an initialized connection; lists what comes back."""
    c = await t.connect()
    await c.call("environment/status")
    c.task.cancel()
    ws, seen = c.ws, []
    for data in frames:
        ws.write(data)
    ws.send_text('{"id":"last","method":"process/read","params":{"processId":"none"}}')
    try:
        while True:
            opcode, fin, payload = await asyncio.wait_for(ws.read_frame(), WAIT)
            if opcode == TEXT:
                message = json.loads(payload)
                if message["id"] == "last":
                    return {"frames": seen, "connection": "open"}
                seen.append({"text": [message["id"], brief(message)], "fin": fin})
            elif opcode == CLOSE:
                return {"frames": seen, "connection":
                        f"closed with code {int.from_bytes(payload[:2], 'big') or 'none'}"}
            else:
                seen.append({"opcode": opcode, "payload": payload.decode("latin-1")})
    except (asyncio.IncompleteReadError, ConnectionError):
        return {"frames": seen, "connection": "closed"}


def add(name, frames, slow=False):
    @case(name, slow=slow)
    async def one(t):
        t.see("seen", await exchange(t, frames() if callable(frames) else frames))


for _name, _frames in {**FRAMES, **LARGE}.items():
    add(_name, _frames)
for _name, _frames in HUGE.items():
    add(_name, _frames, slow=True)


@case("frame in pieces")
async def pieces(t):
    c = await t.connect()
    for byte in frame(TEXT, STATUS):
        c.ws.write(bytes([byte]))
        await c.ws.writer.drain()
        await asyncio.sleep(0)
    t.see("answer", brief(await c.take(7)))


@case("many messages in one segment")
async def many(t):
    c = await t.connect()
    c.ws.write(b"".join(frame(TEXT, '{"id":%d,"method":"environment/status"}' % i)
                        for i in range(50)))
    t.see("answers", [brief(await c.take(i)) for i in range(50)])


@case("ping before initialize")
async def early_ping(t):
    c = await t.open()
    c.task.cancel()
    c.ws.write(frame(PING, b"early"))
    opcode, _, payload = await asyncio.wait_for(c.ws.read_frame(), WAIT)
    t.see("pong", [opcode, payload.decode()])


@case("keepalive", slow=True)
async def keepalive(t):
    """The server pings every 30 s from the upgrade on."""
    c = await t.connect()
    await c.call("environment/status")
    c.task.cancel()
    opcode, _, payload = await asyncio.wait_for(c.ws.read_frame(), 30 + WAIT)
    t.see("frame", [opcode, payload.decode()])


@case("no initialize", slow=True)
async def no_initialize(t):
    """40 s after the upgrade: what came besides pings."""
    c = await t.open()
    c.task.cancel()
    try:
        async with asyncio.timeout(40):
            opcode = PING
            while opcode == PING:
                opcode, _, payload = await c.ws.read_frame()
            t.see("connection", f"closed with code {int.from_bytes(payload[:2], 'big')}")
    except asyncio.TimeoutError:
        t.see("connection", "open")

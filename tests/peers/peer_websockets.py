"""python3-websockets behind the interface of bridge.py."""

import asyncio
import ssl
import struct
import sys

import websockets


def put(kind, payload=b""):
    sys.stdout.buffer.write(kind + struct.pack("!I", len(payload)) + payload)
    sys.stdout.buffer.flush()


async def fragments(records, first):
    """The parts of a message as they come in."""
    kind, part = first
    while True:
        yield part.decode()
        if kind == b"L":
            return
        kind, part = await take(records)


async def take(records):
    kind = await records.readexactly(1)
    length, = struct.unpack("!I", await records.readexactly(4))
    return kind, await records.readexactly(length)


async def pong(waiter, payload):
    await waiter
    put(b"Q", payload)


async def write(ws, records):
    while True:
        kind, payload = await take(records)
        if kind == b"T":
            await ws.send(payload.decode())
        elif kind in b"FL":
            await ws.send(fragments(records, (kind, payload)))
        elif kind == b"P":
            asyncio.ensure_future(pong(await ws.ping(payload), payload))
        else:
            await ws.close(struct.unpack("!H", payload[:2])[0], payload[2:].decode())


async def read(ws):
    try:
        while True:
            put(b"M", (await ws.recv()).encode())
    except websockets.ConnectionClosed as end:
        got = end.rcvd
        put(b"X", struct.pack("!H", got.code) + got.reason.encode() if got else b"")


async def main(url, ca):
    loop = asyncio.get_running_loop()
    records = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(records), sys.stdin)
    tls = ssl.create_default_context(cafile=ca) if ca else None
    async with websockets.connect(url, ssl=tls, max_size=1 << 28, ping_interval=None) as ws:
        put(b"O")
        writer = asyncio.ensure_future(write(ws, records))
        await read(ws)
        writer.cancel()


asyncio.run(main(*sys.argv[1:]))

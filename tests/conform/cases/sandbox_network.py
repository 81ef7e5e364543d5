"""Networks of sandboxed processes."""

import asyncio

from harness.case import case
from harness.peer import ABSENT
from harness.sandbox import DISABLED, Place, context, managed

PROBE = """
import os, socket, sys, urllib.request
def tell(name, f):
    try: print(name, 'OK', f())
    except Exception as e: print(name, type(e).__name__, str(e).partition('>')[0])
def bound():
    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
    socket.create_connection(s.getsockname()); return 'bound'
port = int(sys.argv[1])
tell('through the proxy', lambda: urllib.request.urlopen('http://example.test/', timeout=5).read())
tell('port of the proxy', lambda: socket.create_connection(('127.0.0.1', port), 2) and 1)
tell('unix socket', lambda: socket.socket(socket.AF_UNIX) and 1)
tell('unix datagram', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) and 1)
tell('socketpair', lambda: socket.socketpair() and 1)
tell('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9)))
tell('tcp', lambda: socket.create_connection(('192.0.2.1', 9), 1) and 1)
tell('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) and 1)
tell('bind', bound)
print(open('/proc/net/dev').read().count(':'), 'interfaces')
print(sorted(os.listdir('/proc/self/fd')))
"""
PLAIN = {"loopbackPorts": ["PORT"], "allowLocalBinding": False}
ROWS = [
    ("enforced, no ports", ["r :root"], True, {"enforceManagedNetwork": True}),
    ("enforced, no proxy", ["r :root"], False, {"enforceManagedNetwork": True}),
    ("ports", ["r :root"], True, {"enforceManagedNetwork": True, "managedNetwork": PLAIN}),
    ("ports, binding", ["r :root"], True,
     {"enforceManagedNetwork": True, "managedNetwork": {**PLAIN, "allowLocalBinding": True}}),
    ("ports, unix sockets", ["r :root"], True, {
        "enforceManagedNetwork": True,
        "managedNetwork": {**PLAIN, "dangerouslyAllowAllUnixSockets": True}}),
    ("ports, network enabled", managed("r :root", network="enabled"), True,
     {"enforceManagedNetwork": True, "managedNetwork": PLAIN}),
    ("not enforced", ["r :root"], True, {"managedNetwork": PLAIN}),
    ("enforced, disabled", DISABLED, True,
     {"enforceManagedNetwork": True, "managedNetwork": PLAIN}),
    ("restricted", ["r :root"], False, {}),
    ("bad port", ["r :root"], True,
     {"enforceManagedNetwork": True, "managedNetwork": {"loopbackPorts": ["x"]}}),
    ("port too large", ["r :root"], True,
     {"enforceManagedNetwork": True, "managedNetwork": {"loopbackPorts": [65536]}}),
]


async def proxy(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


def add(name, profile, with_proxy, more):
    @case(name)
    async def one(t):
        place = await Place.open(t)
        place.make()
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        managed_network = more.get("managedNetwork", ABSENT)
        if managed_network is not ABSENT:
            managed_network = {**managed_network, "loopbackPorts": [
                port if p == "PORT" else p for p in managed_network["loopbackPorts"]]}
        address = f"127.0.0.1:{port}"
        env = {"HTTP_PROXY": f"http://{address}", "NO_PROXY": "localhost"} if with_proxy else {}
        got = await place.run(["/usr/bin/python3", "-c", PROBE, str(port)], context(profile),
                              env=env, **{**more, "managedNetwork": managed_network})
        for n, line in enumerate(got.splitlines()):
            t.see(f"{n:02} {' '.join(line.split()[:2])}" if n > 1 else f"{n:02}", line)
        server.close()


for _row in ROWS:
    add(*_row)

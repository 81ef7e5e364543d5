"""An outside world for sandboxes: a network namespace with addresses, services and names.

As a program it makes that world around a server (`World` starts it). Nothing in it leads to a
network of this host. Every service answers with MARK and what it saw, so whoever gets MARK has been
outside.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

MARK = "REACHED"
PUBLIC, EVIL, V6, MAPPED = "93.184.216.34", "93.184.216.66", "2606:2800:220:1::1", "10.1.2.3"
# Also those that stand for private ranges and metadata services.
ADDRESSES = (PUBLIC, EVIL, V6, "10.1.2.3", "172.16.5.5", "192.168.7.7", "100.64.1.1",
             "169.254.169.254", "198.18.0.1", "fd00:ec2::254", "fe80::1")
ECHO, WEB, WEB2, TLS, DNS = 7777, 80, 8080, 443, 53
NAMES = {
    "allowed.example": [PUBLIC], "evil.example": [EVIL], "a.wild.example": [PUBLIC],
    "evil-wild.example": [EVIL], "loop.example": ["127.0.0.1"], "loop6.example": ["::1"],
    "inner.example": ["10.1.2.3"], "meta.example": ["169.254.169.254"],
    "mixed.example": [PUBLIC, "127.0.0.1"], "mapped.example": ["::ffff:127.0.0.1"],
    "nat.example": ["64:ff9b::7f00:1"], "xn--bcher-kva.example": [EVIL],
    "front.example": [EVIL],
    "2130706433.example": ["127.0.0.1"], "rebind.example": None, "alias.example": "evil.example",
}


# The services, in the namespace.

def serve(sock, handle):
    def one(conn, peer):
        with conn:
            conn.settimeout(60)
            try:
                handle(conn, peer)
            except OSError:
                pass

    def loop():
        while True:
            conn, peer = sock.accept()
            threading.Thread(target=one, args=(conn, peer), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def listen(port, handle):
    """On all addresses of both families."""
    sock = socket.create_server(("::", port), family=socket.AF_INET6, backlog=64,
                                dualstack_ipv6=True)
    serve(sock, handle)


def echo(conn, _peer):
    conn.sendall(f"{MARK} {conn.getsockname()[0]}\n".encode())


def web(conn, _peer):
    """Answers each request of a connection with what it read."""
    data = b""
    while True:
        while b"\r\n\r\n" not in data.lstrip(b"\r\n"):
            more = conn.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.lstrip(b"\r\n").partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        host = fields.get(b"host", b"-").strip().decode("latin-1")
        length = int(fields.get(b"content-length", b"0"))
        while len(data) < length:
            data += conn.recv(65536)
        data = data[length:]
        target = (head.split() + [b"-", b"-"])[1].decode("latin-1")
        body = f"{MARK} {conn.getsockname()[0]} host={host} {target}\n".encode()
        if b"upgrade" in fields:
            conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            conn.sendall(b"upgraded " + conn.recv(100))
            return
        conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


def tls(conn, _peer):
    """Answers any bytes: whether TLS would work is not the question."""
    seen = conn.recv(65536)
    conn.sendall(f"{MARK} {len(seen)} bytes\n".encode())


class Names:
    """A name server."""

    def __init__(self):
        self.asked = 0

    def addresses(self, name):
        """All addresses; those of rebind.example change with each question for one."""
        if name != "rebind.example":
            return NAMES[name]
        self.asked += 1
        return [PUBLIC] if self.asked == 1 else ["127.0.0.1"]

    def answer(self, query):
        """None: silence."""
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += query[at] + 1
        kind = struct.unpack_from(">H", query, at + 1)[0]
        question, name = query[12:at + 5], ".".join(labels).lower()
        records = b""
        if name.endswith("silent.example"):
            return None
        known = name in NAMES
        targets = NAMES.get(name)
        owner = b"\xc0\x0c"
        count = 0
        if isinstance(targets, str):
            encoded = b"".join(bytes([len(p)]) + p.encode() for p in targets.split(".")) + b"\0"
            records += owner + struct.pack(">HHIH", 5, 1, 0, len(encoded)) + encoded
            owner, name, count = encoded, targets, 1
        wanted = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        if known and not (name == "rebind.example" and kind != 1):
            for text in self.addresses(name):
                family = socket.AF_INET6 if ":" in text else socket.AF_INET
                if family == wanted:
                    raw = socket.inet_pton(family, text)
                    records += owner + struct.pack(">HHIH", kind, 1, 0, len(raw)) + raw
                    count += 1
        flags = 0x8180 if known else 0x8183
        return query[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question + records

    def over_tcp(self, conn, _peer):
        size = struct.unpack(">H", conn.recv(2, socket.MSG_WAITALL))[0]
        answer = self.answer(conn.recv(size, socket.MSG_WAITALL))
        conn.sendall(struct.pack(">H", len(answer)) + answer)

    def over_udp(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("0.0.0.0", DNS))
        while True:
            query, peer = sock.recvfrom(4096)
            answer = self.answer(query)
            if answer is not None:
                sock.sendto(answer, peer)


def echo_udp():
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", ECHO))
    while True:
        _data, peer = sock.recvfrom(4096)
        sock.sendto(MARK.encode(), peer)


def unix(name):
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(name)
    sock.listen(8)
    serve(sock, lambda conn, _peer: conn.sendall(MARK.encode()))


def main(directory, *command):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in ADDRESSES:
        more = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "addr", "add", address, "dev", "lo", *more], check=True)
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\nsearch corp.example\n"
                                 "options timeout:30 attempts:5\n"),
                       ("hosts", "127.0.0.1 localhost\n")):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        subprocess.run(["mount", "--bind", path, os.path.realpath("/etc/" + name)], check=True)
    names = Names()
    for port, handle in ((ECHO, echo), (WEB, web), (WEB2, web), (TLS, tls), (DNS, names.over_tcp)):
        listen(port, handle)
    for loop in (names.over_udp, echo_udp):
        threading.Thread(target=loop, daemon=True).start()
    unix("\0" + os.path.basename(directory))
    unix(os.path.join(directory, "socket"))
    os.chmod(os.path.join(directory, "socket"), 0o777)
    sys.exit(subprocess.run(command, check=False, close_fds=False).returncode)


# From the tests.

def available():
    """Whether this user can make such a world."""
    if not all(map(shutil.which, ("ip", "unshare"))):
        return False
    return subprocess.run(unshare("true"), capture_output=True, check=False).returncode == 0


def unshare(*command):
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--net", "--mount", *command]


READ = {"permissions": {"type": "managed", "network": "restricted", "file_system": {
    "type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}},
    "cwd": "file:///", "windowsSandboxLevel": "disabled"}


def proxy(domains=None, asks=None, **more):
    """A networkProxy; `asks`: milliseconds for the client's decisions."""
    members = {"enabled": True, "enableSocks5": True, "enableSocks5Udp": False,
               "allowUpstreamProxy": False, "dangerouslyAllowAllUnixSockets": False,
               "mode": "full", "allowLocalBinding": False, "domains": domains, **more}
    return {"proxy": members, **({} if asks is None else {"policyDecisionTimeoutMs": asks})}


# What an attacker begins with: sockets to the proxies, and what they say.
PRELUDE = r'''
import json, os, socket, struct, sys, time
socket.setdefaulttimeout(60)
def at(name):
    host, _, port = os.environ[name].split("//")[1].rpartition(":")
    return host, int(port)
def talk(sock, *texts):
    """Sends texts, and reads all that comes."""
    data = b""
    try:
        for text in texts:
            sock.sendall(text.encode("latin-1") if isinstance(text, str) else text)
        while len(data) < 65536:
            more = sock.recv(65536)
            if not more:
                break
            data += more
            if b"REACHED" in data and data.endswith(b"\n"):
                break
    except OSError as e:
        data += repr(e).encode()
    return data.decode("latin-1")
def http(*texts):
    return talk(socket.create_connection(at("HTTP_PROXY")), *texts)
def get(url, host=None, more=""):
    host = host or url.split("/")[2]
    return http(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
def tunnel(target, *inside, host=None):
    s = socket.create_connection(at("HTTP_PROXY"))
    s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {host or target}\r\n\r\n".encode("latin-1"))
    answer = b""
    while b"\r\n\r\n" not in answer:
        more = s.recv(4096)
        if not more:
            return answer.decode("latin-1")
        answer += more
    if b" 200 " not in answer:
        return answer.decode("latin-1")
    return talk(s, *inside)
def socks(request, *inside):
    s = socket.create_connection(at("ALL_PROXY"))
    s.sendall(b"\5\1\0")
    assert s.recv(2, socket.MSG_WAITALL) == b"\5\0"
    s.sendall(request)
    answer = s.recv(10, socket.MSG_WAITALL)
    return "socks %d " % answer[1] + (talk(s, *inside) if answer[1] == 0 else "")
def named(host, port=80, command=1):
    return bytes([5, command, 0, 3, len(host)]) + host.encode("latin-1") + struct.pack(">H", port)
def hello(name):
    """A ClientHello."""
    sni = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name.encode()
    more = struct.pack(">HH", 0, len(sni)) + sni
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + struct.pack(">H", len(more)) + more
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message
def plain(address, port=7777):
    return talk(socket.create_connection((address, port)))
def query(name):
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + b"".join(
        bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0\0\1\0\1"
def show(attack):
    try:
        print(attack())
    except Exception as e:
        print("FAILED", repr(e))
'''


class World:
    """A server in the middle of it. Needs harness.stdio and harness.rpc."""

    def __init__(self, binary, *args, pass_fds=()):
        from .rpc import Client  # pylint: disable=import-outside-toplevel
        from .stdio import Stdio  # pylint: disable=import-outside-toplevel
        self.directory = tempfile.mkdtemp(prefix="outside-", dir="/var/tmp")
        os.chmod(self.directory, 0o755)
        self.transport = Stdio(command=unshare(sys.executable, os.path.abspath(__file__),
                                               self.directory, binary, "--listen", "stdio", *args),
                               pass_fds=pass_fds)
        self.client = Client(self.transport)
        self.info = self.client.initialize()["environmentInfo"]
        self.decide = None  # takes a policyRequest's `request`, returns a result or None

    def answer_questions(self):
        """Answers the server's requests that have come."""
        for message in [m for m in self.client.other if m["method"] == "network/policyRequest"]:
            self.client.other.remove(message)
            assert list(message) == ["id", "method", "params"]
            result = self.decide and self.decide(message["params"]["request"])
            if result is not None:
                self.client.send_raw(json.dumps({"id": message["id"], **result}))

    def decisions(self):
        """Takes the decisions that were reported."""
        found = [m["params"] for m in self.client.other if m["method"] == "network/policyDecision"]
        self.client.other = [m for m in self.client.other
                             if m["method"] != "network/policyDecision"]
        return found

    def start(self, code, policy=None, held=True, **options):
        """Starts Python code; `held`: in a managed network."""
        if policy is not None:
            options["networkProxy"] = policy
        if held:
            options.setdefault("sandbox", READ)
            options.setdefault("enforceManagedNetwork", True)
        options.setdefault("cwd", "file:///")
        params = self.client.start_params(
            ["/usr/bin/python3", "-c", PRELUDE + code, self.directory], **options)
        result = self.client.call("process/start", params)
        assert result["sandboxType"] == ("linuxSeccomp" if held else "none")
        return self.client.processes[params["processId"]]

    def finish(self, process):
        """Its output when it has ended."""
        def over():
            self.answer_questions()
            return process.closed is not None
        self.client.wait(over, "the end of an attacker")
        self.answer_questions()
        return process.output().decode()

    def run(self, code, policy=None, held=True, **options):
        return self.finish(self.start(code, policy, held, **options))

    def try_all(self, attacks, policy=None, held=True, **options):
        """The output of each attack, an expression of Python."""
        code = "".join(f"print('\\x1e', end=''); show(lambda: {a})\n" for a in attacks)
        return self.run(code, policy, held, **options).split("\x1e")[1:]

    def close(self):
        self.transport.close_stdin()
        code = self.transport.wait()
        shutil.rmtree(self.directory)
        assert code == 0


if __name__ == "__main__":
    main(*sys.argv[1:])

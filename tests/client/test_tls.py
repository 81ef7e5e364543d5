"""wss: with nginx and an authority of our own: certificates, peers that stall or cut, resume."""

import contextlib
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from pathlib import Path

import pytest

from execserver import Code, blocking, errors
from harness import authority
from harness.settings import BINARY, PATIENCE

LIBRARY = Path(BINARY).parent / "src" / "libexecserver-tls.so.0"

pytestmark = pytest.mark.skipif(not LIBRARY.exists() or not authority.is_there(),
                                reason="needs OpenSSL and nginx")


@pytest.fixture(scope="module", name="ca")
def certificates(tmp_path_factory):
    return authority.Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(name="front")
def nginx(server, tmp_path):
    """Starts an nginx with a certificate in front of the server."""
    started = []

    def start(pair):
        started.append(authority.Nginx(tmp_path / f"nginx-{len(started)}", pair,
                                       server.address[1]))
        return started[-1]
    yield start
    for one in started:
        one.kill()


def connect(url, ca, **options):
    options = {"connect_timeout": PATIENCE, "init_timeout": PATIENCE, **options}
    return blocking.connect(url, ca_file=ca.ca, **options)


def refusal(url, ca, **options):
    """The text of the error that a connection must end with."""
    with pytest.raises(errors.ConnectError) as caught:
        connect(url, ca, **options)
    assert caught.value.code == Code.ECONNECT
    return str(caught.value)


@pytest.mark.parametrize("host, names", [
    ("localhost", "DNS:localhost"), ("127.0.0.1", "IP:127.0.0.1"),
    ("localhost", "DNS:other.example,DNS:localhost")])
def test_a_valid_certificate(ca, front, host, names):
    with connect(front(ca.sign("good", names)).url(host), ca) as c:
        assert c.rpc("environment/status") == {"status": "ready"}


@pytest.mark.parametrize("host, names", [
    ("localhost", "DNS:other.example"), ("localhost", "IP:127.0.0.1"),
    ("127.0.0.1", "DNS:localhost"), ("127.0.0.1", "IP:127.0.0.2")])
def test_a_certificate_for_another_name(ca, front, host, names):
    text = refusal(front(ca.sign("other", names)).url(host), ca)
    assert "mismatch" in text and host in text


def test_an_expired_certificate(ca, front):
    pair = ca.sign("old", "DNS:localhost", "-startdate", "20200101000000Z", "-enddate",
                   "20200201000000Z")
    assert "expired" in refusal(front(pair).url(), ca)


def test_a_certificate_of_the_future(ca, front):
    pair = ca.sign("new", "DNS:localhost", "-startdate", "20700101000000Z", "-enddate",
                   "20700201000000Z")
    assert "not yet valid" in refusal(front(pair).url(), ca)


def test_a_self_signed_certificate(ca, front):
    assert "self-signed" in refusal(front(ca.self_signed("self", "DNS:localhost")).url(), ca)


def test_an_authority_that_the_system_does_not_know(ca, front):
    with pytest.raises(errors.ConnectError) as caught:
        blocking.connect(front(ca.sign("good", "DNS:localhost")).url())
    assert "certificate" in str(caught.value)


def test_a_file_of_authorities_that_is_not_there(ca, front):
    with pytest.raises(errors.Error) as caught:
        blocking.connect(front(ca.sign("good", "DNS:localhost")).url(), ca_file="/nonexistent.pem")
    assert "/nonexistent.pem" in str(caught.value)


def test_large_messages_pass_both_ways(ca, front):
    with connect(front(ca.sign("good", "DNS:localhost")).url(), ca) as c:
        data = bytes(range(256)) * 4000
        c.rpc("fs/writeFile", {"path": "file:///tmp/data", "dataBase64": b64encode(data).decode()})
        assert c.rpc("fs/readFile", {"path": "file:///tmp/data"})["dataBase64"] == b64encode(data).decode()


def status(c):
    """Sent, perhaps, to a connection that is gone: rpc() never repeats a request."""
    try:
        return c.rpc("environment/status")
    except errors.Lost:
        return c.rpc("environment/status")


def test_a_session_resumes_over_tls(ca, front):
    one = front(ca.sign("good", "DNS:localhost"))
    states = []
    with connect(one.url(), ca) as c:
        session = c.info.session
        c.on_state = states.append
        c.rpc("process/start", {"processId": "p", "argv": ["cat"], "cwd": "file:///", "env": {},
                                "tty": False, "pipeStdin": True, "arg0": None})
        for _ in range(3):
            one.kill()
            one.start()
            assert status(c) == {"status": "ready"}
        assert c.info.session == session
        assert c.rpc("process/read", {"processId": "p", "waitMs": 0})["exited"] is False
    assert blocking.State.RESUMING in states


class Peer:
    """A listener that gives each connection to a function, in a thread."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.serve = serve
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            self.sockets.append(sock)
            threading.Thread(target=self._run, args=(sock,), daemon=True).start()

    def _run(self, sock):
        with contextlib.suppress(OSError):
            self.serve(sock)

    @property
    def url(self):
        return f"wss://localhost:{self.listener.getsockname()[1]}/"

    def close(self):
        self.listener.close()
        for sock in self.sockets:
            sock.close()


@pytest.fixture(name="peer")
def peers():
    made = []

    def make(serve):
        made.append(Peer(serve))
        return made[-1]
    yield make
    for one in made:
        one.close()


def test_a_peer_that_says_nothing(ca, peer):
    silent = peer(lambda sock: sock.recv(1, socket.MSG_PEEK))
    refusal(silent.url, ca, connect_timeout=0.5)


def test_a_peer_without_tls(ca, peer):
    plain = peer(lambda sock: (sock.recv(100), sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    assert "TLS" in refusal(plain.url, ca)


def pump(source, target, step, limit=None):
    """Passes bytes on in steps; ends both after `limit` of them."""
    passed = 0
    with contextlib.suppress(OSError):
        while data := source.recv(step):
            if limit is not None and passed + len(data) >= limit:
                target.sendall(data[:limit - passed])
                break
            target.sendall(data)
            passed += len(data)
    for sock in (source, target):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def between(port, step, limit=None):
    """Serves a connection by passing it on to a port; from there `limit` bytes."""
    def serve(sock):
        far = socket.create_connection(("127.0.0.1", port))
        for one in (sock, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=pump, args=(sock, far, step), daemon=True).start()
        pump(far, sock, step, limit)
        far.close()
    return serve


def test_bytes_that_come_one_by_one(ca, front, peer):
    slow = peer(between(front(ca.sign("good", "DNS:localhost")).port, 1))
    with connect(slow.url, ca) as c:
        assert c.rpc("environment/status") == {"status": "ready"}


@pytest.mark.parametrize("limit", [1, 5, 100, 600, 1000])
def test_a_handshake_that_is_cut(ca, front, peer, limit):
    """The first connection ends within the handshake; the client tells so."""
    cut = peer(between(front(ca.sign("good", "DNS:localhost")).port, 64, limit))
    assert "TLS" in refusal(cut.url, ca) or limit == 1000


def test_a_client_without_wss_does_not_load_the_library(server):
    code = ("import sys; from execserver import blocking\n"
            f"c = blocking.connect({server.url!r})\n"
            "print('execserver-tls' in open('/proc/self/maps').read(), c.state.name)")
    path = str(Path(__file__).resolve().parents[2] / "python")
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {path!r})\n"
                           + code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "False READY\n", done.stderr

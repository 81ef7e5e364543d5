"""The server, the routes to it, and foreign clients."""

import contextlib
import pathlib
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE)]
# pylint: disable=wrong-import-position
from bridge import PROGRAMS, Peer
from harness.rpc import Client
from harness.server import Server
from proxies import Certificate, Proxy

IDLE = 42  # seconds; more than the 30 between two pings of the server, on a busy machine too
ROUTES = ("direct", "nginx", "haproxy")


class Direct:
    """No proxy."""

    def __init__(self, server):
        self.url, self.ca = server.url, ""


class Net:
    """A server and the ways to it."""

    def __init__(self, directory, stack):
        self.directory, self.stack = directory, stack
        self.certificate = None
        self.server = Server("--metrics", "--http-files", cwd="/")
        self.stack.callback(self.server.abandon)
        self.stack.callback(self.server.stop)
        self.routes = {"direct": Direct(self.server)}

    def route(self, kind):
        """A way that many tests share."""
        if kind not in self.routes:
            self.routes[kind] = self.proxy(kind, self.server, IDLE)
        return self.routes[kind]

    def proxy(self, kind, server, idle):
        self.certificate = self.certificate or Certificate(self.directory)
        made = Proxy(kind, self.directory / f"{kind}-{len(list(self.directory.iterdir()))}",
                     self.certificate, server.address[1], idle)
        self.stack.callback(lambda: made.popen.poll() is None and made.kill())
        return made


class IdleWait:
    """A connection through each proxy that is silent for longer than the proxy permits."""

    def __init__(self, net):
        self.net = net
        self.clients = {}
        for kind in ("nginx", "haproxy"):
            with contextlib.suppress(pytest.skip.Exception):
                self.client(kind)
        self.over = threading.Event()
        timer = threading.Timer(IDLE + 3, self.over.set)
        timer.daemon = True
        timer.start()


    def client(self, kind):
        """The connection through a proxy; skips when there can be none."""
        if kind not in self.clients:
            route = self.net.route(kind)
            peer = Peer("node-ws", route.url, route.ca)
            self.net.stack.callback(peer.close)
            self.clients[kind] = Client(peer)
            self.clients[kind].initialize()
        return self.clients[kind]


@pytest.fixture(scope="session")
def net(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield Net(tmp_path_factory.mktemp("peers"), stack)


@pytest.fixture(scope="session", autouse=True)
def idle_wait(net):  # pylint: disable=redefined-outer-name
    """Waits beside the other tests."""
    return IdleWait(net)


@pytest.fixture
def scope():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture(params=list(PROGRAMS))
def program(request):
    return request.param


@pytest.fixture(params=ROUTES)
def route(request, net):  # pylint: disable=redefined-outer-name
    return net.route(request.param)


@pytest.fixture
def peer(program, route, scope):  # pylint: disable=redefined-outer-name
    """A foreign connection that has not sent anything."""
    made = Peer(program, route.url, route.ca)
    scope.callback(made.close)
    return made


@pytest.fixture
def client(peer):  # pylint: disable=redefined-outer-name
    made = Client(peer)
    made.initialize()
    return made


def pytest_collection_modifyitems(items):
    """What waits half a minute is looked at last."""
    items.sort(key=lambda item: "idle_proxy" in item.name)

"""http/request and a name server that says nothing (harness/outside.py)."""

import os
import signal

import pytest

from harness import outside, procfs
from harness.settings import BINARY, SANITIZED
from harness.web import available, body_of, name_of, params

pytestmark = pytest.mark.skipif(not available() or not outside.available(),
                                reason="no exec-server-http, or no network namespace")


@pytest.fixture(scope="module")
def world(nothing_left):  # pylint: disable=unused-argument
    made = outside.World(BINARY, "--concurrent-requests", "256")
    yield made
    made.close()


def ask(client, host, number, **more):
    return client.send("http/request", params(f"http://{number}.{host}/", name=str(number), **more))


def test_names_are_found(world):
    body = body_of(world.client.call("http/request", params("http://allowed.example/x")))
    assert body.startswith(f"{outside.MARK} ".encode())


def test_a_cancelled_request_does_not_wait_for_its_name_server(world):
    """The resolver of libc would wait for minutes."""
    client = world.client
    code, text = client.error("http/request",
                              params("http://1.silent.example/", timeoutMs=200))
    assert (code, "error sending request" in text) == (-32603, True)
    assert b"REACHED" in body_of(client.call("http/request", params("http://allowed.example/")))


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is not limited")
def test_many_names_may_be_looked_up_at_once(world):
    """None of them fails for lack of memory, and others go on."""
    client = world.client
    waiting = [ask(client, "silent.example", n, timeoutMs=600000) for n in range(200)]
    assert b"REACHED" in body_of(client.call("http/request",
                                             params(f"http://{outside.PUBLIC}/")))
    assert not any(w in client.answers for w in waiting)
    for pid in procfs.descendants(world.transport.pid):
        if name_of(pid) == "exec-http":
            os.kill(pid, signal.SIGKILL)
    failed = -32603, "http/request failed: the HTTP program ended unexpectedly"
    for ident in waiting:
        error = client.answer(ident)["error"]
        assert (error["code"], error["message"]) == failed

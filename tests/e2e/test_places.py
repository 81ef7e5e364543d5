"""Places of --max-connections: an unproven connection makes room for a newer one."""

import signal

import pytest

from harness.http import Http
from harness.waiting import until
from harness.ws import Closed, Refused, connect_tcp, upgrade_request

PLACES = 4
CAPABILITY = ["--ws-auth", "capability-token"]
TOKEN = [("Authorization", "Bearer owner")]


@pytest.fixture
def guarded(fleet, tmp_path):
    """A server with few places that demands a token."""
    (tmp_path / "token").write_text("owner")
    return fleet.start("--max-connections", str(PLACES), *CAPABILITY,
                       "--ws-token-file", str(tmp_path / "token"))


def strangers(server, count):
    """Connections that have asked for something that needs no token."""
    found = []
    for _ in range(count):
        found.append(server.http())
        assert found[-1].ask("/readyz").status == 200
    return found


def test_strangers_make_room(guarded):
    """All places are taken by peers without a token: the owner gets in, again and again."""
    others = strangers(guarded, PLACES)
    for http in others:
        guarded.client(headers=TOKEN).sync()
        http.wait_eof()  # the oldest goes first
    with pytest.raises(Refused) as refused:
        guarded.client(headers=TOKEN)
    assert refused.value.response.status == 503


def test_half_a_head_makes_room(guarded):
    others = [connect_tcp(guarded.address) for _ in range(PLACES)]
    for sock in others:
        sock.send(b"GET /readyz HTTP/1.1\r\nX: ")
    guarded.client(headers=TOKEN).sync()
    for sock in others:
        sock.close()


def test_resume_beside_silent_websockets(guarded):
    """All places are taken without `initialize`: a client that resumes a session gets in."""
    client = guarded.client(headers=TOKEN)
    session = client.session
    client.end()
    silent = [guarded.websocket(headers=TOKEN) for _ in range(PLACES)]
    guarded.client(resume=session, headers=TOKEN).sync()
    with pytest.raises(Closed) as end:
        silent[0].receive()
    assert end.value.code in (1013, None)


def test_strangers_go_before_guests(guarded):
    guest = guarded.connect(headers=TOKEN)
    proven = guarded.client(headers=TOKEN)
    others = strangers(guarded, 3 * PLACES)
    for http in others[:-2]:
        http.wait_eof()
    guest.initialize()
    guest.sync()
    proven.sync()


def test_a_stranger_does_not_evict_a_guest(guarded):
    """A guest makes room for an owner of the token, not for a peer without one."""
    proven = [guarded.client(headers=TOKEN) for _ in range(PLACES - 1)]
    guest = guarded.connect(headers=TOKEN)
    others = strangers(guarded, PLACES)
    guest.initialize()
    guest.sync()
    for client in proven:
        client.sync()
    for http in others:
        http.close()


def test_a_head_that_has_come_counts(guarded):
    """The server is busy when an owner asks, and a crowd comes behind: it is not the owner who
    makes room."""
    guarded.send_signal(signal.SIGSTOP)
    owner = Http(connect_tcp(guarded.address))
    owner.send(upgrade_request(headers=TOKEN))
    crowd = [connect_tcp(guarded.address) for _ in range(10 * PLACES)]
    guarded.send_signal(signal.SIGCONT)
    assert owner.read().status == 101
    for sock in [owner, *crowd]:
        sock.close()


def test_a_crowd_of_strangers(guarded):
    """While strangers come and come, an owner gets in and works."""
    crowd = []

    def enter():
        crowd.extend(connect_tcp(guarded.address) for _ in range(3 * PLACES))
        try:
            return guarded.client(headers=TOKEN)
        except (Refused, Closed, AssertionError, OSError):
            return None
    client = until(enter, "an owner among strangers")
    crowd.extend(connect_tcp(guarded.address) for _ in range(10 * PLACES))
    assert client.run("echo in").output() == b"in\n"
    for sock in crowd:
        sock.close()


def test_the_places_are_given_back(guarded):
    """Evicted connections free their descriptors."""
    before = guarded.fds()
    for http in strangers(guarded, 10 * PLACES):
        http.close()
    guarded.wait_fds(before)

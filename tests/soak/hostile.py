"""Activities of clients that behave badly or die."""

import json
import pathlib
import signal
import subprocess
import time

from harness.ws import TEXT, connect_tcp, frame, upgrade_request

from ledger import Source
from link import Link, cut_frame, vanish

VICTIM = pathlib.Path(__file__).with_name("victim")


def half_open(world, rng, scope):
    """Connections that stop somewhere on the way: in the head, after the upgrade, in a frame."""
    for _ in range(rng.randrange(1, 10)):
        sock = connect_tcp(world.server.address)
        scope.callback(sock.close)
        stage = rng.randrange(4)
        if stage == 0:
            sock.send(b"GET / HTTP/1.1\r\nHost: x\r\n"[:rng.randrange(1, 25)])
        elif stage > 1:
            sock.send(upgrade_request())
        if stage == 3:
            sock.send(frame(TEXT, b'{"id":1,"method":"initialize"}')[:rng.randrange(1, 36)])
        if world.lasting and rng.random() < 0.2:
            vanish(sock)
            world.count("fault: peer vanished without a word")
    time.sleep(rng.uniform(0, 1))
    world.count("fault: half-open connections")


def crowd(world, rng, scope):
    """Many connections at once, of which some get a session."""
    for _ in range(rng.randrange(20, 80)):
        if rng.random() < 0.5:
            scope.callback(Link(world, rng).close)
        else:
            scope.callback(connect_tcp(world.server.address).close)
    world.count("fault: crowd of connections")


def cut(world, rng, scope):
    """Sockets that end within a frame while answers are on their way."""
    link = Link(world, rng)
    scope.callback(link.close)
    for _ in range(rng.randrange(50)):
        link.client.send("environment/info")
    cut_frame(link.client.transport, rng)
    rng.choice([link.client.transport.reset, link.client.transport.drop])()
    link.resume()
    link.client.sync()
    world.count("fault: socket cut mid-frame")


def killed_client(world, rng, scope):
    """A client process is killed; what its command printed is there for the one that resumes."""
    start, length = rng.randrange(1_000_000), rng.randrange(600_000)
    source = Source(world.blob, start, length)
    argv = ["/bin/sh", "-c", 'tail -c "+$(($2 + 1))" "$1" | head -c "$3"', "sh",
            str(world.blob_file), str(start), str(length)]
    victim = subprocess.Popen(["/usr/bin/python3", str(VICTIM), json.dumps(world.server.address)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    scope.callback(reap, victim)
    victim.stdin.write(json.dumps(argv).encode() + b"\n")
    victim.stdin.flush()
    said = victim.stdout.readline()
    assert said, "the client ended before it was killed"
    told = json.loads(said)
    if "error" in told:
        assert "os error 24" in told["error"] and world.starving(), told
        return
    time.sleep(rng.choice([0, rng.uniform(0, 0.3)]))
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    world.count("fault: client killed")
    link = Link(world, rng)
    scope.callback(link.close)
    link.client.transport.close()
    link.client.session = told["session"]
    ledger = link.expect(told["process"], {"stdout": source, "stderr": Source(b"")})
    assert not link.resume(), "the server forgot a process"
    link.wait_closed(ledger)
    link.finish(ledger, [0])


def reap(child):
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


ACTIVITIES = {half_open: 2, crowd: 1, cut: 2, killed_client: 2}

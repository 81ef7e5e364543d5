"""States in which nothing can go on: no busy loop, an end at once, a way out."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from harness import procfs
from harness.http import Ended, Http
from harness.resting import wait_rest
from harness.rpc import Client, b64
from harness.server import environment
from harness.settings import BINARY, SANITIZED
from harness.waiting import Deadline, until, writable
from harness.ws import TEXT, Closed, WebSocket, connect_tcp, frame, head

MIB = 1 << 20


def assert_idle(server, seconds=0.2):
    """A loop that spins has events it does not take, or sleeps for no time."""
    wait_rest(server, seconds)


def stalled_reader(server):
    client = server.client(rcvbuf=4096)
    size = 40_000_003
    client.start(f"head -c{size} /dev/zero", sink=lambda *_: None)
    until(lambda: any(procfs.writing(p) for p in procfs.marked(f"-c{size}")), "a blocked child")
    return client


def half_closed_and_stalled(server):
    client = stalled_reader(server)
    client.transport.half_close()


def full_stdin(server):
    client = server.client()
    process = client.start("sleep 1000", pipeStdin=True)
    for _ in range(300):
        client.send("process/write", {"processId": process.name, "chunk": b64(b"x" * 30000)})
    client.sync()


def closed_stdin_with_a_queue(server):
    client = server.client()
    with tempfile.TemporaryDirectory() as directory:
        fifo = f"{directory}/go"
        os.mkfifo(fifo)
        process = client.start(f"read go <{fifo}; exec 0<&-; echo closed; sleep 1000",
                               pipeStdin=True)
        for _ in range(100):
            client.send("process/write", {"processId": process.name, "chunk": b64(b"x" * 30000)})
        client.sync()
        with open(fifo, "w", encoding="ascii") as f:
            f.write("go\n")
        client.wait_output(process, "closed\n")


def closed_stdin_without_a_queue(server):
    client = server.client()
    process = client.start("exec 0<&-; echo closed; sleep 1000", pipeStdin=True)
    client.wait_output(process, "closed\n")


def closed_output(server):
    client = server.client()
    process = client.start("echo closing; exec >&- 2>&-; sleep 1000")
    client.wait_output(process, "closing\n")


def closed_stdout_only(server):
    client = server.client()
    process = client.start("echo closing; exec >&-; sleep 1000")
    client.wait_output(process, "closing\n")


def closed_terminal(server):
    """Everybody closed the terminal, but the leader still runs."""
    client = server.client()
    process = client.start("trap '' HUP; echo closing; exec </dev/null >/dev/null 2>&1; sleep 1000",
                           tty=True)
    client.wait_output(process, "closing")


def held_terminal(server):
    client = server.client()
    process = client.start("trap '' HUP; sleep 1000 & exit 0", tty=True)
    client.wait_exited(process)


def held_pipes(server):
    client = server.client()
    process = client.start("sleep 1000 & exit 0")
    client.wait_exited(process)


def detached(server):
    client = server.client()
    client.start("sleep 1000", pipeStdin=True)
    client.start("sleep 1000", tty=True)
    client.transport.reset()


def half_a_message(server):
    server.client().transport.send_bytes(head(TEXT, MIB) + b"{")


def half_a_head(server):
    server.http().send("GET / HT")


def half_closed_http(server):
    http = server.http()
    http.send("GET / HT")
    http.sock.shutdown(socket.SHUT_WR)


def long_polls(server):
    client = server.client()
    process = client.start("sleep 1000")
    for wait in (10**6, 2**63, 2**64 - 1):
        client.send("process/read", {"processId": process.name, "waitMs": wait})
    client.sync()


def stopped_child(server):
    client = server.client()
    client.start("kill -STOP $$")
    client.sync()


def terminated_with_a_foreign_holder(server):
    client = server.client()
    process = client.start("echo $$; sleep 1000")
    client.wait(lambda: b"\n" in process.output(), "the pid")
    server.held = open(f"/proc/{int(process.output())}/fd/1", "wb", buffering=0)
    client.terminate(process)
    client.wait_closed(process)


STATES = [stalled_reader, half_closed_and_stalled, full_stdin, closed_stdin_with_a_queue,
          closed_stdin_without_a_queue, closed_output, closed_stdout_only, closed_terminal,
          held_terminal, held_pipes, detached, half_a_message, half_a_head, half_closed_http,
          long_polls, stopped_child, terminated_with_a_foreign_holder]


def test_no_state_spins_and_all_end_at_once(server):
    """All states at the same time; then the server must still end cleanly."""
    for state in STATES:
        state(server)
    assert_idle(server)
    other = server.client()
    assert other.run("echo ok").output() == b"ok\n"
    server.stop()
    server.held.close()


@pytest.mark.parametrize("state", STATES, ids=lambda f: f.__name__)
def test_sigterm_in_each_state(server, state):
    state(server)
    server.stop(signal.SIGTERM)


def test_out_of_descriptors_for_connections(fleet):
    """accept(2) that fails for want of descriptors does not make the server spin."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    server = fleet.start(preexec=limit, quiet=False)
    client = server.client()
    sockets = [connect_tcp(server.address) for _ in range(80)]
    client.sync()
    assert_idle(server, 0.05)  # it tries again ten times a second
    client.sync()
    for sock in sockets:
        sock.close()

    def enter():
        try:
            return server.client()
        except (Closed, Ended, OSError):
            return None
    until(enter, "a connection after the others went").sync()


def test_too_many_connections_do_not_spin(fleet):
    server = fleet.start("--max-connections", "5")
    client = server.client()
    sockets = [connect_tcp(server.address) for _ in range(50)]
    client.sync()
    assert_idle(server)
    for sock in sockets:
        sock.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_started_without_standard_descriptors():
    """Sockets and pipes that land on 0, 1 and 2 do not disturb the children."""
    port = free_port()
    popen = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" --listen "$1" <&- >&- 2>&-', BINARY, f"ws://127.0.0.1:{port}"],
        env=environment())
    try:
        def enter():
            try:
                return Client(WebSocket(("127.0.0.1", port)))
            except OSError:
                return None
        client = until(enter, "a connection")
        client.initialize()
        for tty in (False, True):
            process = client.start("read a; echo got:$a; echo err >&2", pipeStdin=True, tty=tty)
            client.write(process, "x\n")
            client.wait_closed(process)
            assert b"got:x" in process.output() and b"err" in process.output()
        assert client.run("readlink /proc/self/fd/0").output() == b"/dev/null\n"
        client.close()
        popen.terminate()
        assert popen.wait(20) == 0
    finally:
        popen.kill()
        popen.wait()


def test_restart_on_the_same_port(fleet):
    server = fleet.start()
    port = server.address[1]
    clients = [server.client() for _ in range(5)]
    server.stop()
    for client in clients:
        client.close()
    again = fleet.start(listen=f"ws://127.0.0.1:{port}")
    again.client().sync()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a PID namespace")
def test_as_init_of_a_namespace():
    """As PID 1 it reaps orphans, and SIGTERM ends it."""
    port = free_port()
    argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", BINARY,
            "--listen", f"ws://127.0.0.1:{port}"]
    popen = subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if popen.stdout.readline() == b"":
            pytest.skip("no PID namespace on this machine")
        client = Client(WebSocket(("127.0.0.1", port)))
        client.initialize()
        pid = next(p for p in procfs.descendants(popen.pid) if p != popen.pid)
        assert client.run("echo $PPID").exit_code == 0
        for _ in range(5):
            client.run("(setsid true &) & (true &) & exit 0")
        token = procfs.mark()
        process = client.start(f"(setsid sleep {token} &) & sleep {token}")
        procfs.wait_marked(token, 2)
        client.terminate(process)
        client.wait_closed(process)
        procfs.wait_marked(token, 0)
        procfs.wait_no_zombies(pid)
        os.kill(pid, signal.SIGTERM)
        assert popen.wait(20) == 0
        client.close()
    finally:
        popen.kill()
        popen.wait()
        popen.stdout.close()


@contextlib.contextmanager
def plain_user(fleet):
    """A client of a plain user's server, and a Python that can become root, as sudo does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        program = shutil.copy(BINARY, directory)
        sudo = shutil.copy(os.path.realpath("/usr/bin/python3"), directory)
        os.chmod(sudo, 0o4755)
        server = fleet.start(binary=program, cwd="/", wrapper=[
            "setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"])
        yield server.client(), sudo


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a set-user-ID program")
def test_terminate_with_a_descendant_of_another_user(fleet):
    """What sudo has started cannot be killed: nobody waits for its end."""
    token = procfs.mark()
    script = "import os, time; os.setresuid(0, 0, 0); print('up', flush=True); time.sleep(1000)"
    with plain_user(fleet) as (client, sudo):
        process = client.start(f'{sudo} -I -c "{script}" {token} & wait', cwd="file:///")
        try:
            client.wait_output(process, "up\n")
            client.terminate(process)
            client.wait_closed(process)
            assert process.exit_code == 128 + signal.SIGKILL
            assert any(os.stat(f"/proc/{pid}").st_uid == 0 for pid in procfs.marked(token))
        finally:
            for pid in procfs.marked(token):
                os.kill(pid, signal.SIGKILL)
        procfs.wait_marked(token, 0)


BELOW_SUDO = """
import os, time
os.setresuid(0, 0, 0)
if os.fork() == 0:
    os.setsid()
    os.setresuid(12345, 12345, 12345)
    print("up", flush=True)
time.sleep(1000)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a set-user-ID program")
def test_terminate_reaches_below_another_user(fleet):
    """`sudo -u me`: its child is ours again, in a session of its own."""
    token = procfs.mark()
    with plain_user(fleet) as (client, sudo):
        process = client.start(f"{sudo} -I -c '{BELOW_SUDO}' {token} & wait", cwd="file:///")
        try:
            client.wait_output(process, "up\n")
            client.terminate(process)
            client.wait_closed(process)
            until(lambda: [os.stat(f"/proc/{pid}").st_uid for pid in procfs.marked(token)] == [0],
                  "only root's process is left")
        finally:
            for pid in procfs.marked(token):
                os.kill(pid, signal.SIGKILL)
        procfs.wait_marked(token, 0)


def test_parked_writes_of_a_child_that_exits(client, tmp_path):
    """What a child will never read is accepted and dropped."""
    gate = tmp_path / "gate"
    process = client.start(f"while [ ! -e {gate} ]; do sleep 0.02; done; exit 3", pipeStdin=True)
    idents = [client.send("process/write", {"processId": process.name, "chunk": b64(b"x" * 50000),
                                            "writeId": str(i)}) for i in range(300)]
    client.barrier()
    assert any(i not in client.answers for i in idents)
    gate.touch()
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    client.wait_closed(process)
    assert process.exit_code == 3


def test_parked_writes_of_a_child_that_closes_its_stdin(client, tmp_path):
    gate = tmp_path / "gate"
    process = client.start(
        f"while [ ! -e {gate} ]; do sleep 0.02; done; exec 0<&-; echo closed; sleep 1000",
        pipeStdin=True)
    idents = [client.send("process/write", {"processId": process.name, "chunk": b64(b"x" * 50000)})
              for _ in range(300)]
    client.barrier()
    gate.touch()
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    client.terminate(process)


def test_repeated_id_of_a_parked_write(client, tmp_path):
    """A repetition that arrives while the first still waits does not write twice."""
    gate = tmp_path / "gate"
    count, size = 300, 50000
    process = client.start(
        f"while [ ! -e {gate} ]; do sleep 0.02; done; head -c {count * size} >/dev/null; head -c 7",
        pipeStdin=True)
    idents = [client.send("process/write", {"processId": process.name, "chunk": b64(b"x" * size)})
              for _ in range(count)]
    for _ in range(3):
        idents.append(client.send("process/write", {"processId": process.name,
                                                    "chunk": b64("abc"), "writeId": "same"}))
    idents.append(client.send("process/write", {"processId": process.name, "chunk": b64("defg")}))
    gate.touch()
    for ident in idents:
        assert client.result(ident) == {"status": "accepted"}
    client.wait_closed(process)
    assert process.output() == b"abcdefg"


def test_many_pipelined_starts(server):
    """Hundreds of starts sent before the first read."""
    client = server.client()
    client.sync()
    data, names = [], []
    for i in range(500):
        names.append(f"m{i}")
        _, text = client.encode("process/start", client.start_params(
            ["/bin/echo", str(i)], processId=names[-1]))
        data.append(frame(TEXT, text.encode()))
    client.transport.send_bytes(b"".join(data))
    for i, name in enumerate(names):
        client.wait(lambda n=name: n in client.processes, "a start")
        client.wait_closed(client.processes[name])
        assert client.processes[name].output() == b"%d\n" % i
    # A process is closed before the server has reaped its supervisor.
    until(lambda: not server.zombies(), "no zombies")


def test_pipelined_http_without_reading(server):
    before = server.rss()
    http = Http(connect_tcp(server.address, 4096))
    sent = 0
    data = b"GET /readyz HTTP/1.1\r\n\r\n" * 1000
    while sent < 50 * MIB:
        try:
            sent += http.sock.send(data)
        except BlockingIOError:
            wait_rest(server)
            if not writable(http.sock, 0):
                break
    server.client().sync()
    if not SANITIZED:
        assert server.rss() - before < 8 * MIB
    http.close()


def test_same_request_id_twice_while_waiting(client):
    process = client.start("sleep 1000")
    for _ in range(2):
        client.send_raw('{"id":5000,"method":"process/read","params":{"processId":"%s",'
                        '"waitMs":1000000}}' % process.name)
    client.barrier()
    client.terminate(process)
    for _ in range(2):
        assert client.answer(5000)["result"]["exited"]


def test_takeover_of_a_stalled_connection(server):
    """A peer whose buffers are full can not be pinged; it loses its session all the same."""
    first = stalled_reader(server)
    deadline = Deadline()
    while True:
        second = server.connect()
        answer = second.answer(second.send(
            "initialize", {"clientName": "x", "resumeSessionId": first.session}))
        if "result" in answer:
            break
        assert answer["error"]["code"] == -32010
        second.close()
        assert not deadline.passed(), "no takeover"
        time.sleep(0.05)
    second.notify("initialized", {})
    name, = first.processes
    result = second.read(name, afterSeq=2**64 - 1, waitMs=60000)
    assert result["closed"] and result["exitCode"] == 0


def test_fin_of_a_stalled_client_detaches_at_once(server):
    first = stalled_reader(server)
    first.transport.half_close()

    def resumed():
        client = server.connect()
        answer = client.answer(client.send(
            "initialize", {"clientName": "x", "resumeSessionId": first.session}))
        if "result" in answer:
            client.notify("initialized", {})
            return client
        client.close()
        return None
    second = until(resumed, "the session is free")
    name, = first.processes
    assert second.read(name, afterSeq=2**64 - 1, waitMs=60000)["closed"]


def test_resume_is_answered_before_notifications(server):
    first = server.client()
    process = first.start("while :; do echo x; done", sink=lambda *_: None)
    first.wait(lambda: process.next_seq > 3, "output")
    session = first.session
    first.transport.reset()
    for _ in range(10):
        def resumed():
            ws = server.websocket()
            ws.send_text('{"id":1,"method":"initialize","params":{"clientName":"x",'
                         '"resumeSessionId":"%s"}}' % session)
            data = ws.receive()
            assert b'"id":1' in data, data[:100]
            return ws if b'"result"' in data else ws.close()
        until(resumed, "resumed").reset()


def test_race_to_resume(server):
    """Of many that want a detached session one gets it, the others hear that it is attached."""
    for _ in range(10):
        first = server.client()
        first.start("sleep 1000")
        first.end()
        others = [server.connect() for _ in range(8)]
        idents = [c.send("initialize", {"clientName": "x", "resumeSessionId": first.session})
                  for c in others]
        answers = [c.answer(i) for c, i in zip(others, idents)]
        assert sum("result" in a for a in answers) == 1
        assert all(a["error"]["code"] == -32010 for a in answers if "error" in a)
        for client in others:
            client.close()

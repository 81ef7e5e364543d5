"""GET /metrics: who may ask, and what the figures say."""

import pytest

from harness.http import Http
from harness.metrics import Metrics, metrics
from harness.server import run
from harness.waiting import until
from harness.ws import Refused, connect_tcp

TYPE = "text/plain; version=0.0.4; charset=utf-8"


@pytest.fixture
def measured(fleet):
    return fleet.start("--metrics")


def ask(server, host="localhost", headers=(), method="GET", path="/metrics"):
    """The answer to a request whose Host is given (None: without one)."""
    http = Http(connect_tcp(server.address))
    lines = [f"{method} {path} HTTP/1.1", *([] if host is None else [f"Host: {host}"])]
    lines += [f"{name}: {value}" for name, value in headers]
    http.send("\r\n".join(lines) + "\r\n\r\n")
    answer = http.read(method)
    http.close()
    return answer


# Who may ask.

def test_off_by_default(server):
    assert ask(server).status == 404
    assert ask(server, headers=[("Sec-Fetch-Mode", "cors")]).status == 404


def test_answer(measured):
    answer = ask(measured)
    assert answer.status == 200 and answer.header("content-type") == TYPE
    assert answer.body.endswith(b"\n")
    head = ask(measured, method="HEAD")
    assert head.status == 200 and head.header("content-type") == TYPE and head.body == b""
    assert int(head.header("content-length")) > 1000
    assert ask(measured, path="/metrics?x=1").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_methods(measured, method):
    answer = ask(measured, method=method)
    assert answer.status == 405 and answer.header("allow") == "GET,HEAD"


@pytest.mark.parametrize("path", ["/metrics/", "/Metrics", "/metricsx", "//metrics"])
def test_other_paths(measured, path):
    assert ask(measured, path=path).status == 404


@pytest.mark.parametrize("headers", [
    [("Origin", "http://localhost")], [("Origin", "null")], [("origin", "")],
    [("Sec-Fetch-Mode", "navigate")], [("sec-fetch-site", "none")], [("SEC-FETCH-DEST", "")],
    [("Sec-Fetch-Other", "x")],
])
def test_browsers(measured, headers):
    answer = ask(measured, headers=headers)
    assert answer.status == 403 and (b"--http-host" in answer.body) == (answer.body != b"")


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1", 200), ("127.0.0.1:9090", 200), ("192.0.2.1", 200), ("[::1]", 200),
    ("[2001:db8::1]:80", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("Known.example", 200),
    ("known.example:80", 200), ("other.example", 403), ("known.example.evil", 403), ("", 403),
    (None, 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403),
    ("[::1", 403), ("::1", 403), ("localhost:x", 403),
])
def test_hosts(fleet, host, status):
    server = fleet.start("--metrics", "--http-host", "known.example")
    assert ask(server, host).status == status


def test_authorization(fleet, tmp_path):
    token = tmp_path / "token"
    token.write_text("sekret")
    server = fleet.start("--metrics", "--ws-auth", "capability-token", "--ws-token-file",
                         str(token))
    answer = ask(server)
    assert (answer.status, answer.body) == (401, b"missing websocket bearer token")
    answer = ask(server, headers=[("Authorization", "Bearer other")])
    assert (answer.status, answer.body) == (401, b"invalid websocket bearer token")
    good = [("Authorization", "Bearer sekret")]
    assert ask(server, headers=good).status == 200
    # What a browser must not have it does not get with a token either.
    assert ask(server, headers=[*good, ("Origin", "http://x")]).status == 403
    assert ask(server, "other.example", headers=good).status == 403
    found = metrics(server, headers=good)
    assert found.get("refusals_total", reason="auth") == 2
    assert found.get("refusals_total", reason="origin") == 1
    assert found.get("refusals_total", reason="host") == 1


def test_beyond_loopback(fleet, tmp_path):
    code, out, err = run("--listen", "ws://0.0.0.0:0", "--metrics")
    assert (code, out) == (1, "")
    assert err == ("Error: --metrics: `ws://0.0.0.0:0` is not a loopback address and `--ws-auth` "
                   "is not set\n")
    token = tmp_path / "token"
    token.write_text("sekret")
    server = fleet.start("--metrics", "--ws-auth", "capability-token", "--ws-token-file",
                         str(token), listen="ws://0.0.0.0:0")
    assert ask(server).status == 401
    assert ask(server, headers=[("Authorization", "Bearer sekret")]).status == 200


def test_unix(fleet, tmp_path):
    server = fleet.start("--metrics", listen=f"unix://{tmp_path}/s")
    assert metrics(server).get("connections") == 1


def test_keep_alive(measured):
    """On one connection, one behind the other."""
    http = measured.http()
    request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    http.send(request * 3)
    found = [Metrics(http.read().body.decode()) for _ in range(3)]
    assert [each.get("connections_accepted_total") for each in found] == [1, 1, 1]


# What the figures say.

def test_families(measured):
    found = metrics(measured)
    assert len(found.families) > 20
    for name, family in found.families.items():
        assert name.startswith(("exec_server_", "process_"))
        assert family.type in ("counter", "gauge", "histogram"), name
    assert found.get("uptime_seconds") >= 0
    [info] = found.families["exec_server_build_info"].samples
    assert info.value == 1 and info.labels["version"] == run("--version")[1].split()[1]


def test_process_of_the_server(measured):
    http = measured.http()
    found = Metrics(http.ask("/metrics").body.decode())
    assert found.process("resident_memory_bytes") > 0
    assert found.process("open_fds") == measured.fds()
    assert found.process("max_fds") >= found.process("open_fds")
    assert found.process("cpu_seconds_total") >= 0
    again = metrics(measured)
    assert again.process("start_time_seconds") == found.process("start_time_seconds")


def test_connections(fleet):
    server = fleet.start("--metrics", "--max-connections", "3")
    http = server.http()

    def figures():
        return Metrics(http.ask("/metrics").body.decode())
    held = [server.client(), server.client()]
    found = figures()
    assert found.get("connections") == 3 and found.get("connections_accepted_total") == 3
    held.append(server.client())
    http.wait_eof()  # it made room
    with pytest.raises(Refused):
        server.websocket()
    held.pop().end()
    http = server.http()
    until(lambda: figures().get("connections") == 3, "the end of a connection")
    found = figures()
    assert found.get("refusals_total", reason="capacity") == 2
    assert found.get("connections_accepted_total") == 5


def test_sessions(measured):
    client, other = measured.client(), measured.client()
    assert metrics(measured).get("sessions", state="attached") == 2
    client.close()
    until(lambda: metrics(measured).get("sessions", state="detached") == 1, "the detach")
    assert metrics(measured).get("sessions", state="attached") == 1
    measured.client(resume=client.session)
    assert metrics(measured).get("sessions", state="detached") == 0
    other.sync()


def test_processes(measured):
    client = measured.client()
    client.run("exit 0")
    client.run("exit 1")
    client.run("exit 2")
    client.run("kill -9 $$")
    client.wait_closed(client.start("sleep 1000", timeoutMs=1))
    running = client.start("sleep 1000")
    held = client.start("sleep 1000 & exit 0")
    client.wait_exited(held)
    client.start_error(["/no/such/program"])
    client.start_error([])
    found = metrics(measured)
    states = {state: found.get("processes", state=state)
              for state in ("starting", "running", "exited", "closed")}
    assert states == {"starting": 0, "running": 1, "exited": 1, "closed": 5}
    assert found.get("process_starts_total") == 7
    assert found.get("process_start_failures_total", reason="failed") == 1
    assert found.get("process_start_failures_total", reason="refused") == 1
    exits = {kind: found.get("process_exits_total", kind=kind)
             for kind in ("success", "failure", "signal")}
    assert exits == {"success": 2, "failure": 2, "signal": 2}
    assert found.get("process_timeouts_total") == 1
    assert found.get("supervisors") >= 2
    client.terminate(running)
    client.wait_closed(running)
    assert metrics(measured).get("process_exits_total", kind="signal") == 3


def test_bytes(measured):
    client = measured.client()
    size = 300000
    process = client.start(f"head -c {size} /dev/zero; cat", pipeStdin=True)
    client.write(process, "x" * 1000)
    client.wait(lambda: len(process.output()) == size + 1000, "all output")
    found = metrics(measured)
    assert found.get("output_bytes_total") == size + 1000
    assert found.get("input_bytes_total") == 1000
    assert size <= found.get("retained_output_bytes", state="open")
    assert found.get("retained_output_bytes", state="closed") == 0
    client.write(process, "", closeStdin=True)
    client.wait_closed(process)
    found = metrics(measured)
    assert found.get("retained_output_bytes", state="open") == 0
    assert size <= found.get("retained_output_bytes", state="closed")


def test_requests(measured):
    client = measured.client()
    client.sync()
    client.sync()
    client.error("process/read", {"processId": "none"})
    client.error("no/such/method", {})
    client.error("another \"one\"\n", {})
    client.send_raw("{")
    client.wait(lambda: client.answers.get(-1), "the complaint")
    found = metrics(measured)

    def requests(method, outcome):
        return found.get("requests_total", method=method, outcome=outcome)
    assert requests("environment/status", "result") == 2
    assert requests("initialize", "result") == 1
    assert requests("process/read", "error") == 1
    assert requests("unknown", "error") == 2
    assert found.get("malformed_messages_total") == 1
    assert "another" not in str(found.values)


def test_waiting(measured):
    """Requests that wait, what waits to be written, and what became of them."""
    client = measured.client()
    sleeper = client.start("sleep 1000", pipeStdin=True)
    for _ in range(5):
        client.send("process/read", {"processId": sleeper.name, "waitMs": 600000})
    client.barrier()
    assert metrics(measured).get("parked_calls") == 5
    chunk = "x" * (1 << 20)
    ident = client.send("process/write", {"processId": sleeper.name, "chunk": chunk})
    client.result(ident)
    for _ in range(2):
        client.send("process/write", {"processId": sleeper.name, "chunk": chunk})
    client.barrier()
    found = metrics(measured)
    assert found.get("queue_bytes", queue="stdin") > 0
    assert found.get("queue_bytes", queue="writes") > 0
    assert found.get("parked_calls") >= 6
    client.close()
    until(lambda: metrics(measured).get("parked_calls") == 0, "the end of the connection")
    assert metrics(measured).get("requests_total", method="process/read",
                                 outcome="dropped") == 5


def test_output_queue(measured):
    """A client that does not read has a queue; it is gone with the client."""
    slow = measured.client(rcvbuf=4096)
    slow.send("process/start", slow.start_params("exec cat /dev/zero"))

    def queued():
        return metrics(measured).get("queue_bytes", queue="output")
    until(lambda: queued() > 100000, "a queue")
    slow.close()
    until(lambda: queued() == 0, "its end")


def test_refused_user_and_defaults(measured):
    """Every reason has its series from the start, so that a rate can be taken."""
    found = metrics(measured)
    for reason in ("origin", "host", "auth", "capacity", "user"):
        assert found.get("refusals_total", reason=reason) == 0
    assert found.get("audit_lines_dropped_total") == 0
    assert found.get("log_lines_dropped_total") == 0

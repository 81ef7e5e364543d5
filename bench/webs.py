"""The group `http`: http/request to an nginx on the loopback; the HTTP program counts with its
server."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from servers import BenchError, Candidate, running

MB = 1000 * 1000
PROGRAM = "exec-server-http"
TOP = pathlib.Path(__file__).resolve().parent.parent
NGINX = """
daemon off;
worker_processes 1;
pid {place}/pid;
error_log {place}/error.log;
events {{ }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    client_body_temp_path {place}/t1; proxy_temp_path {place}/t2; fastcgi_temp_path {place}/t3;
    uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;
    server {{ listen 127.0.0.1:{port}; root {place}; }}
}}
"""


@contextlib.contextmanager
def origin(size):
    """An nginx with two files; its URL."""
    search = f"{os.environ['PATH']}:/usr/sbin"
    if not shutil.which("nginx", path=search):
        raise BenchError("nginx is missing: `tools/deps peers` installs it")
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="exec-server-bench.", dir=shared) as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        (place / "small").write_bytes(b"x" * 100)
        with open(place / "large", "wb") as f:
            f.truncate(size)
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        (place / "config").write_text(NGINX.format(place=place, port=port))
        nginx = subprocess.Popen(
            ["nginx", "-e", str(place / "error.log"), "-c", str(place / "config")],
            env={**os.environ, "PATH": search}, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_port(port, nginx)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(nginx.pid, signal.SIGKILL)
            nginx.wait()


def wait_port(port, nginx):
    for _ in range(500):
        if nginx.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise BenchError("nginx does not listen")


def family(pid):
    """A process and all below it."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
                    found += [int(n) for n in f.read().split()]
    return found


def cpu(pids):
    """Seconds of all of them so far, and of their children that have ended."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
            total += sum(int(n) for n in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def peak(pids):
    """The most memory of all of them together, in bytes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
            found = re.search(r"VmHWM:\s+(\d+) kB", f.read())
            total += int(found[1]) * 1024 if found else 0
    return total


def with_program(candidate):
    """Ours with the HTTP program of the build, which is not beside the static server."""
    if candidate.name != "ours":
        return candidate
    places = [pathlib.Path(candidate.program).parent / PROGRAM, TOP / "build" / PROGRAM]
    found = next((str(p) for p in places if p.exists()), None)
    if found is None:
        raise BenchError(f"{PROGRAM} is not built")
    return Candidate(candidate.name, [*candidate.command, "--http-program", found], candidate.env)


def run(bench):
    size = (1 << 28) if bench.quick else (1 << 30)
    with origin(size) as url, running([with_program(c) for c in bench.candidates]) as servers:
        small(bench, servers, url)
        large(bench, servers, url, size)


def small(bench, servers, url):
    spent, calls, taken = {}, {}, []
    how = {"count": 5000, "warmup": 50, "millis": 1000 if bench.quick else 3000,
           "path": url + "/small"}
    for turn in bench.rounds(4, 2):
        taken.append((turn, "machine", bench.drive("machine-request", **how)))
        for server in servers:
            before = cpu(family(server.pid))
            done = bench.drive("request", server, **how)
            taken.append((turn, server.name, done))
            spent[server.name] = spent.get(server.name, 0) + cpu(family(server.pid)) - before
            calls[server.name] = calls.get(server.name, 0) + len(done["samples"]) + 50
    bench.add_samples("http", taken)
    for name, seconds in spent.items():
        bench.results.add("http_cpu", name, seconds / calls[name] * 1e6)


def large(bench, servers, url, size):
    for _ in bench.rounds(3, 2):
        for server in servers:
            before = cpu(family(server.pid))
            done = bench.drive("stream", server, bytes=size, path=url + "/large")
            spent = cpu(family(server.pid)) - before
            bench.results.add("http_rate", server.name, size / done["wall_ns"] * 1e9 / MB)
            bench.results.add("http_stream_cpu", server.name, spent / size * 1e9)
            bench.results.add("http_memory", server.name, peak(family(server.pid)) / MB)

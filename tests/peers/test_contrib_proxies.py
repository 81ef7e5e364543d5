"""The proxies of contrib/: several machines behind one address, by path and by host name."""

import asyncio
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "real-client"))
# pylint: disable=wrong-import-position
from bridge import demand
from harness.fleet import Fleet
from harness.rpc import Client
from harness.settings import ROOT
from harness.waiting import Deadline, until
from harness.ws import Refused, WebSocket, connect_tcp
from proxies import SEARCH, Certificate, free_port
from rig.bench import Bench
from scenarios.common import environments_file

CLIENT = "127.0.0.5"  # not the address of the proxy
NGINX = """daemon off;
{user}
worker_processes 1;
pid {place}/nginx.pid;
error_log {place}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    include {config};
}}
"""


def token_of(name):
    return f"token-of-{name}"


@pytest.fixture
def fleet():
    made = Fleet()
    yield made
    made.finish()


def servers(fleet, tmp_path):
    """Two machines, each with a token of its own."""
    made = {}
    for name in ("one", "two"):
        tokens = tmp_path / f"tokens-{name}"
        tokens.write_text(f"agent {token_of(name)}\n")
        tokens.chmod(0o600)
        made[name] = fleet.start("--ws-auth", "capability-token", "--ws-tokens-file", str(tokens),
                                 "--trusted-proxy", "127.0.0.1", "--metrics", quiet=False)
    return made


def configure(kind, place, port, machines, certificate):
    """The file of contrib/ with addresses and places of ours: how to start the proxy."""
    name = "exec-server.cfg" if kind == "haproxy" else "exec-server.conf"
    text = (ROOT / "contrib" / kind / name).read_text()
    changes = {"bind :443": f"bind 127.0.0.1:{port}", "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
               "/etc/haproxy/exec-server.pem": str(certificate.both),
               "/etc/nginx/exec-server.pem": str(certificate.certificate),
               "/etc/nginx/exec-server.key": str(certificate.key),
               "/run/haproxy/exec-server.sock": f"{place}/admin",
               "10.0.0.11:8765": f"127.0.0.1:{machines['one'].address[1]}",
               "10.0.0.12:8765": f"127.0.0.1:{machines['two'].address[1]}"}
    for old, new in changes.items():
        text = text.replace(old, new)
    assert "10.0.0." not in text and "/etc/" not in text.replace("/etc/nginx/conf.d", "")
    (place / name).write_text(text)
    if kind == "haproxy":
        return ["haproxy", "-db", "-q", "-f", str(place / name)]
    user = "user root;" if os.geteuid() == 0 else ""
    (place / "nginx.conf").write_text(NGINX.format(user=user, place=place, config=place / name))
    return ["nginx", "-e", str(place / "error.log"), "-c", str(place / "nginx.conf")]


@pytest.fixture(params=["haproxy", "nginx"])
def proxy(request, fleet, tmp_path):
    kind = request.param
    demand(shutil.which(kind, path=SEARCH), kind)
    demand(shutil.which("openssl"), "openssl")
    machines = servers(fleet, tmp_path)
    certificate = Certificate(tmp_path)
    port = free_port()
    place = tmp_path / "proxy"
    place.mkdir()
    command = configure(kind, place, port, machines, certificate)
    popen = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL,
                             env={**os.environ, "PATH": SEARCH})

    def listening():
        assert popen.poll() is None, f"{kind} ended: {popen.returncode}"
        try:
            connect_tcp(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True
    try:
        until(listening, f"{kind} listens")
        yield SimpleNamespace(kind=kind, port=port, ca=certificate.certificate, place=place,
                              machines=machines, popen=popen)
    finally:
        popen.terminate()
        popen.wait(Deadline().left())


class Tunnel:
    """Carries one connection of a client without TLS to the proxy, under another host name."""

    def __init__(self, proxy, host):
        context = ssl.create_default_context(cafile=str(proxy.ca))
        raw = socket.create_connection(("127.0.0.1", proxy.port), timeout=120,
                                       source_address=(CLIENT, 0))
        self.outer = context.wrap_socket(raw, server_hostname="localhost")
        self.outer.settimeout(None)
        self.host = host.encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        self.inner = self.listener.accept()[0]
        self.listener.close()
        head = self.inner.recv(65536)
        self.outer.sendall(re.sub(rb"(?mi)^host:[^\r]*", b"Host: " + self.host, head, count=1))
        threading.Thread(target=self.pump, args=(self.inner, self.outer), daemon=True).start()
        self.pump(self.outer, self.inner)

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def connect(proxy, path, token, host="localhost", forged=None):
    """A client through the proxy."""
    headers = [("Authorization", f"Bearer {token}")]
    headers += [("X-Forwarded-For", forged)] if forged else []
    client = Client(WebSocket(Tunnel(proxy, host).address, path=path, headers=headers))
    client.initialize()
    return client


@pytest.mark.parametrize("path, host, name", [
    ("/m/one", "agents.example.org", "one"), ("/m/two", "agents.example.org", "two"),
    ("/", "one.agents.example.org", "one"), ("/", "two.agents.example.org", "two"),
    ("/m/two", "one.agents.example.org", "two"),
])
def test_machine(proxy, path, host, name):
    client = connect(proxy, path, token_of(name), host, forged="203.0.113.9")
    assert client.run("cat", pipeStdin=False).exit_code == 0
    text = proxy.machines[name].stderr()
    assert f'peer="{CLIENT}, via 127.0.0.1:' in text and "203.0.113.9" not in text
    client.end()


@pytest.mark.parametrize("path, host, status", [
    ("/", "agents.example.org", 404), ("/m/three", "one.agents.example.org", 404),
    ("/m/one/x", "agents.example.org", 404), ("/metrics", "one.agents.example.org", 404),
    ("/m/one/../../metrics", "agents.example.org", 404), ("/m/two", "agents.example.org", 401),
])
def test_nothing_else(proxy, path, host, status):
    """The token of one machine is none for the other, and only the WebSocket is forwarded."""
    with pytest.raises(Refused) as refused:
        connect(proxy, path, token_of("one"), host)
    assert refused.value.response.status == status


def test_the_real_client(proxy):
    """The Codex client works on one machine by a wss: URL, with the token of that machine."""
    done = subprocess.run([ROOT / "tools" / "reference"], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        pytest.skip("the client cannot be had")
    bench = Bench([], done.stdout.strip(), True)
    entry = (f'url = "wss://localhost:{proxy.port}/m/two"\n'
             f'auth_bearer_token = "{token_of("two")}"')

    async def turn():
        async with bench.client(environments=environments_file(entry)) as model:
            output = await model.shell("echo through; exit 7")
            assert (output.code, output.out) == (7, "through\n"), output.text
    bench.variables["SSL_CERT_FILE"] = str(proxy.ca)
    try:
        asyncio.run(turn())
    finally:
        asyncio.run(bench.close(False))
    assert "client connected" in proxy.machines["two"].stderr()
    assert "client connected" not in proxy.machines["one"].stderr()


def test_draining(proxy):
    """A machine that is taken out keeps its clients and gets no new one."""
    client = connect(proxy, "/m/one", token_of("one"))
    if proxy.kind == "haproxy":
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(proxy.place / "admin"))
            admin.sendall(b"set server one/one state drain\n")
            assert admin.recv(100).strip() == b""
    else:
        config = proxy.place / "exec-server.conf"
        lines = config.read_text().splitlines(keepends=True)
        config.write_text("".join(line for line in lines if not line.strip().startswith(
            ("/m/one ", "one.agents"))))
        os.kill(proxy.popen.pid, signal.SIGHUP)

    def refused():
        try:
            connect(proxy, "/m/one", token_of("one")).end()
        except Refused as answer:
            return answer.response.status in (404, 503)
        return False
    until(refused, "no new client")
    assert client.run("echo still").output() == b"still\n"
    connect(proxy, "/m/two", token_of("two")).end()
    client.end()

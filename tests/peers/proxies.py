"""nginx and haproxy with TLS in front of a server."""

import os
import shutil
import signal
import socket
import subprocess

from bridge import demand
from harness.waiting import Deadline, until
from harness.ws import connect_tcp

SEARCH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

NGINX = """
daemon off;
{user}
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        client_max_body_size 0;
        location / {{
            proxy_pass http://127.0.0.1:{backend};
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header X-Outside $server_protocol;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_read_timeout {idle}s;
            proxy_send_timeout {idle}s;
        }}
    }}
}}
"""

HAPROXY = """
global
    maxconn 256
    nbthread 1
defaults
    mode http
    timeout connect 60s
    timeout client {idle}s
    timeout server {idle}s
    timeout tunnel {idle}s
frontend outside
    bind 127.0.0.1:{port} ssl crt {both} alpn h2,http/1.1
    http-request set-header x-outside HTTP/%[req.ver]
    default_backend inside
backend inside
    server one 127.0.0.1:{backend}
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Certificate:
    """Made for the tests, and trusted by their clients only."""

    def __init__(self, directory):
        self.certificate, self.key = directory / "cert.pem", directory / "key.pem"
        self.both = directory / "both.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext",
             "basicConstraints=critical,CA:FALSE",  # an authority is no server to some clients
             "-keyout", str(self.key), "-out",
             str(self.certificate)], check=True, capture_output=True)
        self.both.write_bytes(self.certificate.read_bytes() + self.key.read_bytes())


class Ended(Exception):
    """A proxy is gone."""


class Proxy:
    """One proxy process. Connections that are idle for `idle` seconds are its to end."""

    def __init__(self, kind, directory, certificate, backend, idle):
        self.kind, self.directory = kind, directory
        demand(shutil.which(kind, path=SEARCH), kind)
        demand(shutil.which("openssl"), "openssl")
        directory.mkdir()
        self.ca = str(certificate.certificate)
        text = NGINX if kind == "nginx" else HAPROXY
        self.config = directory / "config"

        def started():
            """False when somebody else was faster to take the port."""
            self.port = free_port()
            self.config.write_text(text.format(
                user="user root;" if os.geteuid() == 0 else "", directory=directory,
                port=self.port, backend=backend, idle=idle, certificate=certificate.certificate,
                key=certificate.key, both=certificate.both))
            try:
                self.start()
            except Ended:
                return False
            return True
        until(started, f"{kind} starts")

    def start(self):
        args = (["nginx", "-e", str(self.directory / "error.log"), "-c", str(self.config)]
                if self.kind == "nginx" else ["haproxy", "-db", "-q", "-f", str(self.config)])
        self.popen = subprocess.Popen(args, start_new_session=True, stdin=subprocess.DEVNULL,
                                      env={**os.environ, "PATH": SEARCH})
        until(self.listening, f"{self.kind} listens")

    def listening(self):
        if self.popen.poll() is not None:
            raise Ended(f"{self.kind} ended: {self.popen.returncode}")
        try:
            connect_tcp(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    @property
    def url(self):
        return f"wss://localhost:{self.port}/"

    def kill(self):
        """Ends it, and all connections through it, without a word."""
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(Deadline().left())

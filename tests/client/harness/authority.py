"""A certificate authority for a test, and TLS in front of a server by nginx."""

import os
import shutil
import signal
import socket
import subprocess

from harness.settings import PATIENCE
from harness.waiting import until
from harness.ws import connect_tcp

SEARCH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

NGINX = """
daemon off;
{user}
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        location / {{
            proxy_pass http://127.0.0.1:{backend};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
            proxy_read_timeout 600s;
        }}
    }}
}}
"""

CONFIG = """
[ca]
default_ca = us
[us]
database = {directory}/index
serial = {directory}/serial
new_certs_dir = {directory}
certificate = {directory}/ca.pem
private_key = {directory}/ca.key
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
"""


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=PATIENCE)


class Authority:
    """Signs certificates; `ca` is its own."""

    def __init__(self, directory):
        self.directory = directory
        self.ca = str(directory / "ca.pem")
        self.config = str(directory / "config")
        (directory / "config").write_text(CONFIG.format(directory=directory))
        (directory / "index").write_text("")
        (directory / "serial").write_text("01\n")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", "/CN=authority", "-keyout", str(directory / "ca.key"),
                "-out", self.ca)

    def sign(self, name, names, *dates):
        """A certificate for `names`, such as "DNS:localhost": its files, and its key's. `dates`
        are -startdate and -enddate with their values; without, from now for two days."""
        base = str(self.directory / name)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                f"/CN={name}", "-addext", f"subjectAltName={names}", "-keyout", f"{base}.key",
                "-out", f"{base}.csr")
        openssl("ca", "-batch", "-config", self.config, "-in", f"{base}.csr", "-out",
                f"{base}.pem", *(dates or ("-days", "2")))
        return f"{base}.pem", f"{base}.key"

    def self_signed(self, name, names):
        base = str(self.directory / name)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                "-keyout", f"{base}.key", "-out", f"{base}.pem")
        return f"{base}.pem", f"{base}.key"


def is_there():
    return bool(shutil.which("nginx", path=SEARCH) and shutil.which("openssl"))


class Nginx:
    """One nginx with a certificate, in front of the port `backend`."""

    def __init__(self, directory, pair, backend):
        self.directory = directory
        directory.mkdir()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        (directory / "config").write_text(NGINX.format(
            user="user root;" if os.geteuid() == 0 else "", directory=directory, port=self.port,
            certificate=pair[0], key=pair[1], backend=backend))
        self.start()

    def start(self):
        self.popen = subprocess.Popen(
            ["nginx", "-e", str(self.directory / "error.log"), "-c", str(self.directory / "config")],
            stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PATH": SEARCH})
        until(self._listens, "nginx listens")

    def _listens(self):
        assert self.popen.poll() is None, (self.directory / "error.log").read_text()
        try:
            connect_tcp(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def url(self, host="localhost"):
        return f"wss://{host}:{self.port}/"

    def kill(self):
        """With all connections, without a word."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(PATIENCE)

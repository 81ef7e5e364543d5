"""OpenSSH on a port of the loopback: a server with keys and a configuration of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time

from servers import BenchError

SSHD = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {home}/host
AuthorizedKeysFile {home}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100:30:200
LogLevel QUIET
Subsystem sftp internal-sftp
"""

SSH = """\
Host bench
    HostName 127.0.0.1
    Port {port}
    IdentityFile {home}/user
    IdentitiesOnly yes
    UserKnownHostsFile {home}/known
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    LogLevel ERROR
    ControlPath none
"""


def find(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise BenchError(f"{name} is missing (tools/deps bench installs it)")
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class OpenSsh:
    """A running sshd; `ssh` and `scp` are command lines for it, `mux` goes through one master."""

    def __init__(self, home):
        self.home = home
        self.config = os.path.join(home, "config")
        self.socket = os.path.join(home, "mux")
        self.daemon = self.master = None
        self._write(free_port())

    def _write(self, port):
        os.makedirs(self.home, mode=0o700)
        for name in ("host", "user"):
            subprocess.run([find("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f",
                            os.path.join(self.home, name)], check=True)
        for name, text in (("sshd_config", SSHD), ("config", SSH)):
            with open(os.path.join(self.home, name), "w", encoding="ascii") as f:
                f.write(text.format(port=port, home=self.home))
        with open(os.path.join(self.home, "host.pub"), encoding="ascii") as key, \
                open(os.path.join(self.home, "known"), "w", encoding="ascii") as f:
            f.write(f"[127.0.0.1]:{port} {key.read()}")

    @property
    def ssh(self):
        return [find("ssh"), "-F", self.config, "bench"]

    @property
    def mux(self):
        return [find("ssh"), "-F", self.config, "-S", self.socket, "bench"]

    @property
    def scp(self):
        return [find("scp"), "-F", self.config, "-q"]

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.daemon = subprocess.Popen(
            [find("sshd"), "-D", "-f", os.path.join(self.home, "sshd_config")],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._until("sshd", [*self.ssh, "true"])
        self.master = subprocess.Popen([find("ssh"), "-F", self.config, "-M", "-S", self.socket,
                                        "-N", "bench"], stdin=subprocess.DEVNULL)
        self._until("the master of ssh", [find("ssh"), "-F", self.config, "-S", self.socket, "-O",
                                          "check", "bench"])

    @staticmethod
    def _until(what, command):
        for _ in range(100):
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise BenchError(f"{what} does not start")

    def stop(self):
        for process in (self.master, self.daemon):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)


@contextlib.contextmanager
def running(home):
    daemon = OpenSsh(home)
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()

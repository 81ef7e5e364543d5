"""doc/devbox.md, doc/containers.md and doc/write-a-client.md, tried literally.

Ports and paths become those of the test, and a program `ssh` runs the command on this machine.
tests/verify/packages and tests/verify/podman try what needs packages or podman.
"""

import hashlib
import os
import re
import shutil
import socket
import subprocess

import pytest

from harness.server import environment
from harness.settings import BINARY, ROOT
from harness.waiting import until
from harness.xs import XS

PROMPT = re.compile(r"(\w*)\$ (.*)")
TRIED = {  # documents, and how many blocks the tests run
    "devbox.md": 8, "containers.md": 5, "write-a-client.md": 2}


def blocks(name, heading=None):
    """(language, text) of the code blocks of a document, or of one section of it."""
    text = (ROOT / "doc" / name).read_text()
    if heading is not None:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        assert text, heading
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def commands(block):
    """[(machine, command, the lines that it prints)] of a block."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        if match := PROMPT.fullmatch(line):
            found.append((match.group(1), match.group(2), []))
        else:
            found[-1][2].append(line)
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Devbox:
    """A devbox and a laptop: a home directory each, and one machine. Both have the project."""

    def __init__(self, place):
        self.place, self.port = place, free_port()
        self.project = place / "home" / "ann" / "project"
        self.project.mkdir(parents=True)
        self.homes = {name: place / name for name in ("devbox", "laptop")}
        for home in self.homes.values():
            (home / ".codex").mkdir(parents=True)
        os.symlink(BINARY, self.homes["devbox"] / "exec-server")
        programs = place / "bin"
        programs.mkdir()
        ssh = programs / "ssh"
        ssh.write_text(f'#!/bin/sh\nwhile [ "$1" != devbox ]; do shift; done\nshift\n'
                       f'cd {self.homes["devbox"]} && exec sh -c "$*"\n')
        ssh.chmod(0o755)
        os.symlink(BINARY, programs / "exec-server")
        os.symlink(XS, programs / "xs")
        self.path = f"{programs}:{environment()['PATH']}"
        self.server = None

    def literal(self, text):
        """A text of the document with the port and the paths of the test."""
        return text.replace("8765", str(self.port)).replace("/home/ann/project", str(self.project))

    def popen(self, machine, command, cwd=None, **more):
        home = self.homes[machine]
        env = environment({"HOME": str(home), "PATH": self.path, "CODEX_HOME": f"{home}/.codex"})
        return subprocess.Popen(["bash", "-c", self.literal(command)], env=env,
                                cwd=cwd or home, stdin=subprocess.DEVNULL, text=True, **more)

    def run(self, machine, command, cwd=None):
        popen = self.popen(machine, command, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = popen.communicate(timeout=120)
        assert popen.returncode == 0, (command, popen.returncode, out, err)
        return out

    def serve(self, command):
        """Starts the server of the document, and waits until it is ready."""
        self.log = open(self.place / "log", "w+", encoding="utf-8")
        self.server = self.popen("devbox", "exec " + command, stdout=subprocess.PIPE,
                                 stderr=self.log)
        return self.server.stdout.readline()

    def logged(self):
        return (self.place / "log").read_text()

    def environments(self, text, token=""):
        text = self.literal(text).replace("3f1c…, the one of step 1", token)
        (self.homes["laptop"] / ".codex" / "environments.toml").write_text(text)

    def close(self):
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=120)
            self.log.close()


@pytest.fixture
def devbox(tmp_path):
    made = Devbox(tmp_path)
    yield made
    made.close()


@pytest.fixture
def served(devbox):
    """The server of step 1, and the client's file of step 3."""
    static = blocks("devbox.md", "1. The server")[2][1]
    [(_, token, _), (_, server, url)] = commands(static)
    devbox.run("devbox", token)
    path = devbox.homes["devbox"] / "token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch("[0-9a-f]{64}", path.read_text())
    assert devbox.serve(server) == devbox.literal(url[0]) + "\n"
    [(language, text)] = blocks("devbox.md", "3. The client")
    assert language == "toml" and "include_local = false" in text
    devbox.environments(text, path.read_text())
    return devbox


def test_no_block_is_forgotten():
    """Who adds a block says here who tries it."""
    found = {name: len(blocks(name)) for name in TRIED}
    assert found == TRIED


def test_devbox_with_a_package():
    """The names that the document uses are those of the package."""
    (_, install), (_, unit) = blocks("devbox.md", "1. The server")[:2]
    debian = (ROOT / "contrib" / "debian" / "exec-server.postinst").read_text()
    assert "/etc/exec-server/token" in install and ">/etc/exec-server/token\n" in debian
    socket_unit = re.search(r"enable --now (\S+)", install).group(1)
    assert (ROOT / "contrib" / "systemd" / socket_unit).exists()
    example = (ROOT / "contrib" / "systemd" / "exec-server-loopback.service").read_text()
    assert "".join(f"#     {line}\n" for line in unit.splitlines()) in example


def test_devbox_health_and_doctor(served):
    text = (ROOT / "doc" / "devbox.md").read_text()
    check, prints = re.search(r"`(exec-server health \S+)` prints `([^`]+)`", text).groups()
    assert served.run("devbox", check) == served.literal(prints) + "\n"
    popen = served.popen("devbox", "exec-server doctor", stdout=subprocess.PIPE)
    assert "olic" in popen.communicate(timeout=120)[0] and popen.returncode in (0, 1, 3)


def test_devbox_by_hand(served):
    """xs reads the client's file: URL, token, and no machine of its own."""
    [(_, text)] = blocks("devbox.md", "By hand")
    (_, uname, _), (_, copy, _), (_, make, _) = commands(text)
    assert served.run("laptop", uname).startswith("Linux ")
    (served.homes["laptop"] / "notes.txt").write_text("notes\n")
    served.run("laptop", copy)
    assert (served.project / "notes.txt").read_text() == "notes\n"
    for home in served.homes.values():
        (home / "Makefile").write_text("test:\n\t@echo tested\n")
    assert served.run("laptop", make) == "tested\n"


def test_devbox_without_a_port(devbox):
    [(_, text)] = blocks("devbox.md", "Without a port")
    devbox.environments(text)
    assert devbox.run("laptop", "xs run -- echo $((6 * 7))") == "42\n"


def test_devbox_path_of_a_link(devbox):
    """A link makes the path of the laptop one of the devbox."""
    [(_, text)] = blocks("devbox.md", "4. The same path on both sides")
    [(_, link, _)] = commands(text)
    there = devbox.place / "srv" / "project"
    there.mkdir(parents=True)
    shutil.rmtree(devbox.place / "home")
    line = link.replace("sudo ", "").replace("/srv/project", str(there)).replace(
        "/home/ann", str(devbox.project.parent))
    subprocess.run(["sh", "-c", line], check=True, timeout=120)
    assert os.path.realpath(devbox.project) == str(there)


def test_devbox_when_it_does_not_work(served):
    """Each line of the table is one of the server's log."""
    text = (ROOT / "doc" / "devbox.md").read_text().partition("## When it does not work")[2]
    rows = re.findall(r"^\| `([^`]+)` \|", text, re.M)
    assert len(rows) == 3
    url = f"ws://127.0.0.1:{served.port}"
    for token in ("", "XS_TOKEN=wrong "):
        popen = served.popen("laptop", f"{token}xs -H {url} run true", stderr=subprocess.DEVNULL)
        assert popen.wait(120) != 0
    shutil.rmtree(served.project)
    popen = served.popen("laptop", "xs run --workdir /home/ann/project true",
                         stderr=subprocess.DEVNULL)
    assert popen.wait(120) != 0
    for row in rows:
        pattern = re.escape(served.literal(row)).replace(r"\.\.\.", ".*")
        until(lambda: re.search(pattern, served.logged()), f"{row!r} in {served.logged()}")


def test_container_client_file_is_the_one_that_works():
    """The client's file of doc/containers.md is that of doc/devbox.md with another name."""
    files = [blocks("devbox.md", "3. The client")[0][1],
             blocks("containers.md", "An agent sandbox in three commands")[1][1]]
    plain = [re.sub(r'"(devbox|box)"', '"NAME"', re.sub(r'token = ".*"', "token", text))
             for text in files]
    assert plain[0] == plain[1]


def test_container_bounds_are_options():
    text = (ROOT / "doc" / "containers.md").read_text()
    words = re.search(r"Bound commands, whoever asks: `([^`]+)`", text).group(1).split()
    done = subprocess.run([BINARY, *words, "--print-config"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_container_token_is_the_digest(devbox):
    """The third command of the document, without podman."""
    (_, text), (_, entry), *_ = blocks("containers.md", "An agent sandbox in three commands")
    [_, _, (_, run, _)] = commands(text)
    options = run.partition("exec-server:debian")[2].replace("0.0.0.0", "127.0.0.1")
    assert devbox.serve("exec-server" + options) == f"ws://127.0.0.1:{devbox.port}\n"
    devbox.environments(entry)
    assert devbox.run("laptop", "xs run -- echo in") == "in\n"
    assert hashlib.sha256(b"my-token").hexdigest() in devbox.run("devbox", f"echo {options}")


def test_write_a_client(devbox):
    """The program runs as the document calls it; test_write_a_client.py has the rest."""
    [(_, code), (_, text)] = blocks("write-a-client.md")
    (devbox.homes["laptop"] / "client.py").write_text(code)
    [(_, server, _), (_, run, prints)] = commands(text)
    devbox.serve(server.removesuffix(" &"))
    run = run.replace("python3", "/usr/bin/python3")
    assert devbox.run("laptop", run).splitlines() == prints

"""Which server xs talks to, with which token. Numbers are those of the acceptance list."""

import os
import re
import subprocess

import pytest

from harness.servers import reference_path
from harness.scripted import Scripted
from harness.waiting import until
from harness.xs import XS, Xs, write_private

TOKEN = "tok3n-that-nobody-may-see-0123456789abcdef"


def environments(home, text):
    write_private(home / ".codex" / "environments.toml", text)


def url_of(done):
    """The server that answered `info`."""
    return re.search(r"^url +(\S+)", done.text(), re.MULTILINE).group(1)


def test_36_order(fleet, lone_xs):
    """-H, XS_HOST, environments.toml, CODEX_EXEC_SERVER_URL."""
    servers = [fleet.start() for _ in range(4)]
    codex = {"CODEX_EXEC_SERVER_URL": servers[3].url}
    assert url_of(lone_xs.run("info", env=codex)) == servers[3].url
    environments(lone_xs.home, f'default = "file"\n[[environments]]\nid = "file"\n'
                               f'url = "{servers[2].url}"\n[[environments]]\nid = "other"\n'
                               f'url = "{servers[1].url}"\n')
    assert url_of(lone_xs.run("info", env=codex)) == servers[2].url
    env = {**codex, "XS_HOST": servers[0].url}
    assert url_of(lone_xs.run("info", env=env)) == servers[0].url
    assert url_of(lone_xs.run("-H", servers[1].url, "info", env=env)) == servers[1].url
    assert url_of(lone_xs.run("-H", "other", "info", env=env)) == servers[1].url
    assert lone_xs.run("ls", "other:/proc/1", env=codex).ok()
    assert lone_xs.run("env").text().split() == ["*", "file", servers[2].url, "other",
                                                 servers[1].url, "local", "local:"]
    done = lone_xs.run("-H", "nosuch", "info", env=env)
    assert done.status == 2 and "nosuch" in done.err


def test_36_a_file_hides_the_variable(lone_xs, fleet):
    """If it exists the variable is ignored, even if the file names nobody."""
    server = fleet.start()
    codex = {"CODEX_EXEC_SERVER_URL": server.url}
    environments(lone_xs.home, "")
    done = lone_xs.run("info", env=codex)
    assert done.status == 2 and done.err.startswith("xs: "), done
    environments(lone_xs.home, 'default = "none"')
    assert lone_xs.run("info", env=codex).status == 2
    environments(lone_xs.home, 'default = "local"')  # said, not silent
    assert url_of(lone_xs.run("info", env=codex)) == "local:"
    environments(lone_xs.home, "not = [toml")
    done = lone_xs.run("info", env=codex)
    assert done.status == 2 and "environments.toml" in done.err, done


def test_36_codex_home(fleet, lone_xs, tmp_path):
    server = fleet.start()
    write_private(tmp_path / "codex" / "environments.toml",
                  f'default = "x"\n[[environments]]\nid = "x"\nurl = "{server.url}"\n')
    assert url_of(lone_xs.run("info", env={"CODEX_HOME": str(tmp_path / "codex")})) == server.url


def test_36_program_environment(lone_xs):
    """An environment that is a program on its standard streams."""
    from harness.settings import BINARY  # pylint: disable=import-outside-toplevel
    environments(lone_xs.home, 'default = "child"\n[[environments]]\nid = "child"\n'
                               f'program = "{BINARY}"\nargs = ["--listen", "stdio"]\n')
    assert lone_xs.run("run", "sh", "-c", "echo x; exit 3").status == 3


CASES = {
    "variable": (None, "variable"),
    "file": ('default = "a"\n[[environments]]\nid = "a"\nurl = "URL"\n', "file"),
    "spaces": ('default = " b "\n[[environments]]\nid = "a"\nurl = "ws://127.0.0.1:1"\n'
               '[[environments]]\nid = "b"\nurl = " URL "\n', "file"),
}


@pytest.mark.parametrize("case", CASES)
def test_36_as_the_client_of_the_reference(tmp_path, case):
    """Both knock at the same place, and at no other. What the client takes for want of a default,
    this machine, is an error of xs."""
    codex = reference_path("0.166.0")
    text, wanted = CASES[case]
    for name in ("xs", "codex"):
        home, knocks = tmp_path / name, []

        def script(place):
            return lambda c: (c.read_head(), knocks.append(place))  # pylint: disable=W0640
        user = Xs(home)
        with Scripted(script("variable")) as variable, Scripted(script("file")) as file:
            env = user.environment(None, {"CODEX_EXEC_SERVER_URL": variable.url,
                                          "CODEX_HOME": str(home / ".codex"),
                                          "OPENAI_API_KEY": "x"})
            (home / ".codex").mkdir()
            if text is not None:
                environments(home, text.replace("URL", file.url))
            command = [XS, "info"] if name == "xs" else [codex, "exec", "--skip-git-repo-check", "x"]
            client = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, cwd=home,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: knocks, f"{name} at the door")  # pylint: disable=W0640
            client.kill()
            client.wait()
        assert set(knocks) == {wanted}, name


# -- 37: tokens

def listening(fleet, tmp_path):
    token = tmp_path / "token"
    write_private(token, TOKEN + "\n")
    return fleet.start("--ws-auth", "capability-token", "--ws-token-file", str(token),
                       "--require-auth"), token


def test_37_tokens_are_taken_from(fleet, lone_xs, tmp_path):
    """$XS_TOKEN, --token-file, environments.toml; a wrong one is told."""
    server, file = listening(fleet, tmp_path)
    lone_xs.host = server.url
    done = lone_xs.run("run", "true")
    assert done.status == 255 and "401" in done.err, done
    assert lone_xs.run("run", "true", env={"XS_TOKEN": TOKEN}).status == 0
    assert lone_xs.run("--token-file", str(file), "run", "true").status == 0
    done = lone_xs.run("run", "true", env={"XS_TOKEN": "wrong"})
    assert done.status == 255 and "wrong" not in done.err
    done = lone_xs.run("--token-file", "/nosuch", "run", "true")
    assert done.status == 255 and "/nosuch" in done.err, done
    environments(lone_xs.home, f'default = "a"\n[[environments]]\nid = "a"\nurl = "{server.url}"\n'
                               f'auth_bearer_token = "{TOKEN}"\n')
    assert lone_xs.run("-H", "a", "run", "true").status == 0
    assert lone_xs.run("env").status == 0 and TOKEN not in lone_xs.run("env").text()


def test_37_nobody_sees_it(fleet, lone_xs, tmp_path):
    """Not in arguments, logs, state files, nor in what runs there or here."""
    server, file = listening(fleet, tmp_path)
    lone_xs.host = server.url
    for give in ({"env": {"XS_TOKEN": TOKEN}}, {}):
        options = [] if give else ["--token-file", str(file)]
        running = lone_xs.start("-vv", *options, "run", "sh", "-c", "echo ready; env; cat",
                                stdin=True, **give)
        running.expect(b"ready\n")
        with open(f"/proc/{running.pid}/cmdline", "rb") as f:
            assert TOKEN.encode() not in f.read()
        done = running.wait()
        assert done.status == 0 and TOKEN not in done.err and TOKEN.encode() not in done.out
        done = lone_xs.run("-vv", *options, "run", "-d", "--name", "job", "sleep", "1000", **give)
        assert done.status == 0 and TOKEN not in done.err
        for path in lone_xs.home.rglob("*"):
            assert not path.is_file() or TOKEN not in path.read_text()
        assert lone_xs.run(*options, "kill", "job", **give).status == 0


def test_37_a_child_does_not_inherit_it(lone_xs, tmp_path):
    """Programs that xs starts to reach a server."""
    env = tmp_path / "env"
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\nenv >{env}\necho \"$@\" >>{env}\n")
    ssh.chmod(0o755)
    path = f"{ssh.parent}:{os.environ['PATH']}"
    done = lone_xs.run("-H", "ssh://host", "run", "true", env={"XS_TOKEN": TOKEN, "PATH": path})
    assert done.status == 255, done
    assert "ServerAliveInterval" in env.read_text() and TOKEN not in env.read_text()


def test_37_never_in_the_clear_beyond_this_machine(lone_xs):
    """Refused before a connection is made."""
    done = lone_xs.run("-H", "ws://192.0.2.1:8765", "run", "true", env={"XS_TOKEN": TOKEN})
    assert done.status in (2, 255) and "token" in done.err and TOKEN not in done.err, done


def test_37_only_for_the_selected_server(fleet, lone_xs, tmp_path):
    """The token of the command line does not go to other servers that an operand names."""
    heads = []

    def script(c):
        heads.append(dict(c.read_head()))
        c.raw(b"HTTP/1.1 401 x\r\n\r\n")
    server, _ = listening(fleet, tmp_path)
    (tmp_path / "file").write_text("x")
    with Scripted(script) as other:
        lone_xs.run("-H", server.url, "cp", str(tmp_path / "file"), f"{other.url}:/x",
                    env={"XS_TOKEN": TOKEN})
    assert heads and "authorization" not in heads[0]

"""xs and servers of the reference, old and new: everything but extensions works."""

import os

import pytest

from harness.servers import VERSIONS, Reference

MB = 1 << 20


@pytest.fixture(scope="module", params=VERSIONS)
def old(request, nothing_left, tmp_path_factory):  # pylint: disable=unused-argument
    server = Reference(tmp_path_factory.mktemp("old"), request.param)
    yield server
    server.abandon()


@pytest.fixture
def user(old, lone_xs):  # pylint: disable=redefined-outer-name
    lone_xs.host = old.url
    return lone_xs


def test_39_run(user, tmp_path):
    assert user.run("run", "sh", "-c", "echo o; exit 7").status == 7
    assert user.run("run", "sh", "-c", "kill -9 $$").status == 137
    assert user.run("run", "nosuch").status == 127
    assert user.run("run", "-w", str(tmp_path), "pwd").text() == f"{tmp_path}\n"
    assert user.run("run", "-e", "A=b", "sh", "-c", "echo $A").text() == "b\n"
    assert user.run("run", "cat", stdin=b"a\n").ok() == b"a\n"
    data = os.urandom(5 * MB)
    assert user.run("run", "cat", stdin=data).ok() == data
    assert user.run("run", "--timeout", "100ms", "sleep", "100").status == 124
    done = user.run("run", "-d", "true")
    assert done.status == 126 and "cannot detach" in done.err


def test_39_a_terminal(user):
    terminal = user.terminal("run", "-t", "sh", "-c", "stty -echo; echo ready; read a; echo got $a; exit 3")
    terminal.expect("ready\r\n")
    terminal.until_raw()
    terminal.type("x\r")
    terminal.expect("got x\r\n")
    assert terminal.wait() == 3


def test_39_files(user, tmp_path):
    place = str(tmp_path / "place")
    assert user.run("mkdir", "-p", place).ok() == b""
    blocks = "fileWriteStreaming" in user.run("info").text()
    for size in (0, 10, 200 * 1024, 3 * MB if blocks else 256 * 1024):
        data = os.urandom(size)
        (tmp_path / "here").write_bytes(data)
        done = user.run("cp", str(tmp_path / "here"), f":{place}/there")
        assert done.status == 0 and (tmp_path / "place" / "there").read_bytes() == data, done
        done = user.run("cp", f":{place}/there", str(tmp_path / "back"))
        assert done.status == 0 and (tmp_path / "back").read_bytes() == data, done
    assert user.run("ls", place).text() == "there\n"
    assert user.run("write", place + "/w", stdin=b"123").ok() == b""
    assert (tmp_path / "place" / "w").read_bytes() == b"123"
    assert user.run("stat", place + "/w").status == 0
    done = user.run("mv", place + "/w", place + "/v")
    assert done.status == 1 and "fs/rename" in done.err, done
    assert user.run("rm", "-r", place).ok() == b"" and not os.path.exists(place)


def test_39_cat(user, tmp_path):
    for size in (0, 10, 3 * MB):
        data = os.urandom(size)
        (tmp_path / "file").write_bytes(data)
        assert user.run("cat", str(tmp_path / "file")).ok() == data


def test_39_info(user):
    assert b"url" in user.run("info").ok()
    assert user.run("ping").text().endswith(" ms\n")

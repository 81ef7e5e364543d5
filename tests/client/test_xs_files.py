"""xs ls, cat, write, stat, rm, mkdir, mv, chmod, watch, info, ping, env."""

import os
import re
import signal

import pytest

from harness.settings import PATIENCE

MB = 1 << 20


@pytest.fixture(params=["ours", "reference"])
def both(request, xs):
    if request.param == "reference":
        xs.host = request.getfixturevalue("reference").url
    return xs


def test_ls(both, tmp_path):
    (tmp_path / "b").write_bytes(b"12345")
    (tmp_path / "a").mkdir()
    (tmp_path / ".hidden").write_bytes(b"")
    (tmp_path / "link").symlink_to("b")
    assert both.run("ls", str(tmp_path)).text() == "a\nb\nhome\nlink\n"
    assert ".hidden\n" in both.run("ls", "-a", str(tmp_path)).text()
    lines = both.run("ls", "-l", str(tmp_path)).text().splitlines()
    assert [line[0] for line in lines] == ["d", "-", "d", "l"] and " 5 " in lines[1]
    assert both.run("ls", str(tmp_path / "b")).text() == f"{tmp_path}/b\n"
    assert both.run("ls", str(tmp_path / "a"), str(tmp_path / "b")).text() == (
        f"{tmp_path}/a:\n{tmp_path}/b:\n{tmp_path}/b\n")
    done = both.run("ls", str(tmp_path / "nosuch"))
    assert done.status == 1 and "nosuch: No such file or directory" in done.err


def test_cat_and_write(both, tmp_path):
    for size in (0, 5, MB - 1, MB, MB + 1, 3 * MB):
        data = os.urandom(size)
        assert both.run("write", str(tmp_path / "file"), stdin=data).ok() == b""
        assert (tmp_path / "file").read_bytes() == data
        assert both.run("cat", str(tmp_path / "file")).ok() == data
    (tmp_path / "two").write_bytes(b"2")
    assert both.run("cat", str(tmp_path / "two"), str(tmp_path / "two")).ok() == b"22"
    done = both.run("cat", str(tmp_path / "nosuch"), str(tmp_path / "two"))
    assert (done.status, done.out) == (1, b"2") and "No such file" in done.err
    done = both.run("write", "/nosuch/dir/file", stdin=b"x")
    assert done.status == 1 and "/nosuch/dir/file" in done.err
    done = both.run("cat", str(tmp_path))
    assert done.status == 1 and str(tmp_path) in done.err


def test_cat_without_a_reader(xs, tmp_path):
    with open(tmp_path / "big", "wb") as f:
        f.truncate(64 * MB)
    running = xs.start("cat", str(tmp_path / "big"))
    running.read()
    running.popen.stdout.close()
    running.popen.stdout = None
    assert running.wait().status == 141


def test_changes(xs, tmp_path):
    place = tmp_path / "place"
    assert xs.run("mkdir", str(place)).ok() == b""
    assert xs.run("mkdir", str(place)).status == 1
    assert xs.run("mkdir", "-p", str(place / "a/b")).ok() == b""
    (place / "file").write_bytes(b"x")
    assert xs.run("chmod", "640", str(place / "file")).ok() == b""
    assert (place / "file").stat().st_mode & 0o7777 == 0o640
    assert xs.run("mv", str(place / "file"), str(place / "a")).ok() == b""
    assert xs.run("mv", str(place / "a/file"), str(place / "new")).ok() == b""
    assert (place / "new").exists()
    done = xs.run("rm", str(place / "a"))
    assert done.status == 1 and (place / "a").exists()
    assert xs.run("rm", "-r", str(place / "a"), str(place / "new")).ok() == b""
    assert os.listdir(place) == []
    assert xs.run("rm", str(place / "nosuch")).status == 1
    assert xs.run("rm", "-f", str(place / "nosuch")).ok() == b""
    done = xs.run("mv", str(place), "ws://127.0.0.1:1:/x")
    assert done.status in (2, 255)


def test_stat(both, tmp_path):
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to("file")
    assert re.match(f"{tmp_path}/file: file, 3 bytes", both.run("stat", str(tmp_path / "file")).text())
    assert "link, " in both.run("stat", str(tmp_path / "link")).text()
    assert both.run("stat", str(tmp_path / "nosuch")).status == 1


def test_watch(xs, tmp_path):
    watching = xs.start("-v", "watch", "-r", str(tmp_path))
    watching.expect_err("watching")
    (tmp_path / "new").write_text("x")
    watching.expect(b"/new\n")
    watching.signal(signal.SIGINT)
    assert watching.popen.wait(PATIENCE) == -signal.SIGINT


def test_info_ping_env(both):
    text = both.run("info").text()
    assert re.search(r"^url +ws://127", text) and "\nshell " in text
    assert re.fullmatch(r"(\d+\.\d+ ms\n){3}", both.run("ping", "--count", "3").text())
    # env asks no server.
    assert both.run("env", host="").status == 0


def test_local(xs, tmp_path):
    """A private server, only when it is asked for."""
    assert xs.run("-H", "local", "run", "sh", "-c", "echo here; exit 3").status == 3
    assert xs.run("run", "cat", stdin=b"x", host="local").ok() == b"x"
    (tmp_path / "file").write_bytes(b"x")
    assert xs.run("cp", f"local:{tmp_path}/file", str(tmp_path / "copy")).ok() == b""


def test_a_program_on_its_standard_streams(xs):
    """A child that serves gets the end of xs as the end of its input."""
    host = "ssh://nohost/exec-server"
    done = xs.run("run", "true", host=host)
    assert done.status == 255 and "ssh" in done.err, done

"""xs cp: files and trees, up, down and across. Numbers are those of the acceptance list."""

import base64
import os
import re
import signal
import socket
import subprocess

import pytest

from harness.cutting import RST, DOWN, UP, Cut, Proxy
from harness.scripted import Scripted
from harness.settings import SANITIZED
from harness.waiting import until

MB = 1 << 20


def same(a, b):
    """True if two trees are equal, links included."""
    return subprocess.run(["diff", "-r", "--no-dereference", a, b], check=False).returncode == 0


def peak(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) * 1024


def measured(running):
    """Waits for the end of an xs; the most memory that was seen."""
    most = 0
    while running.popen.poll() is None:
        try:
            most = max(most, peak(running.pid))
        except (FileNotFoundError, ProcessLookupError, AttributeError):
            break
    done = running.wait()
    assert done.status == 0, done
    return most


def test_30_a_large_file(xs, tmp_path):
    """tests/verify/xs copies 5 GiB."""
    data = os.urandom(MB) * 48 + b"end"
    (tmp_path / "source").write_bytes(data)
    up = measured(xs.start("cp", str(tmp_path / "source"), f":{tmp_path}/there"))
    assert (tmp_path / "there").read_bytes() == data
    down = measured(xs.start("cp", f":{tmp_path}/there", str(tmp_path / "back")))
    assert (tmp_path / "back").read_bytes() == data
    assert SANITIZED or max(up, down) < 16 * MB + 8 * MB  # 8: what the program itself takes


@pytest.mark.parametrize("size", [0, 1, 255 * 1024, 256 * 1024 + 1, MB, MB + 1, 3 * MB])
def test_30_sizes(xs, tmp_path, size):
    data = os.urandom(size)
    (tmp_path / "source").write_bytes(data)
    assert xs.run("cp", "source", ":" + str(tmp_path / "there"), cwd=tmp_path).ok() == b""
    assert xs.run("cp", ":" + str(tmp_path / "there"), "back", cwd=tmp_path).ok() == b""
    assert (tmp_path / "back").read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == ["back", "home", "source", "there"]


class Slow:
    """A way to the server that stops after so many bytes in one direction."""

    def __init__(self, server, way, after):
        self.proxy = Proxy(server.address, [Cut(way, after, "hole")])
        self.way = way

    def __enter__(self):
        self.proxy.__enter__()
        return self

    def __exit__(self, *_):
        self.proxy.__exit__()

    def reached(self):
        return bool(self.proxy.cuts)


def copying(xs, way, source, target, url):
    if way == UP:
        return xs.start("cp", str(source), f"{url}:{target}")
    return xs.start("cp", f"{url}:{source}", str(target))


@pytest.mark.parametrize("way", [UP, DOWN])
def test_31_and_32_killed_and_continued(xs, server, tmp_path, way):
    """Killed anywhere it leaves no half file under the name; the next one sends the rest."""
    data = os.urandom(MB) * 24 + b"end"
    source, target = tmp_path / "a" / "source", tmp_path / "b" / "target"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(data)
    target.write_bytes(b"old")
    arrived = 0
    for after in (1000, 9 * MB, 20 * MB):
        with Slow(server, way, after) as slow:
            running = copying(xs, way, source, target, slow.proxy.url)
            until(slow.reached, "the hole")
            before = os.listdir(target.parent)
            running.signal(signal.SIGKILL)
            running.wait()
            assert target.read_bytes() == b"old", before
            arrived = slow.proxy.passed[way]
    assert arrived >= 20 * MB * 3 // 4 - 9 * MB
    with Proxy(server.address) as proxy:
        running = copying(xs, way, source, target, proxy.url)
        assert running.wait().status == 0
        sent = proxy.passed[way]
    assert target.read_bytes() == data and os.listdir(target.parent) == [target.name]
    # Base64 is 4/3, the last MiB of the part was compared.
    assert sent < 24 * MB * 4 // 3 - 8 * MB, sent


def test_32_another_source_starts_anew(xs, server, tmp_path):
    """A part of another file is not continued."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(MB) * 8)
    with Slow(server, UP, 5 * MB) as slow:
        running = copying(xs, UP, source, target, slow.proxy.url)
        until(slow.reached, "the hole")
        running.signal(signal.SIGKILL)
        running.wait()
    other = os.urandom(MB) * 9
    source.write_bytes(other)
    assert xs.run("cp", str(source), f"{server.url}:{target}").ok() == b""
    assert target.read_bytes() == other


@pytest.mark.parametrize("way", [UP, DOWN])
def test_32_an_outage_in_a_copy(xs, server, tmp_path, way):
    data = os.urandom(MB) * 12
    (tmp_path / "source").write_bytes(data)
    cuts = [Cut(way, 3 * MB, RST), Cut(way, 4 * MB + 77, RST)]
    with Proxy(server.address, cuts) as proxy:
        done = copying(xs, way, tmp_path / "source", tmp_path / "target", proxy.url).wait()
        assert len(proxy.cuts) == 2
    assert (done.status, done.err) == (0, "") and (tmp_path / "target").read_bytes() == data


def tree(root, count, odd=True):
    """Names, modes, times and links of all kinds."""
    root.mkdir()
    for i in range(count):
        directory = root / f"d{i % 7}" / f"e{i % 3}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"f{i}"
        path.write_bytes(b"%d" % i * (i % 50))
        path.chmod(0o400 | (i % 0o377))
        os.utime(path, (i, 1_000_000_000 + i))
    if not odd:
        return
    strange = os.fsencode(root) + b"/\xff\xfe odd\nname"
    os.mkdir(strange)
    with open(strange + b"/\xe9", "wb") as f:
        f.write(b"latin")
    (root / "link").symlink_to("d0/e0")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "empty").mkdir(mode=0o700)
    os.utime(root / "d1", (1, 1_000_000_000))


def facts(root):
    out = {}
    for path, dirs, files in os.walk(os.fsencode(root)):
        for name in dirs + files:
            full = os.path.join(path, name)
            st = os.lstat(full)
            link = os.readlink(full) if os.path.islink(full) else None
            times = None if link else st.st_mtime_ns // 1_000_000
            out[os.path.relpath(full, os.fsencode(root))] = (st.st_mode, times, link)
    return out


def test_33_trees(xs, tmp_path):
    """tests/verify/xs copies 10,000 files."""
    tree(tmp_path / "source", 400)
    up = xs.run("cp", "-rp", str(tmp_path / "source"), f":{tmp_path}/there")
    assert up.ok() == b""
    assert same(tmp_path / "source", tmp_path / "there")
    assert facts(tmp_path / "there") == facts(tmp_path / "source")
    assert xs.run("cp", "-rp", f":{tmp_path}/there", str(tmp_path / "back")).ok() == b""
    assert facts(tmp_path / "back") == facts(tmp_path / "source")


def test_33_links_are_followed_with_L(xs, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "outside").write_bytes(b"x")
    (source / "link").symlink_to("../outside")
    for target, names in ((f":{tmp_path}/up", tmp_path / "up"), ("down", tmp_path / "down")):
        operand = str(source) if target.startswith(":") else f":{source}"
        assert xs.run("cp", "-rL", operand, target, cwd=tmp_path).ok() == b""
        assert not (names / "link").is_symlink() and (names / "link").read_bytes() == b"x"


def test_33_what_is_left_out_is_named(xs, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_bytes(b"x")
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(source / "socket"))
    done = xs.run("cp", "-r", str(source), f":{tmp_path}/up")
    assert done.status == 1 and "fifo" in done.err and "socket" in done.err, done
    assert (tmp_path / "up" / "file").exists()


def test_33_at_the_reference(reference, xs, tmp_path):
    """What it cannot keep is told once."""
    xs.host = reference.url
    tree(tmp_path / "source", 30, odd=False)
    done = xs.run("cp", "-rp", str(tmp_path / "source"), f":{tmp_path}/there")
    assert done.status in (0, 1) and done.err.count("\n") <= 3, done
    assert same(tmp_path / "source", tmp_path / "there")
    assert xs.run("cp", "-r", f":{tmp_path}/there", str(tmp_path / "back")).status == 0
    assert same(tmp_path / "source", tmp_path / "back")


# -- 34: a hostile server

def uri(path):
    return "file://" + path


class Hostile:
    """Serves one tree, /tree, whose walk the test writes."""

    def __init__(self, entries, names=()):
        self.entries, self.names = entries, names

    def __call__(self, c):
        c.open(info={"shell": {"name": "sh", "path": "/bin/sh"}, "executorVersion": "9",
                     "cwd": "file:///srv", "capabilities": {"fsLinks": True, "fsMetadataMode": True,
                                                            "fsReadMaxBytes": True}})
        while True:
            request = c.receive()
            if "id" not in request:
                continue
            handler = getattr(self, request["method"].replace("/", "_"), None)
            result = handler(request["params"]) if handler else {}
            c.answer(request, result)

    def fs_getMetadata(self, params):  # pylint: disable=invalid-name
        path = params["path"]
        directory = path.rstrip("/").endswith(("tree", "/d"))
        return {"isDirectory": directory, "isFile": not directory, "isSymlink": False,
                "size": 0 if directory else 4, "createdAtMs": 1, "modifiedAtMs": 1, "mode": 0o755}

    def fs_walk(self, _params):
        return {"entries": self.entries, "errors": [], "truncated": False}

    def fs_readDirectory(self, _params):  # pylint: disable=invalid-name
        return {"entries": [{"fileName": n, "isDirectory": False, "isFile": True}
                            for n in self.names]}

    def fs_readFile(self, _params):  # pylint: disable=invalid-name
        return {"dataBase64": base64.b64encode(b"evil").decode()}

    def fs_open(self, params):
        return {"handleId": params["handleId"]}

    def fs_readBlock(self, params):  # pylint: disable=invalid-name
        return {"chunk": base64.b64encode(b"evil"[params["offset"]:]).decode(), "eof": True}

    def fs_canonicalize(self, params):
        return {"path": params["path"]}

    def fs_readLink(self, _params):  # pylint: disable=invalid-name
        return {"target": "../../outside"}


BAD = {
    "parent": [{"path": uri("/tree/../evil"), "kind": "file"}],
    "parents": [{"path": uri("/tree/d/../../../evil"), "kind": "file"}],
    "elsewhere": [{"path": uri("/etc/evil"), "kind": "file"}],
    "prefix": [{"path": uri("/treeevil"), "kind": "file"}],
    "encoded": [{"path": uri("/tree/%2e%2e/evil"), "kind": "file"}],
    "encoded slash": [{"path": uri("/tree/..%2fevil"), "kind": "file"}],
    "dots": [{"path": uri("/tree/d"), "kind": "directory"},
             {"path": uri("/tree/d/.."), "kind": "directory"},
             {"path": uri("/tree/d/../evil"), "kind": "file"}],
    "nul": [{"path": uri("/tree/%00/../../evil"), "kind": "file"}],
    "link then file": [{"path": uri("/tree/d"), "kind": "symlink", "target": "../outside"},
                       {"path": uri("/tree/d/evil"), "kind": "file"}],
    "link and directory": [{"path": uri("/tree/d"), "kind": "symlink", "target": "../outside"},
                           {"path": uri("/tree/d"), "kind": "directory"},
                           {"path": uri("/tree/d/evil"), "kind": "file"}],
    "file twice": [{"path": uri("/tree/evil"), "kind": "symlink", "target": "../outside/evil"},
                   {"path": uri("/tree/evil"), "kind": "file"}],
    "directory before": [{"path": uri("/tree/d"), "kind": "directory"},
                         {"path": uri("/tree/d"), "kind": "symlink", "target": "../outside"},
                         {"path": uri("/tree/d/evil"), "kind": "file"}],
    "plain": [{"path": "../evil", "kind": "file"}, {"path": "/evil", "kind": "file"}],
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("more", [[], ["-L"], ["-p"]])
def test_34_no_name_leaves_the_destination(lone_xs, tmp_path, name, more):
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").mkdir()
    with Scripted(Hostile(BAD[name])) as server:
        done = lone_xs.run("cp", "-r", *more, f"{server.url}:/tree", "in/tree", cwd=tmp_path)
    assert os.listdir(tmp_path / "outside") == [], done
    assert sorted(os.listdir(tmp_path)) == ["home", "in", "outside"], done
    assert os.listdir(tmp_path / "in") in ([], ["tree"]), done
    found = [p for p in (tmp_path / "in").rglob("*") if p.is_file() and p.read_bytes() == b"evil"]
    assert all(p.resolve().is_relative_to(tmp_path / "in") for p in found)


def test_34_links_that_were_there(xs, tmp_path):
    """A link in the destination is not followed out of it."""
    (tmp_path / "source" / "d").mkdir(parents=True)
    (tmp_path / "source" / "d" / "file").write_bytes(b"x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "in" / "source").mkdir(parents=True)
    (tmp_path / "in" / "source" / "d").symlink_to("../../outside")
    done = xs.run("cp", "-r", f":{tmp_path}/source", str(tmp_path / "in"))
    assert os.listdir(tmp_path / "outside") == [] and done.status == 1, done


def test_34_across(xs, tmp_path):
    """From a hostile server to another one: nothing outside either."""
    for name in ("..", ".", "../evil", "/evil", "a/../../evil", "", "ok"):
        entries = [{"path": uri(f"/tree/{name}"), "kind": "file"}]
        with Scripted(Hostile(entries, [name])) as server:
            done = xs.run("cp", "-r", f"{server.url}:/tree", f":{tmp_path}/in")
        assert done.status in (0, 1, 255), done
        assert sorted(os.listdir(tmp_path)) == ["home", "in"], name
    assert [p.read_bytes() for p in (tmp_path / "in").rglob("ok")] == [b"evil"]


# -- operands, the meter, the rest

def test_operands(xs, tmp_path):
    """As scp: what has a slash before the colon is here."""
    (tmp_path / "a:b").write_bytes(b"1")
    assert xs.run("cp", "./a:b", f":{tmp_path}/c", cwd=tmp_path).ok() == b""
    assert (tmp_path / "c").read_bytes() == b"1"
    assert xs.run("cp", f"{xs.host}:{tmp_path}/c", "d", cwd=tmp_path).ok() == b""
    (tmp_path / "into").mkdir()
    assert xs.run("cp", "c", "d", f":{tmp_path}/into", cwd=tmp_path).ok() == b""
    assert sorted(os.listdir(tmp_path / "into")) == ["c", "d"]
    assert xs.run("cp", f":{tmp_path}/c", f":{tmp_path}/d", "into", cwd=tmp_path).ok() == b""
    done = xs.run("cp", "c", "d", cwd=tmp_path)
    assert done.status == 2 and "both here" in done.err
    done = xs.run("cp", "c", "d", ":/nosuch/dir", cwd=tmp_path)
    assert done.status == 1 and "/nosuch/dir" in done.err
    done = xs.run("cp", "nosuch", f":{tmp_path}/x", cwd=tmp_path)
    assert done.status == 1 and "nosuch" in done.err
    done = xs.run("cp", "into", f":{tmp_path}/x", cwd=tmp_path)
    assert done.status == 1 and "-r" in done.err, done
    done = xs.run("cp", f":{tmp_path}/into", "x", cwd=tmp_path)
    assert done.status == 1 and "-r" in done.err, done


def test_a_path_is_relative_to_the_directory_there(fleet, lone_xs, tmp_path):
    server = fleet.start(cwd=str(tmp_path))
    (tmp_path / "file").write_bytes(b"x")
    assert lone_xs.run("cp", f"{server.url}:file", "copy", cwd=tmp_path).ok() == b""
    assert lone_xs.run("-H", server.url, "cat", "file").ok() == b"x"
    assert lone_xs.run("-H", server.url, "ls", "file", "copy").ok()


def test_two_servers(fleet, xs, tmp_path):
    """A copy between servers streams through here."""
    other = fleet.start()
    tree(tmp_path / "source", 40)
    assert xs.run("cp", "-rp", f":{tmp_path}/source", f"{other.url}:{tmp_path}/there").ok() == b""
    assert same(tmp_path / "source", tmp_path / "there")
    there, here = facts(tmp_path / "there"), facts(tmp_path / "source")
    assert {k: (m, l) for k, (m, _, l) in there.items()} == {k: (m, l) for k, (m, _, l) in here.items()}


def test_meter(xs, server, tmp_path):
    """After a second, on a terminal only; it tells when nothing moves."""
    (tmp_path / "source").write_bytes(os.urandom(MB) * 48)
    with Slow(server, UP, 40 * MB) as slow:
        terminal = xs.terminal("cp", str(tmp_path / "source"), f"{slow.proxy.url}:{tmp_path}/there")
        terminal.expect(b"source")
        terminal.expect(b"%")
        terminal.expect(b"stalled")
        terminal.signal(signal.SIGINT)
        assert terminal.wait() == -signal.SIGINT
    assert re.search(rb"/source\s+\d+%\s+[\d.]+ M?B\s+[\d.]+ [kM]?B/s  ", terminal.screen)
    done = xs.run("-q", "cp", str(tmp_path / "source"), f":{tmp_path}/there")
    assert done.ok() == b""


def test_names_with_escapes(xs, tmp_path):
    """Names are shown with escapes, whatever they are."""
    name = b"evil\033]0;title\007\xff"
    path = os.fsencode(tmp_path) + b"/" + name
    with open(path, "wb") as f:
        f.write(b"x")
    done = xs.run("cp", ":" + os.fsdecode(path), "/nosuch/x")
    assert done.status == 1 and "\033" not in done.err and "\007" not in done.err
    terminal = xs.terminal("ls", str(tmp_path))
    assert terminal.wait() == 0
    assert b"\033" not in terminal.screen and b"evil\\x1b]0;title\\x07" in terminal.screen
    assert name[:-1] in xs.run("ls", str(tmp_path)).ok()  # through a pipe they are as they are

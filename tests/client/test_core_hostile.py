"""Servers that do their worst against files here and against the memory of a client."""

import base64
import ctypes
import os
import socket
import threading

import pytest

from execserver import _lib
from harness.core import LIB, Client, Code, Pending, State, options
from harness.scripted import INFO, Connection, Gone, Scripted
from harness.settings import SANITIZED

CAN = {**INFO, "capabilities": {name: True for name in (
    "fsLinks", "fsMetadataMode", "fsReadMaxBytes", "fsTimes", "fileWriteStreaming")}}
DIRECTORY = {"isDirectory": True, "isFile": False, "isSymlink": False, "size": 0,
             "createdAtMs": 0, "modifiedAtMs": 0, "mode": 0o755}
FILE = {**DIRECTORY, "isDirectory": False, "isFile": True, "size": 4, "mode": 0o4755}
EVIL = base64.b64encode(b"evil").decode()


def files(walk, errors=(), stat=None, content=EVIL):
    """A server whose tree /src has what `walk` says. stat: of a path, instead of the usual."""
    def answer(request):
        params, method = request["params"], request["method"]
        path = params.get("path", "")
        if method == "fs/getMetadata":
            found = (stat or {}).get(path)
            return found or (DIRECTORY if path.endswith(("/src", "/dir")) else FILE)
        if method == "fs/walk":
            return {"entries": [{"path": p, "kind": kind, **({"target": t} if t else {})}
                                for p, kind, t in walk],
                    "errors": [{"path": p, "message": m} for p, m in errors], "truncated": False}
        if method == "fs/readFile":
            return {"dataBase64": content}
        return {}

    def script(c):
        c.open(info=CAN)
        while True:
            request = c.receive()
            c.answer(request, answer(request))
    return Scripted(script)


def download(client, here, seen=None, **more):
    bag = options(recursive=1, **more)
    function = _lib.OnProgress(lambda u, p: (seen.append(p.contents.warning) if seen is not None
                                             and p.contents.warning else None) or 0)
    code = LIB.xs_copy_download(client.handle, b"/src", os.fsencode(here), bag, function, None, None)
    LIB.xs_options_free(bag)
    return code


def everything(place):
    return sorted(str(p.relative_to(place)) for p in place.rglob("*"))


OUTSIDE = [
    [("file:///src/../../outside/x", "file", None)],
    [("file:///src/..%2F..%2Foutside%2Fx", "file", None)],
    [("file:///src/%2E%2E/x", "file", None)],
    [("file:///other/x", "file", None)],
    [("file:///srcx/x", "file", None)],
    [("file:///src/a%00b", "file", None)],
    [("/src/x/../../y", "file", None)],
    [("file:///src", "file", None)],
    [("file:///src/dir/x", "file", None)],  # without its directory
    [("file:///src/dir", "symlink", "../outside"), ("file:///src/dir/x", "file", None)],
    [("file:///src/dir", "symlink", "/"), ("file:///src/dir/etc", "directory", None)],
    [("file:///src/dir", "directory", None), ("file:///src/dir", "symlink", "../../outside"),
     ("file:///src/dir/x", "file", None)],
    [("file:///src/dir", "directory", None), ("file:///src/dir/..", "directory", None),
     ("file:///src/dir/../x", "file", None)],
    [("file:///src/l", "symlink", "../outside/x"), ("file:///src/l", "file", None)],
]


@pytest.mark.parametrize("walk", OUTSIDE)
def test_s34_nothing_is_written_outside_the_destination(walk, place):
    here, outside = place / "here", place / "outside"
    here.mkdir()
    outside.mkdir()
    (outside / "x").write_text("kept")
    with files(walk) as server, Client(server.url) as client:
        download(client, here / "copy")
    assert everything(outside) == ["x"] and (outside / "x").read_text() == "kept"
    assert set(os.listdir(place)) == {"here", "outside"} and os.listdir(here) in ([], ["copy"])


def test_s34_a_link_that_is_there_is_not_followed(place):
    """Of an earlier copy, or of a process that swaps a directory for a link."""
    here, outside = place / "here", place / "outside"
    (here / "copy").mkdir(parents=True)
    outside.mkdir()
    (here / "copy" / "dir").symlink_to(outside)
    (here / "copy" / "f").symlink_to(outside / "f")
    walk = [("file:///src/dir", "directory", None), ("file:///src/f", "file", None),
            ("file:///src/dir/x", "file", None)]
    seen = []
    with files(walk) as server, Client(server.url) as client:
        assert download(client, here / "copy", seen) > 0
    assert everything(outside) == [] and any(b"dir" in text for text in seen)
    assert (here / "copy" / "f").read_bytes() == b"evil" and not (here / "copy" / "f").is_symlink()


@pytest.mark.parametrize("preserve", [0, 1])
def test_s34_modes_of_a_server_are_cut(place, preserve):
    """Nobody gets a program that changes its user."""
    walk = [("file:///src/f", "file", None)]
    with files(walk) as server, Client(server.url) as client:
        assert download(client, place / "copy", preserve=preserve) == 0
    mode = (place / "copy" / "f").stat().st_mode
    assert mode & 0o6000 == 0 and mode & 0o700 == 0o700


def test_s34_warnings_are_one_harmless_line(place):
    seen, errors = [], [("file:///src/bad%1B%5B2J%0Aname", "no\x1b]0;title\x07 \x9b2J")]
    with files([], errors) as server, Client(server.url) as client:
        assert download(client, place / "copy", seen) == 1
    text = seen[0].decode()
    assert "bad" in text and not any(ord(ch) < 32 or 0x7F <= ord(ch) < 0xA0 for ch in text)


@pytest.mark.skipif(SANITIZED, reason="memory of a sanitizer's build")
def test_contents_larger_than_asked_for_are_not_kept(place):
    """32 files at a time: the answers to fs/readFile come before the metadata, and are 4 MiB."""
    walk = [(f"file:///src/f{n}", "file", None) for n in range(64)]
    content = "A" * (4 << 20)

    def script(c):
        c.open(info=CAN)
        kept = []
        while True:
            request = c.receive()
            if request["method"] == "fs/walk":
                c.answer(request, {"entries": [{"path": p, "kind": k} for p, k, _ in walk],
                                   "errors": [], "truncated": False})
            elif request["method"] == "fs/readFile":
                c.answer(request, {"dataBase64": content})
            elif request["params"]["path"].endswith("/src"):
                c.answer(request, DIRECTORY)
            else:
                kept.append(request)
    with Scripted(script) as server, Client(server.url) as client:
        code = download(client, place / "copy")
        assert code == Code.EPROTO and "readFile" in client.error()


def test_close_code_1001_before_a_reset():
    """The server's farewell counts, even if our echo finds nobody."""
    dials = []

    def script(sock):
        connection = Connection(sock, 0)
        try:
            connection.open()
            connection.frame(b"\x03\xe9bye", 8)
        except Gone:
            pass
        sock.close()

    def dial(_, __):
        dials.append(1)
        if len(dials) > 1:
            return -111
        ours, theirs = socket.socketpair()
        threading.Thread(target=script, args=(theirs,), daemon=True).start()
        return ours.detach()
    function = _lib.OnDial(dial)
    client = Client("ws://nobody.invalid", connect=False, resume_ms=600000)
    LIB.xs_client_on_dial(client.handle, function, None)
    connecting = Pending(client)
    assert client.connect(connecting) == 0
    client.until(lambda: client.state() == State.FAILED)
    assert any("1001 bye" in line for _, line in client.lines)
    assert len(dials) < 45, "two seconds are some 20 tries; 28 seconds are 70"
    client.free()


def test_names_of_a_server_are_whole_or_refused():
    """Lists with names that are none."""
    for name in ("a/b", "..", ".", "", "a\0b"):
        def script(c, bad=name):
            c.open(info=CAN)
            c.answer(c.receive(), {"entries": [{"fileName": bad, "isDirectory": False,
                                                "isFile": True}]})
            c.receive()
        with Scripted(script) as server, Client(server.url) as client:
            space, out = ctypes.c_void_p(), ctypes.POINTER(_lib.Entries)()
            assert LIB.xs_fs_new(client.handle, None, ctypes.byref(space)) == 0
            code = LIB.xs_fs_list(space, b"/src", ctypes.byref(out), None)
            assert code == Code.EPROTO, name
            LIB.xs_fs_free(space)

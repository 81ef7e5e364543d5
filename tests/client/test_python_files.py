"""Files, watches and copies through the Python package."""

import asyncio
import os
import subprocess

import pytest

import execserver
from execserver import Change, Kind, Open, errors
from execserver.blocking import connect
from harness.settings import PATIENCE


@pytest.fixture(name="client")
def connected(shared):
    """A client of its own session."""
    with connect(shared.url) as client:
        yield client


def go(main):
    """Runs a test in a loop of its own, for a limited time."""
    async def limited():
        return await asyncio.wait_for(main(), PATIENCE)
    return asyncio.run(limited())


# -- files --

def test_every_file_call(client, place):
    fs = client.fs
    fs.mkdir(place / "a/b", parents=True)
    fs.write(place / "a/file", b"content")
    fs.write(place / "a/file", b"replaced", atomic=True)
    assert fs.read(place / "a/file") == b"replaced"
    assert fs.stat(place / "a/file").bytes == 8
    fs.chmod(place / "a/file", 0o600)
    assert fs.stat(place / "a/file").mode & 0o777 == 0o600
    fs.set_times(place / "a/file", 1_000_000_000_000)
    assert fs.stat(place / "a/file").modified_ms == 1_000_000_000_000
    fs.symlink(place / "a/link", "file")
    assert fs.read_link(place / "a/link") == "file"
    assert fs.stat(place / "a/link", follow=False).is_link
    assert fs.canonicalize(place / "a/link") == str(place / "a/file")
    fs.copy(place / "a/file", place / "a/copy")
    fs.rename(place / "a/copy", place / "a/moved")
    with pytest.raises(errors.RemoteError):
        fs.rename(place / "a/moved", place / "a/file", replace=False)
    assert sorted(e.name for e in fs.list(place / "a")) == ["b", "file", "link", "moved"]
    kinds = {e.name: e.kind for e in fs.list(place / "a")}
    assert kinds["b"] == Kind.DIRECTORY and kinds["moved"] == Kind.FILE
    tree = fs.walk(place)
    assert {os.path.basename(e.name) for e in tree.entries} >= {"a", "b", "file", "moved"}
    assert not tree.truncated and not tree.errors
    fs.remove(place / "a", recursive=True)
    fs.remove(place / "a", force=True)
    assert not (place / "a").exists()


def test_names_that_are_not_text(client, place):
    name = os.fsencode(place) + b"/\xff\xfe"
    client.fs.write(name, b"x")
    names = [os.fsencode(e.name) for e in client.fs.walk(place, links=True).entries]
    assert [os.path.basename(name) for name in names] == [b"\xff\xfe"]
    assert client.fs.read(os.fsdecode(name)) == b"x"


def test_open_files(client, place):
    data = os.urandom(2_500_000)
    with client.fs.open(place / "file", Open.REPLACE) as file:
        file.write(0, data)
    assert (place / "file").read_bytes() == data
    with client.fs.open(place / "file", Open.UPDATE) as file:
        file.write(3, b"new")
    with client.fs.open(place / "file") as file:
        assert file.read(0, 10 << 20) == data[:3] + b"new" + data[6:]
        assert file.read(len(data), 1) == b""
    with pytest.raises(errors.InvalidArgument):
        file.read(0, 1)


def test_a_watch(client, place):
    with client.fs.watch(place, recursive=True) as watch:
        (place / "new").write_text("x")
        change = next(watch)
        assert isinstance(change, Change)
        assert change.overflow or any("new" in path for path in change.paths)
        watch.free()
        assert not list(watch)


def test_missing_files(client, place):
    with client.fs.watch_missing([place / "one", place / "two"]) as watch:
        (place / "two").write_text("x")
        change = next(watch)
        assert change.overflow or str(place / "two") in change.paths


def test_a_tree_up_and_down(client, place):
    source = place / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/file").write_bytes(os.urandom(700_000))
    (source / "link").symlink_to("deep")
    steps = []
    assert client.upload(source, place / "up", recursive=True, preserve=True,
                         progress=steps.append) == 0
    assert client.download(place / "up", place / "down", recursive=True, preserve=True) == 0
    assert subprocess.run(["diff", "-r", "--no-dereference", source, place / "down"],
                          check=False).returncode == 0
    assert steps and steps[-1].bytes == steps[-1].total


def test_files_in_a_sandbox(client, place):
    (place / "file").write_text("x")
    confined = client.files(sandbox="read-only")
    assert confined.read(place / "file") == b"x"
    with pytest.raises(errors.RemoteError):
        confined.write(place / "file", b"y")


def test_s25_a_blocking_call_in_a_callback_is_busy(client, place):
    (place / "source").write_bytes(b"x" * 300_000)
    seen = []

    def progress(_):
        try:
            client.fs.stat(place)
        except errors.Busy as error:
            seen.append(error)
    assert client.upload(place / "source", place / "target", progress=progress) == 0
    assert seen


def test_progress_that_returns_true_ends_the_copy(client, place):
    with (place / "source").open("wb") as file:
        file.truncate(300 << 20)
    with pytest.raises(errors.Canceled):
        client.upload(place / "source", place / "target", progress=lambda _: True)
    assert not (place / "target").exists()


def test_a_cancelled_download_leaves_no_file(shared, place):
    source, target = place / "big", place / "copy"
    with source.open("wb") as file:
        file.truncate(300 << 20)

    async def main():
        async with execserver.connect(shared.url) as client:
            began = asyncio.Event()
            task = asyncio.create_task(
                client.download(source, target, progress=lambda _: began.set()))
            await asyncio.wait([task, asyncio.create_task(began.wait())],
                               return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not target.exists()
            await client.run(["true"])
    go(main)


def test_an_exception_of_progress_ends_the_copy(shared, place):
    with (place / "source").open("wb") as file:
        file.truncate(300 << 20)

    def progress(_):
        raise KeyError("mine")

    async def main():
        async with execserver.connect(shared.url) as client:
            with pytest.raises(KeyError, match="mine"):
                await client.upload(place / "source", place / "target", progress=progress)
            assert not (place / "target").exists()
            assert (await client.run(["true"])).code == 0
    go(main)

"""Copies that go on: parts of earlier ones, cuts in the middle."""

import itertools
import json
import os

import pytest

from execserver import _lib
from harness.core import LIB, Client, Pending, options
from harness.cutting import DOWN, HOLE, RST, UP, Cut, Proxy
from harness.resting import wait_rest
from harness.settings import SANITIZED

BLOCK = 1 << 20
SIZE = 40 * BLOCK


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def copy(client, up, source, target, progress=None, **more):
    bag = options(**more)
    function = _lib.OnProgress(lambda u, p: (progress(p.contents) if progress else 0) or 0)
    call = LIB.xs_copy_upload if up else LIB.xs_copy_download
    code = call(client.handle, os.fsencode(source), os.fsencode(target), bag, function, None, None)
    LIB.xs_options_free(bag)
    return code


@pytest.fixture(name="source")
def large_file(place):
    path = place / "source"
    path.write_bytes(os.urandom(SIZE))
    return path


def stop_half(client, up, source, target):
    """Leaves the part of a copy that was stopped at its beginning, but with half of the bytes."""
    def parts():
        return [p for p in target.parent.glob(f".{target.name}.xs-part*") if p.suffix != ".json"]
    pending, bag = Pending(client), options()
    call = LIB.xs_copy_upload if up else LIB.xs_copy_download
    assert call(client.handle, os.fsencode(source), os.fsencode(target), bag, _lib.OnProgress(),
                None, pending.ref()) == 0
    LIB.xs_options_free(bag)
    while not any(p.stat().st_size for p in parts()):
        client.run(1)
    pending.cancel()
    assert pending.wait() == _lib.Code.ECANCELED and not target.exists()
    part, = parts()
    part.write_bytes(source.read_bytes()[:SIZE // 2])
    return part


@pytest.mark.parametrize("up", [True, False])
def test_a_part_is_gone_on_with(shared, place, source, up):
    """Only the rest is sent: the bytes are counted."""
    with Proxy(shared.address) as proxy, Client(proxy.url) as client:
        stop_half(client, up, source, place / "copy")
        before = dict(proxy.passed)
        assert copy(client, up, source, place / "copy") == 0
        way = "up" if up else "down"
        assert proxy.passed[way] - before[way] < SIZE * 4 / 3 * 0.7
        assert (place / "copy").read_bytes() == source.read_bytes()
        assert sorted(os.listdir(place)) == ["copy", "source"]


def test_a_part_is_compared(shared, place, source):
    """A part whose end differs is not gone on with."""
    with Client(shared.url) as client:
        part = stop_half(client, False, source, place / "copy")
        with part.open("r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"x" * 10)
        assert copy(client, False, source, place / "copy") == 0
        assert (place / "copy").read_bytes() == source.read_bytes()


def test_a_part_of_another_source_is_not_used(shared, place, source):
    with Client(shared.url) as client:
        stop_half(client, False, source, place / "copy")
        source.write_bytes(os.urandom(SIZE))
        assert copy(client, False, source, place / "copy") == 0
        assert (place / "copy").read_bytes() == source.read_bytes()


def test_s31_a_copy_that_ends_anywhere_leaves_no_half_file(shared, place, source):
    """The client vanishes at many moments; the name is never there with less than all."""
    for up in (True, False):
        for at in (0, 1, SIZE // 3, SIZE - 1):
            with Client(shared.url) as client:
                target = place / f"copy-{up}-{at}"
                copy(client, up, source, target, lambda p, n=at: int(p.bytes >= n))
            assert not target.exists() or target.stat().st_size == SIZE


@pytest.mark.parametrize("up", [True, False])
def test_cuts_in_a_copy(shared, place, source, up):
    with Proxy(shared.address) as proxy, Client(proxy.url) as client:
        marks = [SIZE // 5, SIZE // 2, SIZE - SIZE // 10]

        def progress(p):
            if marks and p.bytes >= marks[0]:
                marks.pop(0)
                proxy.cuts.append(p.bytes)
                proxy.cut_all(RST)
            return 0
        assert copy(client, up, source, place / "copy", progress) == 0
        assert proxy.cuts, "nothing was cut"
        assert (place / "copy").read_bytes() == source.read_bytes()


@pytest.mark.skipif(SANITIZED, reason="memory of a sanitizer's build")
@pytest.mark.parametrize("up", [True, False])
def test_s30_memory_of_a_copy_is_flat(shared, place, up):
    """With all blocks in flight; those that are sent are not kept."""
    with (place / "source").open("wb") as file:
        file.truncate(150 * BLOCK)
    with Client(shared.url) as client:
        (place / "small").write_bytes(b"x" * (2 * BLOCK))
        assert copy(client, up, place / "small", place / "first") == 0
        before, most = resident(), []

        def progress(_):
            most.append(resident())
            return 0
        assert copy(client, up, place / "source", place / "copy", progress, in_flight=16) == 0
        assert max(most) - before < 12 * BLOCK


def test_a_note_that_is_not_ours_is_not_trusted(shared, place, source):
    """Every field of it."""
    with Client(shared.url) as client:
        stop_half(client, False, source, place / "copy")
        note = place / ".copy.xs-part.json"
        good = json.loads(note.read_text())
        for bad in ({**good, "size": SIZE + 1}, {**good, "version": 99}, {}, [],
                    {**good, "source": "0" * 64}):
            (place / ".copy.xs-part").write_bytes(b"x" * (BLOCK * 2))
            note.write_text(json.dumps(bad))
            assert copy(client, False, source, place / "copy") == 0
            assert (place / "copy").read_bytes() == source.read_bytes()
            (place / "copy").unlink()


# What dead copies leave.

STEP, STEPS = 75, 18  # bytes of requests: less than any has; more than all before the data


def greeting(server, way):
    """Bytes that pass before the first file call."""
    with Proxy(server.address) as proxy, Client(proxy.url):
        return proxy.passed[way]


def vanish(server, source, target, way, at):
    """An upload of whose requests, or answers, only so many bytes arrive; then its client is gone.
    True: it was complete before."""
    with Proxy(server.address, [Cut(way, at, HOLE)]) as proxy, Client(proxy.url) as client:
        pending, bag = Pending(client), options()
        assert LIB.xs_copy_upload(client.handle, os.fsencode(source), os.fsencode(target), bag,
                                  _lib.OnProgress(), None, pending.ref()) == 0
        LIB.xs_options_free(bag)
        while not proxy.cuts and pending.times == 0:
            client.run(1)
        over = pending.times > 0
    wait_rest(server)
    return over


@pytest.fixture(name="small")
def a_file_of_two_blocks(place):
    (place / "source").write_bytes(os.urandom(BLOCK * 2))
    return place / "source"


def test_an_upload_killed_at_every_step_leaves_nothing_behind(shared, place, small):
    """Three times in a row, the last two around the note and the renames; the next one cleans up."""
    target, up, down = place / "copy", greeting(shared, UP), greeting(shared, DOWN)
    while len(os.listdir(place)) < 3:  # a part and its note
        for left in place.glob(".copy*"):
            left.unlink()
        down += 20
        vanish(shared, small, target, DOWN, down)
    assert not target.exists()
    with Client(shared.url) as client:
        assert copy(client, True, small, target) == 0
    target.unlink()
    for first, second in itertools.product(range(5, 13), repeat=2):
        vanish(shared, small, target, DOWN, down)
        assert len(os.listdir(place)) == 3
        assert not vanish(shared, small, target, UP, up + first * STEP)
        assert not vanish(shared, small, target, UP, up + second * STEP)
        with Client(shared.url) as client:
            assert copy(client, True, small, target) == 0
        assert sorted(os.listdir(place)) == ["copy", "source"], (first, second)
        assert target.read_bytes() == small.read_bytes()
        target.unlink()


def test_an_upload_killed_at_its_end_leaves_nothing_behind(shared, place, small):
    target, down = place / "copy", greeting(shared, DOWN)
    while not vanish(shared, small, target, DOWN, down):
        down += 11
        with Client(shared.url) as client:
            assert copy(client, True, small, target) == 0
        assert sorted(os.listdir(place)) == ["copy", "source"]
        target.unlink()


def test_another_source_removes_what_was_left(shared, place, small):
    other, target, up = place / "other", place / "copy", greeting(shared, UP)
    other.write_bytes(os.urandom(BLOCK * 2))
    for step in range(1, STEPS, 3):
        for one in (small, other):
            vanish(shared, one, target, UP, up + step * STEP)
        with Client(shared.url) as client:
            assert copy(client, True, small, target) == 0
        assert sorted(os.listdir(place)) == ["copy", "other", "source"], step
        target.unlink()


def test_parts_that_nobody_names(shared, place, source):
    """Of copies that ran at once and died. What was written to within the hour has an owner."""
    old, young = ".copy.xs-part-0123456789abcdef", ".copy.xs-part-0123456789abcde0"
    strangers = [".other.xs-part-0123456789abcdef", ".copy.xs-part-0123456789abcdeg", young]
    for name in [old, *strangers]:
        (place / name).write_bytes(b"x")
        if name != young:
            os.utime(place / name, (0, os.stat(place).st_mtime - 3700))
    (place / ".copy.xs-part-00000000000000ff").mkdir()
    os.utime(place / ".copy.xs-part-00000000000000ff", (0, 0))
    with Client(shared.url) as client:
        assert copy(client, True, source, place / "copy") == 0
    assert sorted(os.listdir(place)) == sorted(
        ["copy", "source", ".copy.xs-part-00000000000000ff", *strangers])


def test_two_uploads_at_once(shared, place):
    """Whoever comes first: the name has the whole of one of them, and nothing is left."""
    one, other = place / "one", place / "other"
    one.write_bytes(b"1" * SIZE)
    other.write_bytes(b"2" * SIZE)
    for first, second in ((one, other), (one, one)):
        clients, pendings = [Client(shared.url), Client(shared.url)], []
        for client, source in zip(clients, (first, second)):
            pendings.append(Pending(client))
            bag = options()
            assert LIB.xs_copy_upload(client.handle, os.fsencode(source),
                                      os.fsencode(place / "copy"), bag, _lib.OnProgress(), None,
                                      pendings[-1].ref()) == 0
            LIB.xs_options_free(bag)
        while not all(p.times for p in pendings):
            for client in clients:
                client.run(1)
        assert [p.result for p in pendings] == [0, 0]
        assert (place / "copy").read_bytes() in (one.read_bytes(), other.read_bytes())
        for client in clients:
            client.free()
        assert sorted(os.listdir(place)) == ["copy", "one", "other"]
        (place / "copy").unlink()

"""Copies that go on: parts of earlier ones, cuts in the middle."""

import json
import os

import pytest

from execserver import _lib
from harness.core import LIB, Client, Pending, options
from harness.cutting import RST, Proxy
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

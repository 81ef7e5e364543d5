"""Activities with files. Each takes the world, a source of chance, and a scope to clean up."""

import itertools
import shutil
from urllib.parse import quote

from harness.files import Files
from harness.http import Ended
from harness.rpc import RpcError, b64, unb64
from harness.sandbox import uri

from ledger import Source
from link import Link

FULL = (-32603, "No space left on device (os error 28)")
NOT_ALLOWED = (-32603, "Read-only file system (os error 30)")
_names = itertools.count(1)


def content(world, rng, most):
    length = rng.choice([0, 1, rng.randrange(1000), rng.randrange(most)])
    start = rng.randrange(len(world.blob) - length)
    return world.blob[start:start + length]


def own_directory(world, scope):
    path = world.workspace / f"d{next(_names)}"
    path.mkdir()
    scope.callback(shutil.rmtree, path, ignore_errors=True)
    return path


def begin(world, rng, scope):
    link = Link(world, rng)
    scope.callback(link.close)
    return link, Files(link.client)


def same(world, got, wanted, what):
    assert got == wanted, f"{what}: {len(got)} bytes differ from the {len(wanted)} written"
    world.checked(len(got))


def refused(files, method, path, wanted, **params):
    """The call must fail in one way only."""
    error = files.error(method, path, **params)
    if error != wanted:
        raise RpcError({"code": error[0], "message": error[1]})


def whole_files(world, rng, scope):
    """Files written are read back, moved, copied, listed and removed."""
    _, files = begin(world, rng, scope)
    there = own_directory(world, scope)
    wanted = {}
    for _ in range(rng.randrange(1, 8)):
        path = there / f"f{len(wanted)}"
        wanted[path] = content(world, rng, 3_000_000)
        files.write(path, wanted[path], atomic=rng.random() < 0.5)
    for path, data in wanted.items():
        same(world, files.read(path), data, path)
        copy = there / f"{path.name}-copy"
        files.copy(path, copy)
        same(world, files.read(copy), data, copy)
        files.rename(copy, there / f"{path.name}-moved")
    names = {p.name for p in wanted} | {f"{p.name}-moved" for p in wanted}
    listed = files.call("readDirectory", there)["entries"]
    assert {e["fileName"] for e in listed} == names
    limits = {"maxDepth": 9, "maxDirectories": 99, "maxEntries": 99,
              "followDirectorySymlinks": False}
    walked = files.call("walk", there, options=limits)
    for error in walked["errors"]:
        raise RpcError({"code": -32603, "message": error["message"]})
    assert len(walked["entries"]) == len(names), walked
    for name in names:
        files.remove(there / name)
    assert not any(there.iterdir())


def large_file(world, rng, scope):
    """A file beyond 4 MiB comes in fragments, to a reader that may be slow."""
    link = Link(world, rng, **rng.choice([{}, {"rcvbuf": 16384}]))
    scope.callback(link.close)
    path = own_directory(world, scope) / "large"
    data = world.blob * 2 + content(world, rng, 100_000)
    path.write_bytes(data)
    same(world, Files(link.client).read(path), data, path)


def blocks(world, rng, scope):
    """Handles: blocks written in any order, read back; some are left to the server to close."""
    link, files = begin(world, rng, scope)
    path = own_directory(world, scope) / "blocks"
    data = content(world, rng, 1_000_000)
    size = rng.randrange(1000, 300_000)
    offsets = list(range(0, len(data), size))
    rng.shuffle(offsets)
    files.call("open", path, handleId="w", mode="replace")
    for at in offsets:
        files.call("writeBlock", handleId="w", offset=at, chunk=b64(data[at:at + size]))
    if rng.random() < 0.5:
        files.call("close", handleId="w")
    else:
        link.lose()  # what was acknowledged is written
        link.resume()
        files = Files(link.client)
    files.call("open", path, handleId="r")
    got = b""
    while True:
        part = files.call("readBlock", handleId="r", offset=len(got), len=size)
        got += unb64(part["chunk"])
        if part["eof"]:
            break
    same(world, got, data, path)


def watched(world, rng, scope):
    """Changes below a watched directory are told."""
    link, files = begin(world, rng, scope)
    there = own_directory(world, scope)
    files.call("watch", there, watchId="w", recursive=True)
    for number in range(rng.randrange(1, 4)):
        path = there / f"n{number}"
        link.client.other.clear()
        path.write_bytes(b"x")
        link.client.wait(lambda p=path: told(link.client.other, p), f"change of {path}")
    if rng.random() < 0.5:
        files.call("unwatch", watchId="w")


def told(messages, path):
    return any(m["method"] == "fs/changed"
               and (m["params"]["overflow"] or uri(path) in m["params"]["changedPaths"])
               for m in messages)


def sandboxed(world, rng, scope):
    """File calls in a sandbox: what is granted works, the rest is refused."""
    _, files = begin(world, rng, scope)
    there = own_directory(world, scope)
    policy = {"sandbox": world.sandbox(there)}
    for number in range(rng.randrange(1, 6)):
        path, data = there / f"s{number}", content(world, rng, 500_000)
        files.write(path, data, **policy)
        same(world, files.read(path, **policy), data, path)
        refused(files, "writeFile", world.workspace / "outside", NOT_ALLOWED, dataBase64="",
                **policy)
    assert not (world.workspace / "outside").exists()


def full_disk(world, rng, scope):
    """A disk that is full fails what needs room, loses nothing else, and works again."""
    if world.disk is None or not world.disk_lock.acquire(blocking=False):
        return
    scope.callback(world.disk_lock.release)
    scope.callback(lambda: [p.unlink() for p in world.disk.iterdir()])
    link, files = begin(world, rng, scope)
    old = content(world, rng, 60_000)
    files.write(world.disk / "kept", old)
    much = world.blob[:3_000_000]
    refused(files, "writeFile", world.disk / "kept", FULL, dataBase64=b64(much), atomic=True)
    assert [p.name for p in world.disk.iterdir()] == ["kept"]
    refused(files, "writeFile", world.disk / "big", FULL, dataBase64=b64(much))
    ledger = link.start(["/bin/sh", "-c", 'cat "$1"; cat "$1" > "$2" 2>/dev/null; exit $?', "sh",
                         str(world.blob_file), str(world.disk / "more")],
                        {"stdout": Source(world.blob), "stderr": Source(b"")})
    link.wait_closed(ledger)
    link.finish(ledger, [1])
    same(world, files.read(world.disk / "kept"), old, "a file on a full disk")
    for name in ("big", "more"):
        files.remove(world.disk / name)
    files.write(world.disk / "kept", old[::-1], atomic=True)
    same(world, files.read(world.disk / "kept"), old[::-1], "a file on a disk with room again")
    world.count("fault: disk full")


def raw(world, rng, scope):
    """Files over HTTP; transfers that are cut leave the old file."""
    there = own_directory(world, scope)
    target = f"/v1/files?path={quote(str(there / 'raw'))}"
    data = content(world, rng, 1_000_000)
    http = open_http(world, scope)
    http.send(f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n")
    http.send(data)
    status = http.read().status
    if status == 500 and world.starving():
        return
    assert status == 201, status
    cut = open_http(world, scope)
    cut.send(f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
    cut.send(world.blob[:rng.randrange(50_000)])
    cut.close()
    world.count("fault: transfer cut")
    try:
        answer = http.ask(target)
    except Ended:
        assert world.starving(), "the connection was closed"
        return
    if answer.status == 500 and world.starving():
        return
    assert answer.status == 200, answer.status
    same(world, answer.body, data, "a file over HTTP")


def open_http(world, scope):
    http = world.server.http()
    world.server.clients.remove(http)
    scope.callback(http.close)
    return http


ACTIVITIES = {whole_files: 3, large_file: 1, blocks: 2, watched: 2, sandboxed: 3, full_disk: 1,
              raw: 1}

"""What all fs methods share: lifecycle, params, paths, and the error for each errno."""

import json
import signal

import pytest

from harness.files import TEXTS, Files, os_error, uri
from harness.rpc import b64, unb64
from harness.waiting import until

# The least that each method takes, without its path.
METHODS = {
    "readFile": {}, "open": {"handleId": "h"}, "writeFile": {"dataBase64": ""},
    "createDirectory": {}, "getMetadata": {}, "canonicalize": {}, "readDirectory": {},
    "walk": {"options": {"maxDepth": 1, "maxDirectories": 1, "maxEntries": 1,
                         "followDirectorySymlinks": False}},
    "remove": {}, "setPermissions": {"mode": 0o644}, "setTimes": {"modifiedAtMs": 0},
    "readLink": {}, "symlink": {"target": "x"},
}
TWO_PATHS = {"copy": {"recursive": False}, "rename": {}}
HANDLES = {"readBlock": {"handleId": "h", "offset": 0, "len": 1},
           "writeBlock": {"handleId": "h", "offset": 0, "chunk": "QQ=="},
           "close": {"handleId": "h"}}


def minimal(method, path="file:///nowhere"):
    if method in TWO_PATHS:
        return {"sourcePath": path, "destinationPath": path, **TWO_PATHS[method]}
    return HANDLES[method] if method in HANDLES else {"path": path, **METHODS[method]}


ALL = [*METHODS, *TWO_PATHS, *HANDLES]


# Lifecycle.

@pytest.mark.parametrize("method", ALL)
def test_before_initialize(shared, place, method):
    client = shared.connect()
    params = minimal(method, uri(place / "nowhere"))
    assert client.error(f"fs/{method}", params) == (
        -32600, "client must call initialize before using filesystem methods")
    assert client.error(f"fs/{method}", {})[0] == -32602
    client.call("initialize", {"clientName": "x"})
    assert client.error(f"fs/{method}", params) == (
        -32600, "client must send initialized before using filesystem methods")
    assert list(place.iterdir()) == []
    client.notify("initialized", {})
    answer = client.answer(client.send(f"fs/{method}", params))
    assert answer.get("error", {}).get("code") != -32600
    client.close()


def test_a_bad_path_before_initialize(shared):
    client = shared.connect()
    assert client.error("fs/readFile", {"path": "relative"}) == (
        -32602, "invalid URI: relative URL without a base")


@pytest.mark.parametrize("method", ["stat", "readlink", "link", "append", "truncate", "exists",
                                    "unwatchMissing", "ReadFile", "readfile", "join", ""])
def test_unknown_methods(client, method):
    assert client.error(f"fs/{method}", {}) == (
        -32601, f"exec-server stub does not implement `fs/{method}` yet")


# Params.

@pytest.mark.parametrize("params", [None, 5, "x", True])
@pytest.mark.parametrize("method", ALL)
def test_params_that_are_no_object(client, method, params):
    client.send_raw(json.dumps({"id": 700, "method": f"fs/{method}", "params": params}))
    assert client.answer(700)["error"]["code"] == -32602
    ident = client.send(f"fs/{method}")
    assert client.answer(ident)["error"]["code"] == -32602


@pytest.mark.parametrize("method", ALL)
def test_missing_fields(client, method):
    whole = minimal(method)
    for name in whole:
        rest = {k: v for k, v in whole.items() if k != name}
        assert client.error(f"fs/{method}", rest) == (-32602, f"missing field `{name}`")
    # Unknown fields, also ones spelled in another way, do not count.
    first = next(iter(whole))
    wrong = {first.upper() if k == first else k: v for k, v in whole.items()}
    assert client.error(f"fs/{method}", wrong) == (-32602, f"missing field `{first}`")


@pytest.mark.parametrize("method", [*METHODS, *TWO_PATHS])
def test_paths_that_are_no_strings(client, method):
    for name in [k for k in minimal(method) if "ath" in k]:
        for value in (None, 5, True, [], {}, ["file:///x"]):
            assert client.error(f"fs/{method}", {**minimal(method), name: value})[0] == -32602
    field = "sourcePath" if method in TWO_PATHS else "path"
    assert client.error(f"fs/{method}", {**minimal(method), field: 5}) == (
        -32602, "invalid type: number, expected a string")
    assert client.error(f"fs/{method}", {**minimal(method), field: None}) == (
        -32602, "invalid type: null, expected a string")


@pytest.mark.parametrize("method, field, optional", [
    ("readFile", "followSymlinks", True), ("writeFile", "followSymlinks", True),
    ("createDirectory", "followSymlinks", True), ("createDirectory", "recursive", True),
    ("getMetadata", "followSymlinks", True), ("remove", "followSymlinks", True),
    ("remove", "recursive", True), ("remove", "force", True), ("copy", "recursive", False),
    ("setPermissions", "followSymlinks", True), ("setTimes", "followSymlinks", True)])
def test_booleans(client, place, method, field, optional):
    params = minimal(method, uri(place / "missing" / "x"))
    for value in (0, 1, "true", [], {}, 1.0):
        assert client.error(f"fs/{method}", {**params, field: value})[0] == -32602
    assert client.error(f"fs/{method}", {**params, field: "x"}) == (
        -32602, 'invalid type: string "x", expected a boolean')
    answer = client.answer(client.send(f"fs/{method}", {**params, field: None}))
    assert (answer.get("error", {}).get("code") == -32602) == (not optional)


def test_booleans_of_walk(client, place):
    options = METHODS["walk"]["options"]
    for field in ("followDirectorySymlinks", "pruneHiddenDirectories"):
        for value in (None, 0, "x"):
            assert client.error("fs/walk", {"path": uri(place), "options": {
                **options, field: value}})[0] == -32602
    for field in options:
        rest = {k: v for k, v in options.items() if k != field}
        assert client.error("fs/walk", {"path": uri(place), "options": rest}) == (
            -32602, f"missing field `{field}`")
    assert client.error("fs/walk", {"path": uri(place), "options": None})[0] == -32602


@pytest.mark.parametrize("text", ["-1", "1.0", "1e3", "1.5", "18446744073709551616", "-5"])
def test_numbers_that_are_not_u64(client, text):
    for method, field in (("readBlock", "offset"), ("readBlock", "len"), ("writeBlock", "offset"),
                          ("setPermissions", "mode"), ("readFile", "maxBytes")):
        params = json.dumps({**minimal(method), field: "@"}).replace('"@"', text)
        client.send_raw(f'{{"id":701,"method":"fs/{method}","params":{params}}}')
        assert client.answer(701)["error"] == {"code": -32602, "message": "invalid number"}
    for field in ("maxDepth", "maxDirectories", "maxEntries"):
        params = json.dumps({"path": "file:///", "options": {
            **METHODS["walk"]["options"], field: "@"}}).replace('"@"', text)
        client.send_raw(f'{{"id":702,"method":"fs/walk","params":{params}}}')
        assert client.answer(702)["error"] == {"code": -32602, "message": "invalid number"}


def test_numbers_that_are_u64(client):
    for text in ("0", "-0", "18446744073709551615", "9223372036854775808"):
        client.send_raw('{"id":703,"method":"fs/readBlock","params":{"handleId":"h","offset":%s,'
                        '"len":1}}' % text)
        assert client.answer(703)["error"] == {"code": -32004,
                                               "message": "unknown file handle `h`"}
    assert client.error("fs/readBlock", {"handleId": "h", "offset": "0", "len": 1}) == (
        -32602, 'invalid type: string "0", expected u64')


def test_sandbox_may_be_null(files, place):
    files.write(place / "f", b"x", sandbox=None)
    assert files.read(place / "f", sandbox=None) == b"x"
    assert files.metadata(place / "f", sandbox=None)["size"] == 1


def test_duplicate_keys(client):
    client.send_raw('{"id":704,"method":"fs/readFile","params":{"path":"/a","path":"/b"}}')
    assert client.answer(-1)["error"]["code"] == -32600


# Paths.

@pytest.mark.parametrize("form", [
    "file:{}", "file://{}", "file:///{}", "file:////{}", "FILE://{}", "file://localhost{}",
    "file://LOCALHOST{}", "  file://{}  ", "\t\nfile://{}\r\n", "fi\nle:/\t/{}", "file:\\\\{}",
    "file://{}/", "file://{}/.", "file://{}/x/..", "file://{}/%2e%2E/%2e/../..{}",
    "file://{}/x%2F..", "file://{}//", "file:///..{}", "file://{}/./x/%2E%2e",
    "{}", "{}/", "{}/x/..", "/..{}", "/.{}//."])
def test_spellings(client, place, form):
    path = form.replace("{}", str(place))
    assert client.call("fs/canonicalize", {"path": path}) == {"path": uri(place)}, path


@pytest.mark.parametrize("path", ["", "rel", "rel/x", "~", "~/x", ".", "..", "%2Fabs", "\\\\host",
                                  "1file:///x"])
def test_relative_paths(client, path):
    assert client.error("fs/readFile", {"path": path}) == (
        -32602, "invalid URI: relative URL without a base")


@pytest.mark.parametrize("path, scheme", [("http://x/y", "http"), ("HTTPS:/x", "https"),
                                          ("C:\\x", "c"), ("C:/x", "c"), ("data:,x", "data"),
                                          ("vscode-remote://x/y", "vscode-remote")])
def test_other_schemes(client, path, scheme):
    assert client.error("fs/readFile", {"path": path}) == (
        -32602, f"unsupported path URI scheme `{scheme}`")


@pytest.mark.parametrize("path, code, text", [
    ("file:///a?b", -32602, "query parameters are not allowed in path URIs"),
    ("file:///a?", -32602, "query parameters are not allowed in path URIs"),
    ("file:///a#b", -32602, "fragments are not allowed in path URIs"),
    ("file:///a#", -32602, "fragments are not allowed in path URIs"),
    ("file://user@h/a", -32602, "invalid URI: invalid international domain name"),
    ("file://h:80/a", -32602, "invalid URI: invalid international domain name"),
    ("file://server/a", -32600, "'file://server/a' is invalid on 'linux'"),
    ("file://SERVER/a/../b", -32600, "'file://server/b' is invalid on 'linux'"),
    ("file://127.0.0.1/a", -32600, "'file://127.0.0.1/a' is invalid on 'linux'"),
    ("file:///C:/x", -32600, "'file:///C:/x' is invalid on 'linux'"),
    ("file:///c:/x y", -32600, "'file:///C:/x%20y' is invalid on 'linux'"),
    ("file:///c%3A/x", -32600, None),
    ("file://c:/x", -32600, "'file:///C:/x' is invalid on 'linux'"),
    ("file:///a%00b", -32602, "'file:///a%00b' is invalid on 'linux'"),
])
def test_refused_uris(client, path, code, text):
    got = client.error("fs/readFile", {"path": path})
    assert got[0] == code and (text is None or got[1] == text), got


def test_nul_in_a_native_path(client):
    for path in ("/tmp/a\0b", "/\0"):
        assert client.error("fs/readFile", {"path": path})[0] == -32602


def test_names_that_are_escapes(client, place):
    """What is malformed as an escape is literal; an escaped slash separates."""
    (place / "100%").write_bytes(b"1")
    (place / "%zz").write_bytes(b"2")
    (place / "d").mkdir()
    (place / "d" / "f").write_bytes(b"3")
    for name, content in (("100%", b"1"), ("100%25", b"1"), ("%zz", b"2"), ("%25zz", b"2"),
                          ("d%2Ff", b"3"), ("d%2ff", b"3"), ("%64/%66", b"3")):
        result = client.call("fs/readFile", {"path": f"file://{place}/{name}"})
        assert unb64(result["dataBase64"]) == content
    # In a native path nothing is an escape.
    assert client.error("fs/readFile", {"path": f"{place}/d%2Ff"}) == os_error(2)
    assert unb64(client.call("fs/readFile", {"path": f"{place}/%zz"})["dataBase64"]) == b"2"


def test_native_path_that_looks_like_a_drive(client):
    assert client.error("fs/readFile", {"path": "/C:/missing"}) == os_error(2)
    assert client.error("fs/readFile", {"path": "file:///%00/bad/path/L0M6L21pc3Npbmc"}) \
        == os_error(2)


# Errnos.

# Given by a file system: EINTR, and ENOSYS which FUSE takes for something else, left out.
@pytest.mark.parametrize("number", sorted(TEXTS))
def test_text_and_code_of_an_errno(files, faultfs, number):
    path = faultfs.file(f"e{number}-open")
    for follow in (True, False):
        assert files.error("readFile", path, followSymlinks=follow) == os_error(number)
    assert files.error("open", path, handleId="h") == os_error(number)
    assert files.error("createDirectory", faultfs.path / f"e{number}-mkdir") == os_error(number)
    assert files.error("getMetadata", faultfs.file(f"e{number}-stat")) == os_error(number)


def test_a_file_system_that_went_away(shared, faultfs):
    """ENOTCONN for all; handles can still be closed."""
    files = Files(shared.client())
    handle = files.open(faultfs.file("f", b"x"))
    writer = files.open(faultfs.path / "g", mode="replace")
    faultfs.kill()
    assert files.error("writeBlock", handleId=writer, offset=0, chunk="QQ==") == os_error(107)
    assert files.error("readBlock", handleId=handle, offset=0, len=5)[0] == -32603
    assert files.error("getMetadata", faultfs.path / "f") == os_error(107)
    assert files.error("readDirectory", faultfs.path) == os_error(107)
    files.close(writer)
    until(lambda: not [t for t in shared.fd_targets() if t.startswith(str(faultfs.path))],
          "no descriptor left")


def test_limit_of_file_sizes(fleet, place):
    """EFBIG is an error of the call; a program too large to be copied makes no sandbox."""
    server = fleet.start(wrapper=["prlimit", "--fsize=65536:65536"])
    files = Files(server.client())
    assert files.error("writeFile", place / "f", dataBase64=b64(bytes(65537))) == os_error(27)
    files.write(place / "f", bytes(65536))
    process = files.client.run("kill -XFSZ $$; exit 1")
    assert process.exit_code == 128 + signal.SIGXFSZ
    read_only = {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}
    code, text = files.client.start_error(
        "true", sandbox={"permissions": read_only, "cwd": uri(place),
                         "windowsSandboxLevel": "disabled"})
    assert code == -32603 and text.startswith("sandbox: own program: File too large (os error 27)")


def test_out_of_descriptors(fleet, place):
    """EMFILE is an error of the call, and nothing worse."""
    (place / "f").write_bytes(b"x")
    server = fleet.start("--max-connections", "4", wrapper=["prlimit", "--nofile=60:60"],
                         quiet=False)
    files = Files(server.client())
    opened = []
    for i in range(100):
        outcome = files.outcome("open", place / "f", handleId=str(i))
        if outcome != {"handleId": str(i)}:
            assert outcome == os_error(24)
            break
        opened.append(str(i))
    assert 10 < len(opened) < 60
    assert files.error("readFile", place / "f") == os_error(24)
    files.client.sync()
    for handle in opened[:10]:
        files.close(handle)
    assert files.read(place / "f") == b"x"
    assert files.read_block(opened[20], 0, 10) == (b"x", True)

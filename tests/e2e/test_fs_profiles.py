"""The sandbox member of fs methods: its shapes, what is served directly, what in a sandbox."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from harness.files import os_error, uri
from harness.rpc import b64

NO_FILE, DENIED, READ_ONLY = os_error(2), os_error(13), os_error(30)


def context(permissions, **more):
    return {"permissions": permissions, "windowsSandboxLevel": "disabled", **more}


def managed(*entries, network="restricted"):
    return {"type": "managed", "network": network,
            "file_system": {"type": "restricted", "entries": list(entries)}}


def special(kind, access, **more):
    return {"path": {"type": "special", "value": {"kind": kind, **more}}, "access": access}


def at(path, access):
    return {"path": {"type": "path", "path": path}, "access": access}


def glob(pattern, access="deny"):
    return {"path": {"type": "glob_pattern", "pattern": pattern}, "access": access}


ROOT_READ, ROOT_WRITE = special("root", "read"), special("root", "write")

# Profiles, and what reads and writes of a place outside of /tmp and /etc give: True, a result.
PROFILES = {
    "disabled": ({"type": "disabled"}, True, True),
    "external": ({"type": "external", "network": "restricted"}, True, True),
    "external-net": ({"type": "external", "network": "enabled"}, True, True),
    "unrestricted": ({"type": "managed", "network": "restricted",
                      "file_system": {"type": "unrestricted"}}, True, True),
    "root-write": (managed(ROOT_WRITE), True, True),
    "root-write-and-read": (managed(ROOT_WRITE, ROOT_READ), True, True),
    "root-write-minimal": (managed(ROOT_WRITE, special("minimal", "read")), True, True),
    "root-write-shadowed": (managed(ROOT_WRITE, at("file:///tmp", "read"),
                                    at("file:///tmp", "write")), True, True),
    "root-write-narrowed": (managed(ROOT_WRITE, at("file:///etc", "read")), True, True),
    "root-read": (managed(ROOT_READ), True, READ_ONLY),
    "root-read-tmp-write": (managed(ROOT_READ, special("slash_tmp", "write")), True, READ_ONLY),
    "root-read-path-write": (managed(ROOT_READ, at("file:///tmp", "write")), True, READ_ONLY),
    "root-read-deny": (managed(ROOT_READ, at("file:///etc", "deny")), True, READ_ONLY),
    "root-write-deny": (managed(ROOT_WRITE, at("file:///etc", "deny")), True, True),
    "root-write-none": (managed(ROOT_WRITE, at("file:///etc", "none")), True, True),
    "root-read-glob": (managed(ROOT_READ, glob("/etc/**/*.key")), True, READ_ONLY),
    "path-root": (managed(at("file:///", "read")), True, READ_ONLY),
    "path-root-write": (managed(at("file:///", "write")), True, True),
    "nothing": (managed(), NO_FILE, NO_FILE),
    "minimal": (managed(special("minimal", "read")), NO_FILE, NO_FILE),
    "tmp-write": (managed(special("slash_tmp", "write")), NO_FILE, NO_FILE),
}

# Profiles that name the place.
GRANTS = {
    "write": ([special("minimal", "read"), at("PLACE", "write")], True, True),
    "write-full-read": ([ROOT_READ, at("PLACE", "write")], True, True),
    "write-denied-around": ([ROOT_READ, at("file:///var", "deny"), at("PLACE", "write")],
                            True, True),
    "read": ([at("PLACE", "read")], True, READ_ONLY),
    "read-in-written": ([ROOT_WRITE, at("PLACE", "read")], True, READ_ONLY),
    "deny": ([ROOT_READ, at("PLACE", "deny")], DENIED, DENIED),
    "none": ([ROOT_READ, at("PLACE", "none")], DENIED, DENIED),
    "deny-in-written": ([ROOT_WRITE, at("PLACE", "deny")], DENIED, DENIED),
    "deny-wins": ([ROOT_READ, at("PLACE", "write"), at("PLACE", "deny")], DENIED, DENIED),
    "skipped-when-missing": ([ROOT_READ, at("PLACE/missing", "write")], True, READ_ONLY),
    "workspace": ([ROOT_READ, special("project_roots", "write")], True, True),
    "other-workspace": ([ROOT_READ, special("project_roots", "write", subpath="x")], True,
                        READ_ONLY),
}


def calls(place):
    """One call of each method that takes a sandbox: name, params, whether it writes."""
    def path(name):
        return {"path": uri(place / name)}
    pair = {"sourcePath": uri(place / "f"), "destinationPath": uri(place / "g")}
    walk = {"maxDepth": 1, "maxDirectories": 1, "maxEntries": 9, "followDirectorySymlinks": False}
    return [
        ("readFile", path("f"), False), ("getMetadata", path("f"), False),
        ("canonicalize", path("f"), False), ("readDirectory", path("d"), False),
        ("walk", {**path("d"), "options": walk}, False),
        ("open", {**path("f"), "handleId": "r"}, False),
        ("open", {**path("w"), "handleId": "w", "mode": "replace"}, True),
        ("open", {**path("w"), "handleId": "u", "mode": "update"}, True),
        ("writeFile", {**path("f"), "dataBase64": b64("new")}, True),
        ("symlink", {**path("l"), "target": "f"}, True),
        ("createDirectory", path("d/x"), True), ("copy", {**pair, "recursive": False}, True),
        ("setPermissions", {**path("f"), "mode": 0o600}, True),
        ("setTimes", {**path("f"), "modifiedAtMs": 1000}, True), ("rename", pair, True),
        ("remove", {**path("g"), "force": False}, True)]


@pytest.fixture
def place():
    """A directory that is not below /tmp."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield path
    shutil.rmtree(path)


def check(client, place, sandbox, reads, writes):
    (place / "f").write_bytes(b"old")
    (place / "d").mkdir()
    for method, params, is_write in calls(place):
        answer = client.answer(client.send(f"fs/{method}", {**params, "sandbox": sandbox}))
        expected = writes if is_write else reads
        if expected is True:
            assert "result" in answer, (method, answer)
            continue
        assert "error" in answer, (method, answer)
        if method == "remove" and expected == READ_ONLY:
            expected = NO_FILE  # is not there
        if method == "createDirectory" and expected == NO_FILE:
            expected = READ_ONLY  # nor are the ones above, which would be made in the root
        assert (answer["error"]["code"], answer["error"]["message"]) == expected, method
    if writes is not True:
        assert (place / "f").read_bytes() == b"old"
        assert sorted(p.name for p in place.iterdir()) == ["d", "f"]


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(client, place, name):
    permissions, reads, writes = PROFILES[name]
    check(client, place, context(permissions), reads, writes)


@pytest.mark.parametrize("name", GRANTS)
def test_grants(client, place, name):
    entries, reads, writes = GRANTS[name]
    named = json.loads(json.dumps(entries).replace("PLACE", uri(place)))
    sandbox = context(managed(*named), cwd=uri(place), workspaceRoots=[uri(place)])
    check(client, place, sandbox, reads, writes)


DYNAMIC = (-32602, "file system sandbox context with dynamic permissions requires cwd")


@pytest.mark.parametrize("entry", [
    special("project_roots", "write"), special("current_working_directory", "read"),
    special("project_roots", "write", subpath="x"), glob("*.key"), glob("**/x"),
    glob("codex-project-roots://**/*.key")], ids=str)
def test_dynamic_profiles_need_a_cwd(files, place, entry):
    """Checked while params are decoded, whatever the profile would then allow."""
    (place / "f").write_bytes(b"x")
    for profile in (managed(ROOT_READ, entry), managed(entry)):
        assert files.error("readFile", place / "f", sandbox=context(profile)) == DYNAMIC
        assert files.error("writeFile", place / "f", dataBase64="",
                           sandbox=context(profile)) == DYNAMIC
        for more in ({"cwd": uri(place)}, {"policyContext": {"cwd": uri(place)}}):
            assert files.error("writeFile", place / "f", dataBase64="",
                               sandbox=context(profile, **more)) == (
                READ_ONLY if ROOT_READ in profile["file_system"]["entries"] else NO_FILE)
    assert (place / "f").read_bytes() == b"x"


FOREIGN = "'file:///C:/x' is invalid on 'linux'"


@pytest.mark.parametrize("sandbox, text", [
    (context(managed(special("minimal", "read")), cwd="file:///C:/x"), FOREIGN),
    (context(managed(special("project_roots", "read")), cwd="file:///tmp",
             workspaceRoots=["file:///C:/x"]),
     f"file system sandbox workspace root is not native to this exec-server host: {FOREIGN}"),
    (context(managed(at("file:///C:/x", "read"))),
     f"invalid sandbox permission path URI: {FOREIGN}"),
])
def test_foreign_paths(files, place, sandbox, text):
    (place / "f").write_bytes(b"x")
    for method in ("readFile", "remove"):
        assert files.error(method, place / "f", sandbox=sandbox) == (-32600, text)
    assert (place / "f").exists()


def test_foreign_request_path(client):
    for profile in ({"type": "disabled"}, managed()):
        assert client.error("fs/readFile", {"path": "file:///C:/x", "sandbox": context(profile)}) \
            == (-32600, FOREIGN)


def test_bad_base64_comes_first(files, place):
    assert files.error("writeFile", place / "f", dataBase64="!", sandbox=context(managed())) == (
        -32600, "fs/writeFile requires valid base64 dataBase64: Invalid symbol 33, offset 0.")


@pytest.mark.parametrize("sandbox", [
    {}, 5, "x", [], True, {"permissions": None, "windowsSandboxLevel": "disabled"},
    {"permissions": {"type": "bogus"}, "windowsSandboxLevel": "disabled"},
    {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "bogus"},
    {"permissions": {"type": "managed"}, "windowsSandboxLevel": "disabled"},
    context(managed({"path": {"type": "path", "path": "file:///x"}, "access": "bogus"})),
    context(managed({"path": {"type": "special", "value": {"kind": "bogus"}}})),
    context(managed(at("relative", "read"))),
    context({"type": "disabled"}, useLegacyLandlock=None),
    context({"type": "disabled"}, cwd="relative"),
    context({"type": "disabled"}, workspaceRoots=None),
    context({"type": "disabled"}, sandboxOverride="bogus"),
], ids=str)
def test_bad_shapes(files, place, sandbox):
    (place / "f").write_bytes(b"x")
    code, _ = files.error("readFile", place / "f", sandbox=sandbox)
    assert code == -32602
    assert files.error("remove", place / "f", sandbox=sandbox)[0] == -32602
    assert (place / "f").exists()


def test_malformed_pattern(files, place):
    (place / "f").write_bytes(b"x")
    sandbox = context(managed(ROOT_READ, glob(f"{place}/*{{a")))
    code, text = files.error("readFile", place / "f", sandbox=sandbox)
    assert code == -32603
    assert text.startswith(f"sandbox: unreadable glob pattern is invalid for {place}: "
                           "error parsing glob '*{a': unclosed alternate group")


def test_without_the_level_of_windows(files, place):
    """It means nothing here, and may be left out."""
    files.write(place / "f", b"x", sandbox={"permissions": {"type": "disabled"}})
    assert files.read(place / "f", sandbox={"permissions": managed(ROOT_READ)}) == b"x"
    assert files.error("readFile", place / "f", sandbox={"permissions": managed()}) == NO_FILE


def test_native_paths(files, place):
    (place / "f").write_bytes(b"x")
    sandbox = context(managed(ROOT_READ, at(str(place), "write")), cwd=str(place),
                      workspaceRoots=[str(place)])
    assert files.read(place / "f", sandbox=sandbox) == b"x"
    files.remove(place / "f", sandbox=sandbox)
    assert not (place / "f").exists()


def test_handles_need_no_sandbox(files, place):
    """It counts when the file is opened; blocks work on the handle."""
    (place / "f").write_bytes(b"x")
    handle = files.open(place / "f", sandbox=context(managed(ROOT_READ)))
    assert files.read_block(handle, 0, 5) == (b"x", True)
    assert files.error("open", place / "f", handleId="w", mode="replace",
                       sandbox=context(managed(ROOT_READ))) == READ_ONLY
    assert (place / "f").read_bytes() == b"x"

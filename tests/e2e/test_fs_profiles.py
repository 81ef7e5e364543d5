"""The sandbox member of fs methods: what is served directly, and what is refused."""

import pytest

from harness.files import uri
from harness.rpc import b64

UNAVAILABLE = (-32600, "sandbox is not available on this server")


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

# Profiles, and whether reads and writes are served directly.
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
    "root-write-narrowed": (managed(ROOT_WRITE, at("file:///etc", "read")), True, False),
    "root-read": (managed(ROOT_READ), True, False),
    "root-read-tmp-write": (managed(ROOT_READ, special("slash_tmp", "write")), True, False),
    "root-read-path-write": (managed(ROOT_READ, at("file:///tmp", "write")), True, False),
    "root-read-deny": (managed(ROOT_READ, at("file:///etc", "deny")), False, False),
    "root-write-deny": (managed(ROOT_WRITE, at("file:///etc", "deny")), False, False),
    "root-write-none": (managed(ROOT_WRITE, at("file:///etc", "none")), False, False),
    "root-read-glob": (managed(ROOT_READ, glob("/etc/**/*.key")), False, False),
    "path-root": (managed(at("file:///", "read")), False, False),
    "path-root-write": (managed(at("file:///", "write")), False, False),
    "nothing": (managed(), False, False),
    "minimal": (managed(special("minimal", "read")), False, False),
    "tmp-write": (managed(special("slash_tmp", "write")), False, False),
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
        ("writeFile", {**path("f"), "dataBase64": b64("new")}, True),
        ("createDirectory", path("d/x"), True), ("copy", {**pair, "recursive": False}, True),
        ("setPermissions", {**path("f"), "mode": 0o600}, True), ("rename", pair, True),
        ("remove", path("g"), True)]


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(client, place, name):
    permissions, reads, writes = PROFILES[name]
    (place / "f").write_bytes(b"old")
    (place / "d").mkdir()
    for method, params, is_write in calls(place):
        ident = client.send(f"fs/{method}", {**params, "sandbox": context(permissions)})
        answer = client.answer(ident)
        if writes if is_write else reads:
            assert "result" in answer, (method, answer)
        else:
            assert (answer["error"]["code"], answer["error"]["message"]) == UNAVAILABLE, method
    if not writes:
        assert (place / "f").read_bytes() == b"old"
        assert sorted(p.name for p in place.iterdir()) == ["d", "f"]


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
                               sandbox=context(profile, **more)) == UNAVAILABLE
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


def test_without_the_level_of_windows(files, place):
    """It means nothing here, and may be left out."""
    files.write(place / "f", b"x", sandbox={"permissions": {"type": "disabled"}})
    assert files.read(place / "f", sandbox={"permissions": managed(ROOT_READ)}) == b"x"
    assert files.error("readFile", place / "f", sandbox={"permissions": managed()}) == UNAVAILABLE


def test_native_paths(files, place):
    (place / "f").write_bytes(b"x")
    sandbox = context(managed(ROOT_READ, at(str(place), "write")), cwd=str(place),
                      workspaceRoots=[str(place)])
    assert files.read(place / "f", sandbox=sandbox) == b"x"
    assert files.error("remove", place / "f", sandbox=sandbox) == UNAVAILABLE


def test_handles_need_no_sandbox(files, place):
    """It counts when the file is opened; blocks work on the handle."""
    (place / "f").write_bytes(b"x")
    handle = files.open(place / "f", sandbox=context(managed(ROOT_READ)))
    assert files.read_block(handle, 0, 5) == (b"x", True)
    assert files.error("open", place / "f", handleId="w", mode="replace",
                       sandbox=context(managed(ROOT_READ))) == UNAVAILABLE
    assert (place / "f").read_bytes() == b"x"

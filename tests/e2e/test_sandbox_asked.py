"""A request that asks for confinement, in whatever words, is confined or refused."""

import base64
import socket

import pytest

from harness.sandbox import DENIED, READ_ONLY, place, servers, uri, user  # noqa: F401

assert all((place, servers, user))

READ = {"type": "read-only"}
FILE_CALLS = {
    "fs/readFile": {}, "fs/open": {"handleId": "h"}, "fs/getMetadata": {}, "fs/canonicalize": {},
    "fs/readDirectory": {}, "fs/writeFile": {"dataBase64": "eA=="}, "fs/createDirectory": {},
    "fs/remove": {}, "fs/setPermissions": {"mode": 0o600}, "fs/setTimes": {"modifiedAtMs": 0},
    "fs/readLink": {}, "fs/symlink": {"target": "x"},
    "fs/walk": {"options": {"maxDepth": 1, "maxDirectories": 1, "maxEntries": 1,
                            "followDirectorySymlinks": False}},
}
NAMES = ["sandbox_policy", "permissions", "permissionProfile", "sandboxPermissions",
         "fileSystemSandboxPolicy", "networkSandboxPolicy", "sandboxMode", "sandboxPolicyCwd"]


def refusal(name):
    return -32602, f"`{name}` asks for a confinement that this method does not have"


def legacy(place, **policy):  # pylint: disable=redefined-outer-name
    return {"sandboxPolicy": policy, "sandboxPolicyCwd": str(place.ws)}


# A `sandboxPolicy` beside the other members is enforced.

def test_policy_of_a_file_call(place):
    """Reads go on, nothing is written."""
    path = place.put("ws/file")
    for method, more in {"fs/writeFile": {"dataBase64": "eA=="}, "fs/remove": {},
                         "fs/setPermissions": {"mode": 0o600},
                         "fs/setTimes": {"modifiedAtMs": 0}}.items():
        code, text = place.client.error(method, {"path": uri(path), **more, "sandboxPolicy": READ})
        assert code == -32603 and READ_ONLY in text, (method, text)
    made = {"path": uri(place.path("ws/new")), "recursive": False, "sandboxPolicy": READ}
    assert READ_ONLY in place.client.error("fs/createDirectory", made)[1]
    got = place.client.call("fs/readFile", {"path": uri(path), "sandboxPolicy": READ})
    assert base64.b64decode(got["dataBase64"]) == b"content\n"
    assert path.read_text() == "content\n"


def test_policy_of_a_file_call_with_roots(place):
    place.put("ws/file")
    params = {"dataBase64": "eA==", **legacy(place, type="workspace-write", exclude_slash_tmp=True)}
    assert place.client.call("fs/writeFile", {"path": uri(place.path("ws/file")), **params}) == {}
    outside = {"path": uri(place.path("outside")), **params}
    assert READ_ONLY in place.client.error("fs/writeFile", outside)[1]
    del params["sandboxPolicyCwd"]
    assert place.client.error("fs/writeFile", {"path": uri(place.path("ws/file")), **params}) == (
        -32602, "file system sandbox context with dynamic permissions requires cwd")


def test_policy_of_a_file_call_hides(place):
    place.put("secret")
    only = {"type": "read-only", "access": {"type": "restricted", "include_platform_defaults": True,
                                            "readable_roots": [str(place.ws)]}}
    params = {"path": uri(place.path("secret")), "sandboxPolicy": only}
    assert place.client.error("fs/readFile", params)[0] == -32004


@pytest.mark.parametrize("wrap", [False, True], ids=["flat", "direct"])
def test_policy_of_a_start(place, wrap):
    for policy, inside in ((READ, False), ({"type": "workspace-write"}, True)):
        params = place.client.start_params("touch x; touch ../y", cwd=uri(place.ws),
                                           sandboxPolicy=policy)
        result = place.client.call("process/start", {"direct": params} if wrap else params)
        assert result["sandboxType"] == "linuxSeccomp"
        process = place.client.wait_closed(place.client.processes[params["processId"]])
        assert process.exit_code != 0 and process.exited["sandboxDenied"] is True
        assert (place.ws / "x").exists() == inside and not (place.base / "y").exists()


def test_policy_and_sandbox(place):
    both = {"sandbox": {"permissions": {"type": "disabled"}}, "sandboxPolicy": READ}
    refused = -32602, "sandbox and sandboxPolicy exclude each other"
    assert place.client.error("fs/readFile", {"path": "/x", **both}) == refused
    assert place.client.start_error("true", **both) == refused


# What is not known is refused, by every method.

@pytest.mark.parametrize("name", NAMES)
def test_other_names(client, tmp_path, name):
    file = tmp_path / "file"
    file.write_text("content")
    for method, more in FILE_CALLS.items():
        params = {"path": str(file), **more, name: READ}
        assert client.error(method, params) == refusal(name), method
    for method in ("fs/copy", "fs/rename"):
        params = {"sourcePath": str(file), "destinationPath": str(tmp_path / "to"),
                  "recursive": False, name: READ}
        assert client.error(method, params) == refusal(name), method
    assert client.start_error(["/bin/touch", str(tmp_path / "x")], **{name: READ}) == refusal(name)
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and file.read_text() == "content"


def test_no_network(client):
    """A false can ask for confinement too."""
    for name in ("networkAccess", "network"):
        assert client.start_error("true", **{name: False}) == refusal(name)
        assert client.error("fs/readFile", {"path": "/x", name: False}) == refusal(name)


@pytest.mark.parametrize("name", ["sandboxPolicy", *NAMES])
def test_prepared_starts(client, tmp_path, name):
    request = {"command": ["/bin/touch", str(tmp_path / "x")], "cwd": "/", "env": {}}
    inner = {"processId": "p", "io": {"type": "pipe"}, "request": request}
    for params in ({**inner, name: READ}, {**inner, "request": {**request, name: READ}}):
        assert client.error("process/start", {"prepared": params}) == refusal(name)
    assert not (tmp_path / "x").exists()


def test_methods_without_a_sandbox(fleet, client, tmp_path):
    missing = {"watchId": 1, "missing": [uri(tmp_path / "x")], "present": None}
    for name in ("sandbox", "sandboxPolicy"):
        assert client.error("fs/watchMissing", {**missing, name: READ}) == refusal(name)
    handles = {"fs/close": {}, "fs/readBlock": {"offset": 0, "len": 1},
               "fs/writeBlock": {"offset": 0, "chunk": ""}}
    for method, params in handles.items():
        params = {"handleId": "h", **params}
        assert client.error(method, {**params, "sandboxPolicy": READ}) == refusal("sandboxPolicy")
    # A handle keeps the policy of its open.
    assert client.call("fs/close", {"handleId": "h", "sandbox": {"permissions": {}}}) == {}
    watch = {"watchId": "w", "path": uri(tmp_path), "sandboxPolicy": {"type": "read-only", "access": {
        "type": "restricted"}}}
    assert client.error("fs/watch", watch) == (
        -32600, "fs/watch is not available in a sandbox")
    raw = fleet.start().connect()
    assert raw.error("initialize", {"clientName": "t", "sandboxPolicy": READ}) == refusal(
        "sandboxPolicy")


def test_what_says_nothing(client, tmp_path):
    """Members that are null, false or for Windows, and those that clients of today send."""
    idle = {name: None for name in NAMES + ["sandboxPolicy"]}
    idle |= {"useLegacyLandlock": False, "windowsSandboxLevel": "disabled", "trace": {"a": 1}}
    (tmp_path / "f").write_text("x")
    assert client.call("fs/readFile", {"path": str(tmp_path / "f"), "sandbox": None, **idle})
    assert client.run("true", sandbox=None, managedNetwork=None, enforceManagedNetwork=False,
                      arg0=None, metadata=None, **idle).exit_code == 0


# A managed network.

def test_enforced_network_needs_a_sandbox(client, tmp_path):
    network = {"loopbackPorts": [80], "allowLocalBinding": True}
    assert client.start_error(["/bin/touch", str(tmp_path / "x")], enforceManagedNetwork=True,
                              managedNetwork=network) == (
        -32602, "enforceManagedNetwork needs a sandbox")
    assert not (tmp_path / "x").exists()


LISTEN = ("/usr/bin/python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
          "c = socket.create_connection(s.getsockname()); print(\"heard\")'")


@pytest.mark.parametrize("allowed", [False, True])
def test_local_binding(place, allowed):
    """The loopback of a managed network is the command's own: it may listen there in any case."""
    got = place.run(LISTEN, "r :root", enforceManagedNetwork=True,
                    managedNetwork={"loopbackPorts": [], "allowLocalBinding": allowed})
    assert got.out == "heard\n", got
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        got = place.run(f"/usr/bin/python3 -c 'import socket; "
                        f"socket.create_connection((\"127.0.0.1\", {port}))'", "r :root",
                        enforceManagedNetwork=True,
                        managedNetwork={"loopbackPorts": [], "allowLocalBinding": allowed})
        assert got.code != 0 and DENIED not in got.err, got

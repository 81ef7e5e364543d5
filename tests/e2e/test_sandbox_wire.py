"""The sandbox object of process/start: shapes, errors and their texts, URIs, older shapes."""

import os

import pytest

from harness.sandbox import MISSING, READ_ONLY, place, servers, special, uri, user

__all__ = ["place", "servers", "user"]

INVALID = -32602
RELATIVE = "invalid URI: relative URL without a base"
HOST = "'file://server/share' is invalid on 'linux'"
LEVELS = "`disabled`, `restricted-token`, `elevated`, `mxc`"
KINDS = ("`root`, `minimal`, `current_working_directory`, `project_roots`, `tmpdir`, `slash_tmp`, "
         "`unknown`")
R, PR = "r :root", "w :project_roots"
ROOT = special("root")
READ_ROOT = {"path": ROOT, "access": "read"}


def managed(network="restricted", **files):
    return {"type": "managed", "network": network, "file_system": {"type": "restricted", **files}}


def entries(*made, **more):
    return {"permissions": managed(entries=list(made), **more)}


def unknown(name, *known):
    if len(known) == 2:
        return f"unknown variant `{name}`, expected {' or '.join(known)}"
    return f"unknown variant `{name}`, expected one of {', '.join(known)}"


# Keys put into a good object (... takes one out), and the error.
ERRORS = [
    ("no permissions", {"permissions": ...}, "missing field `permissions`"),
    ("bad level", {"windowsSandboxLevel": "bogus"}, unknown("bogus", *LEVELS.split(", "))),
    ("level null", {"windowsSandboxLevel": None}, "invalid type: null, expected string or map"),
    ("level mxc", {"windowsSandboxLevel": "mxc"}, "native MXC is unavailable on this executor"),
    ("bad override", {"sandboxOverride": "bogus"},
     unknown("bogus", "`noOverride`", "`escalatedSandboxWithRestrictions`",
             "`bypassSandboxFirstAttempt`")),
    ("override null", {"sandboxOverride": None}, "invalid type: null, expected string or map"),
    ("override number", {"sandboxOverride": 3}, "invalid type: number, expected string or map"),
    ("proxy mode", {"windowsSandboxProxySettingsMode": "bogus"},
     unknown("bogus", "`reconcile`", "`preserve`")),
    ("context string", {"policyContext": "bogus"},
     'invalid type: string "bogus", expected struct WireFileSystemPolicyContext'),
    ("context number", {"policyContext": 3},
     "invalid type: number, expected struct WireFileSystemPolicyContext"),
    ("context cwd", {"policyContext": {"cwd": 3}}, "invalid type: number, expected a string"),
    ("context roots", {"policyContext": {"workspaceRoots": 3}},
     "invalid type: number, expected a sequence"),
    ("landlock null", {"useLegacyLandlock": None}, "invalid type: null, expected a boolean"),
    ("landlock string", {"useLegacyLandlock": "x"}, 'invalid type: string "x", expected a boolean'),
    ("home number", {"userHomeDir": 3}, "invalid type: number, expected a string"),
    ("temporary number", {"temporaryDirectories": 3}, "invalid type: number, expected a sequence"),
    ("roots null", {"workspaceRoots": None}, "invalid type: null, expected a sequence"),
    ("roots string", {"workspaceRoots": "x"}, 'invalid type: string "x", expected a sequence'),
    ("roots host", {"workspaceRoots": ["file://server/share"]},
     "sandbox workspace root URI `file://server/share` is not valid on this exec-server host: "
     + HOST),
    ("cwd relative", {"cwd": "tmp"}, RELATIVE),
    ("cwd http", {"cwd": "http://x/"}, "unsupported path URI scheme `http`"),
    ("cwd number", {"cwd": 3}, "invalid type: number, expected a string"),
    ("cwd host", {"cwd": "file://server/share"},
     "sandbox cwd URI `file://server/share` is not valid on this exec-server host: " + HOST),
    ("cwd nul", {"cwd": "file:///x%00y"}, "'file:///x%00y' is invalid on 'linux'"),
    ("cwd query", {"cwd": "file:///x?q#f"}, "query parameters are not allowed in path URIs"),
    ("permissions type", {"permissions": {"type": "bogus"}},
     unknown("bogus", "`managed`", "`disabled`", "`external`")),
    ("permissions null", {"permissions": None},
     "invalid type: null, expected internally tagged enum ExecPermissionProfile"),
    ("permissions string", {"permissions": "read-only"},
     'invalid type: string "read-only", expected internally tagged enum ExecPermissionProfile'),
    ("managed alone", {"permissions": {"type": "managed"}}, "missing field `file_system`"),
    ("no network", {"permissions": {"type": "managed", "file_system": {"type": "unrestricted"}}},
     "missing field `network`"),
    ("external alone", {"permissions": {"type": "external"}}, "missing field `network`"),
    ("network", {"permissions": managed("bogus", entries=[])},
     unknown("bogus", "`restricted`", "`enabled`")),
    ("network bool", {"permissions": managed(True, entries=[])},
     "invalid type: boolean `true`, expected string or map"),
    ("camel case", {"permissions": {"type": "managed", "fileSystem": {"type": "unrestricted"},
                                    "network": "enabled"}}, "missing field `file_system`"),
    ("files type", {"permissions": {"type": "managed", "network": "restricted",
                                    "file_system": {"type": "bogus"}}},
     unknown("bogus", "`restricted`", "`unrestricted`")),
    ("no entries", {"permissions": managed()}, "missing field `entries`"),
    ("entries null", {"permissions": managed(entries=None)},
     "invalid type: null, expected a sequence"),
    ("depth 0", entries(READ_ROOT, glob_scan_max_depth=0),
     "invalid value: integer `0`, expected a nonzero usize"),
    ("depth -1", entries(READ_ROOT, glob_scan_max_depth=-1),
     "invalid value: integer `-1`, expected a nonzero usize"),
    ("depth string", entries(READ_ROOT, glob_scan_max_depth="x"),
     'invalid type: string "x", expected a nonzero usize'),
    ("entry without path", entries({"access": "read"}), "missing field `path`"),
    ("entry without access", entries({"path": ROOT}), "missing field `access`"),
    ("access", entries({"path": ROOT, "access": "bogus"}),
     unknown("bogus", "`read`", "`write`", "`deny`", "`none`")),
    ("access upper case", entries({"path": ROOT, "access": "READ"}),
     unknown("READ", "`read`", "`write`", "`deny`", "`none`")),
    ("missing path", entries({**READ_ROOT, "missing_path_behavior": "bogus"}),
     "unknown variant `bogus`, expected `skip`"),
    ("path type", entries({"path": {"type": "bogus"}, "access": "read"}),
     unknown("bogus", "`path`", "`glob_pattern`", "`special`")),
    ("pattern", entries({"path": {"type": "glob_pattern"}, "access": "deny"}),
     "missing field `pattern`"),
    ("special string", entries({"path": {"type": "special", "value": "root"}, "access": "read"}),
     'invalid type: string "root", expected internally tagged enum FileSystemSpecialPath'),
    ("special kind", entries({"path": special("bogus"), "access": "read"}),
     unknown("bogus", *KINDS.split(", "))),
    ("special cwd", entries({"path": special("cwd"), "access": "read"}),
     unknown("cwd", *KINDS.split(", "))),
    ("special unknown", entries({"path": special("unknown"), "access": "write"}),
     "missing field `path`"),
    ("path relative", entries({"path": {"type": "path", "path": "tmp"}, "access": "read"}),
     RELATIVE),
    ("path http", entries({"path": {"type": "path", "path": "http://x/"}, "access": "read"}),
     "unsupported path URI scheme `http`"),
    ("path host", entries({"path": {"type": "path", "path": "file://server/share"},
                           "access": "read"}), "invalid sandbox permission path URI: " + HOST),
    ("path drive", entries({"path": {"type": "path", "path": "file:///C:/Windows"},
                            "access": "read"}),
     "invalid sandbox permission path URI: 'file:///C:/Windows' is invalid on 'linux'"),
    ("path nul", entries({"path": {"type": "path", "path": "file:///x%00y"}, "access": "read"}),
     "'file:///x%00y' is invalid on 'linux'"),
]


@pytest.mark.parametrize("change, text", [c[1:] for c in ERRORS], ids=[c[0] for c in ERRORS])
def test_errors(place, change, text):
    assert place.error(R, **change) == (INVALID, text)
    assert place.run("echo alive", R).text == "alive\n"


@pytest.mark.parametrize("value, text", [
    ({}, "missing field `permissions`"),
    ("x", 'invalid type: string "x", expected struct WireFileSystemSandboxContext'),
])
def test_not_an_object(place, value, text):
    assert place.error(sandbox=value) == (INVALID, text)


@pytest.mark.parametrize("value", [[], 3, True])
def test_other_types(place, value):
    assert place.error(sandbox=value)[0] == INVALID


@pytest.mark.parametrize("change", [
    {"fooBar": 1}, {"windowsSandboxPrivateDesktop": "x"},
    {"windowsSandboxProxySettingsMode": "preserve"},
    {"windowsSandboxLevel": "restricted-token"}, {"windowsSandboxLevel": "elevated"},
    {"windowsSandboxLevel": ...}, {"policyContext": {}}, {"policyContext": None},
    {"policyContext": {"foo": 3}}, {"userHomeDir": "file:///home/u"}, {"userHomeDir": None},
    {"temporaryDirectories": []}, {"temporaryDirectories": ["file:///tmp"]}, {"cwd": None},
    {"cwd": "file:///no/such/directory"}, {"cwd": ...}, {"workspaceRoots": []},
    {"sandboxOverride": "noOverride"}, {"useLegacyLandlock": False},
    entries({**READ_ROOT, "foo": 1}), entries({**READ_ROOT, "missing_path_behavior": None}),
    entries({**READ_ROOT, "missingPathBehavior": "bogus"}),
    entries(READ_ROOT, glob_scan_max_depth=None), entries(READ_ROOT, glob_scan_max_depth=3),
    entries(READ_ROOT, {"path": special("unknown", path=":future"), "access": "write"}),
    {"permissions": {**managed(entries=[READ_ROOT]), "extra": 1}},
], ids=str)
def test_accepted(place, change):
    assert place.tries(["touch x"], R, **change) == [READ_ONLY]


@pytest.mark.parametrize("permissions", [
    {"type": "disabled"}, {"type": "disabled", "network": "restricted"},
    {"type": "external", "network": "enabled"},
    {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "enabled"},
    {"type": "managed", "network": "enabled",
     "file_system": {"type": "restricted", "entries": [{"path": ROOT, "access": "write"}]}},
], ids=str)
def test_nothing_confined(place, permissions):
    got = place.tries(["touch x", "touch ../x", "grep -c 'NoNewPrivs:.0' /proc/self/status",
                       "grep -c 'Seccomp:.0' /proc/self/status"],
                      sandbox={"permissions": permissions, "windowsSandboxLevel": "disabled"})
    assert got == ["ok", "ok", "1", "1"]


@pytest.mark.parametrize("permissions", [
    {"type": "external", "network": "restricted"},
    {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "restricted"},
    {"type": "managed", "network": "restricted",
     "file_system": {"type": "restricted", "entries": [{"path": ROOT, "access": "write"}]}},
], ids=str)
def test_only_the_network_confined(place, permissions):
    connect = "/usr/bin/python3 -c 'import socket; socket.socket()'"
    got = place.tries(["touch x", "touch ../x", "mkdir .git",
                       "grep -c 'NoNewPrivs:.1' /proc/self/status",
                       "grep -c 'Seccomp:.2' /proc/self/status", connect],
                      sandbox={"permissions": permissions, "windowsSandboxLevel": "disabled"})
    assert got[:5] == ["ok", "ok", "ok", "1", "1"] and "Operation not permitted" in got[5]


# URIs of entries, roots and directories.

@pytest.mark.parametrize("form", ["file://{}", "file://{}/", "file://localhost{}", "file:{}",
                                  "file://{}/.", "file:///tmp/..{}", "{}", "{}/"])
@pytest.mark.parametrize("where", ["entry", "root", "cwd"])
def test_forms_of_paths(place, form, where):
    path = place.mkdir("ws/sub dir")
    quoted = str(path) if form.startswith("{") else uri(path).removeprefix("file://")
    value = form.format(quoted)
    if where == "entry":
        entry = {"path": {"type": "path", "path": value}, "access": "write"}
        assert place.tries(["touch 'sub dir/x'", "touch x"], R, entry) == ["ok", READ_ONLY]
    elif where == "root":
        assert place.tries(["touch 'sub dir/x'", "touch x"], R, PR, workspaceRoots=[value]) == [
            "ok", READ_ONLY]
    else:
        assert place.tries(["touch 'sub dir/x'"], R, cwd=value) == [READ_ONLY]
        assert place.tries(["echo fine"], R, policyContext={"cwd": value}) == ["fine"]


@pytest.mark.parametrize("name", ["ünï", "a+b#c", "%41", "a;b", " lead", "tab\there"])
def test_odd_names(place, name):
    place.mkdir(f"ws/{name}")
    assert place.tries([f"touch '{name}/x'", "touch x"], R, f"w ws/{name}") == ["ok", READ_ONLY]


def test_name_that_is_not_utf8(place):
    name = os.fsencode(place.ws) + b"/\xff"
    os.mkdir(name)
    os.chown(name, place.uid, place.uid)
    entry = {"path": {"type": "path", "path": uri(place.ws) + "/%FF"}, "access": "write"}
    assert place.tries(["cd ?; touch x", "touch x"], R, entry) == ["ok", READ_ONLY]


def test_encoded_slash_is_answered(place):
    """One name with a slash in it cannot be: an error or nothing granted, but an answer."""
    place.mkdir("ws/x/y")
    entry = {"path": {"type": "path", "path": uri(place.ws) + "/x%2Fy"}, "access": "write"}
    params = place.params("touch z", [R, entry])
    answer = place.client.answer(place.client.send("process/start", params))
    assert "result" in answer or answer["error"]["code"] == INVALID
    if "result" in answer:
        place.client.wait_closed(place.client.processes[params["processId"]])
    assert not (place.ws / "z").exists()
    place.client.sync()


def test_dots_are_folded(place):
    place.mkdir("one")
    entry = {"path": {"type": "path", "path": uri(place.ws) + "/a/../../one"}, "access": "write"}
    assert place.tries(["touch ../one/x", "touch x"], R, entry) == ["ok", READ_ONLY]


def test_empty_profile_shows_nothing(place):
    assert place.error(command=["/bin/true"], at="/") == (-32603, f"{MISSING} (os error 2)")


def test_empty_argv(place):
    assert place.error(R, command=[]) == (INVALID, "argv must not be empty")


# Older shapes.

def april(place, **profile):
    return {"permissions": profile, "cwd": str(place.ws), "windowsSandboxLevel": "disabled",
            "useLegacyLandlock": False}


def test_april_read_and_write_lists(place):
    place.mkdir("w")
    sandbox = april(place, network={"enabled": True},
                    file_system={"read": ["/"], "write": [place.path("w")]})
    assert place.tries(["touch x", "touch ../w/x", "touch ../w/.git/x"], sandbox=sandbox) == [
        READ_ONLY, "ok", READ_ONLY]


def test_april_entries(place):
    sandbox = april(place, file_system={"entries": [
        {"path": ROOT, "access": "read"},
        {"path": special("current_working_directory"), "access": "write"},
        {"path": {"type": "path", "path": place.path("secret")}, "access": "none"}]})
    place.put("secret")
    got = place.tries(["touch x", "touch ../x", "cat ../secret",
                       "/usr/bin/python3 -c 'import socket; socket.socket()'"], sandbox=sandbox)
    assert got[:3] == ["ok", READ_ONLY, "Permission denied"]
    assert "Operation not permitted" in got[3]


def legacy(place, **policy):
    return {"sandboxPolicy": policy, "sandboxPolicyCwd": str(place.ws),
            "windowsSandboxLevel": "disabled", "windowsSandboxPrivateDesktop": False,
            "useLegacyLandlock": False, "fileSystemSandboxPolicy": None,
            "additionalPermissions": None}


def test_policy_read_only(place):
    sandbox = legacy(place, type="read-only")
    assert place.tries(["touch x", "ls -d /usr"], sandbox=sandbox) == [READ_ONLY, "/usr"]


def test_policy_workspace_write(place):
    place.mkdir("more")
    sandbox = legacy(place, type="workspace-write", writable_roots=[place.path("more")],
                     network_access=False, exclude_tmpdir_env_var=False, exclude_slash_tmp=True)
    got = place.tries(["touch x", "touch ../more/x", "touch ../x", "touch .git/x",
                       f"touch {place.base}/x"], sandbox=sandbox)
    assert got == ["ok", "ok", READ_ONLY, READ_ONLY, READ_ONLY]


def test_policy_full_access(place):
    sandbox = legacy(place, type="danger-full-access")
    assert place.tries(["touch ../x"], sandbox=sandbox) == ["ok"]


def test_policy_external(place):
    sandbox = legacy(place, type="external-sandbox", network_access="restricted")
    got = place.tries(["touch ../x", "/usr/bin/python3 -c 'import socket; socket.socket()'"],
                      sandbox=sandbox)
    assert got[0] == "ok" and "Operation not permitted" in got[1]

"""The sandbox object of process/start and of a file call: every member, right and wrong."""

from harness.case import case
from harness.peer import ABSENT
from harness.sandbox import DISABLED, WORK, Place, context, managed, special, unrestricted

ROOT = special("root")
READ_ROOT = {"path": ROOT, "access": "read"}


def read_and(*entries, **more):
    return managed("r :root", *entries, **more)


def missing(**more):
    return {"path": {"type": "path", "path": "file://@/ws/nope"}, "access": "read", **more}


# What is put into a good object; ABSENT takes a member out.
CHANGES = [
    ("empty obj",
     {"permissions": ABSENT, "cwd": ABSENT, "workspaceRoots": ABSENT,
      "windowsSandboxLevel": ABSENT}),
    ("no permissions", {"permissions": ABSENT}),
    ("no windowsSandboxLevel", {"windowsSandboxLevel": ABSENT}),
    ("only permissions", {"cwd": ABSENT, "workspaceRoots": ABSENT, "windowsSandboxLevel": ABSENT}),
    ("wsl restricted-token", {"windowsSandboxLevel": "restricted-token"}),
    ("wsl elevated", {"windowsSandboxLevel": "elevated"}),
    ("wsl mxc", {"windowsSandboxLevel": "mxc"}),
    ("wsl bogus", {"windowsSandboxLevel": "bogus"}),
    ("wsl null", {"windowsSandboxLevel": None}),
    ("unknown extra field", {"fooBar": 1}),
    ("windowsSandboxPrivateDesktop bool", {"windowsSandboxPrivateDesktop": True}),
    ("windowsSandboxPrivateDesktop str", {"windowsSandboxPrivateDesktop": "x"}),
    ("windowsSandboxProxySettingsMode preserve", {"windowsSandboxProxySettingsMode": "preserve"}),
    ("windowsSandboxProxySettingsMode bogus", {"windowsSandboxProxySettingsMode": "bogus"}),
    ("useLegacyLandlock str", {"useLegacyLandlock": "x"}),
    ("useLegacyLandlock null", {"useLegacyLandlock": None}),
    ("sandboxOverride str", {"sandboxOverride": "bogus"}),
    ("sandboxOverride obj", {"sandboxOverride": {}}),
    ("sandboxOverride null", {"sandboxOverride": None}),
    ("sandboxOverride int", {"sandboxOverride": 3}),
    ("policyContext str", {"policyContext": "bogus"}),
    ("policyContext obj", {"policyContext": {}}),
    ("policyContext int", {"policyContext": 3}),
    ("policyContext null", {"policyContext": None}),
    ("userHomeDir uri", {"userHomeDir": "file:///home/u"}),
    ("userHomeDir native", {"userHomeDir": "/home/u"}),
    ("userHomeDir int", {"userHomeDir": 3}),
    ("temporaryDirectories []", {"temporaryDirectories": []}),
    ("temporaryDirectories uri", {"temporaryDirectories": ["file:///tmp"]}),
    ("temporaryDirectories native", {"temporaryDirectories": ["/tmp"]}),
    ("temporaryDirectories int", {"temporaryDirectories": 3}),
    ("cwd native", {"cwd": "/tmp"}),
    ("cwd null", {"cwd": None}),
    ("cwd relative", {"cwd": "tmp"}),
    ("cwd http", {"cwd": "http://x/"}),
    ("cwd host", {"cwd": "file://server/share"}),
    ("cwd int", {"cwd": 3}),
    ("cwd missing dir", {"cwd": "file://@/ws/nope"}),
    ("workspaceRoots null", {"workspaceRoots": None}),
    ("workspaceRoots native", {"workspaceRoots": ["/tmp"]}),
    ("workspaceRoots host", {"workspaceRoots": ["file://server/share"]}),
    ("workspaceRoots str", {"workspaceRoots": "x"}),
    ("perm bogus type", {"permissions": {"type": "bogus"}}),
    ("perm no type", {"permissions": {"network": "restricted"}}),
    ("perm str", {"permissions": "read-only"}),
    ("perm null", {"permissions": None}),
    ("managed only", {"permissions": {"type": "managed"}}),
    ("managed no network",
     {"permissions": {"type": "managed", "file_system": {"type": "unrestricted"}}}),
    ("managed no fs", {"permissions": {"type": "managed", "network": "restricted"}}),
    ("managed net bogus", {"permissions": unrestricted("bogus")}),
    ("managed net bool", {"permissions": unrestricted(True)}),
    ("managed net obj", {"permissions": unrestricted({"enabled": True})}),
    ("managed camel fileSystem",
     {"permissions": {"type": "managed", "fileSystem": {"type": "unrestricted"},
      "network": "enabled"}}),
    ("managed extra",
     {"permissions": {"type": "managed", "file_system": {"type": "restricted",
      "entries": [READ_ROOT]}, "network": "restricted", "extra": 1}}),
    ("fs bogus",
     {"permissions": {"type": "managed", "file_system": {"type": "bogus"},
      "network": "restricted"}}),
    ("fs restricted no entries",
     {"permissions": {"type": "managed", "file_system": {"type": "restricted"},
      "network": "restricted"}}),
    ("fs entries null",
     {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": None},
      "network": "restricted"}}),
    ("fs depth 0", {"permissions": read_and(glob_scan_max_depth=0)}),
    ("fs depth -1", {"permissions": read_and(glob_scan_max_depth=-1)}),
    ("fs depth str", {"permissions": read_and(glob_scan_max_depth="x")}),
    ("fs depth 3", {"permissions": read_and(glob_scan_max_depth=3)}),
    ("fs depth null", {"permissions": read_and(glob_scan_max_depth=None)}),
    ("external no net", {"permissions": {"type": "external"}}),
    ("disabled extra", {"permissions": {"type": "disabled", "network": "restricted"}}),
    ("legacy empty obj", {"permissions": {}}),
    ("legacy perm rw",
     {"permissions": {"network": {"enabled": True}, "file_system": {"read": ["/"],
      "write": ["@/ws"]}}}),
    ("legacy perm entries",
     {"permissions": {"network": {"enabled": True}, "file_system": {"entries": [READ_ROOT]}}}),
    ("legacy SandboxPolicy read-only", {"permissions": {"type": "read-only"}}),
    ("legacy SandboxPolicy danger", {"permissions": {"type": "danger-full-access"}}),
    ("legacy SandboxPolicy ww",
     {"permissions": {"type": "workspace-write", "writable_roots": [], "network_access": False}}),
    ("field sandboxPolicy",
     {"permissions": ABSENT, "cwd": ABSENT, "workspaceRoots": ABSENT,
      "sandboxPolicy": {"type": "read-only"}, "sandboxPolicyCwd": "@/ws",
      "windowsSandboxPrivateDesktop": False, "useLegacyLandlock": False,
      "fileSystemSandboxPolicy": None, "additionalPermissions": None}),
    ("entry no path", {"permissions": managed({"access": "read"})}),
    ("entry no access", {"permissions": managed({"path": ROOT})}),
    ("access none", {"permissions": read_and("n @/ws/secret")}),
    ("access deny", {"permissions": read_and("d @/ws/secret")}),
    ("access bogus", {"permissions": managed({"path": ROOT, "access": "bogus"})}),
    ("access READ", {"permissions": managed({"path": ROOT, "access": "READ"})}),
    ("mpb skip", {"permissions": read_and(missing(missing_path_behavior="skip"))}),
    ("mpb bogus", {"permissions": read_and(missing(missing_path_behavior="bogus"))}),
    ("mpb null", {"permissions": read_and(missing(missing_path_behavior=None))}),
    ("mpb camel", {"permissions": read_and(missing(missingPathBehavior="bogus"))}),
    ("entry extra", {"permissions": managed({**READ_ROOT, "foo": 1})}),
    ("path type bogus", {"permissions": managed({"path": {"type": "bogus"}, "access": "read"})}),
    ("path str", {"permissions": managed({"path": "/tmp", "access": "read"})}),
    ("path native", {"permissions": managed("r /tmp")}),
    ("path relative", {"permissions": managed("r tmp")}),
    ("path host uri", {"permissions": managed("r file://server/share")}),
    ("path http", {"permissions": managed("r http://x/")}),
    ("path windows", {"permissions": managed("r file:///C:/Windows")}),
    ("glob read", {"permissions": read_and("r glob:@/ws/*.txt")}),
    ("glob write", {"permissions": read_and("w glob:@/ws/*.txt")}),
    ("glob deny", {"permissions": read_and("d glob:@/ws/*.txt")}),
    ("glob deny rel", {"permissions": read_and("d glob:*.txt")}),
    ("glob root", {"permissions": read_and("d glob:/*.txt")}),
    ("glob **", {"permissions": read_and("d glob:/**/*.txt")}),
    ("glob no meta", {"permissions": read_and("d glob:@/ws/f.txt")}),
    ("glob missing pattern",
     {"permissions": managed({"path": {"type": "glob_pattern"}, "access": "deny"})}),
    ("glob bad", {"permissions": read_and("d glob:@/ws/[")}),
    ("glob bad2", {"permissions": read_and("d glob:@/ws/{a")}),
    ("special str",
     {"permissions": managed({"path": {"type": "special", "value": "root"}, "access": "read"})}),
    ("special :root str",
     {"permissions": managed({"path": {"type": "special", "value": ":root"}, "access": "read"})}),
    ("special bogus", {"permissions": managed("r :bogus")}),
    ("special cwd", {"permissions": managed("r :cwd")}),
    ("special current_working_directory",
     {"permissions": read_and("w :current_working_directory")}),
    ("special project_roots", {"permissions": read_and("w :project_roots")}),
    ("special workspace_roots", {"permissions": read_and("w :workspace_roots")}),
    ("special project_roots sub", {"permissions": read_and("w :project_roots/sub")}),
    ("special project_roots sub abs", {"permissions": read_and("w :project_roots//etc")}),
    ("special project_roots sub ..", {"permissions": read_and("w :project_roots/../x")}),
    ("special tmpdir", {"permissions": read_and("w :tmpdir")}),
    ("special slash_tmp", {"permissions": read_and("w :slash_tmp")}),
    ("special unknown",
     {"permissions": read_and({"path": {"type": "special", "value": {"kind": "unknown",
      "path": ":future"}}, "access": "write"})}),
    ("special unknown nopath", {"permissions": read_and("w :unknown")}),
]
WHOLE = {"none": ABSENT, "null": None, "string": "x", "array": []}
OVERRIDES = ["noOverride", "escalatedSandboxWithRestrictions", "bypassSandboxFirstAttempt"]


async def both(place, label, sandbox):
    """A start and a file call with the object."""
    place.t.see(f"{label}: start", await place.run("echo ok", sandbox))
    more = {} if sandbox is ABSENT else {"sandbox": sandbox}
    place.t.see(f"{label}: read", await place.call("readFile", path="file://@/ws/f.txt", **more))


def add(group, rows):
    @case(f"members: {group}")
    async def members(t):
        place = await Place.open(t)
        place.make("ws/f.txt", "ws/secret/")
        for name, change in rows:
            await both(place, name, context(["r :root"], **change))


_groups = {}
for _name, _change in CHANGES:
    _groups.setdefault(_name.partition(" ")[0], []).append((_name, _change))
for _group, _rows in _groups.items():
    add(_group, _rows)


@case("whole object")
async def whole(t):
    place = await Place.open(t)
    place.make("ws/f.txt")
    for name, sandbox in WHOLE.items():
        await both(place, name, sandbox)


@case("array of members")
async def array(t):
    """The reference takes one, in the order of the declaration."""
    place = await Place.open(t)
    place.make("ws/f.txt")
    made = [managed("r :root"), "noOverride", None, None, [], None, None, "disabled"]
    for n in range(1, len(made) + 1):
        t.see(f"{n} members", await place.run("echo ok", made[:n]))
        t.see(f"{n} members, number", await place.run("echo ok", [*made[:n], 12345]))
        t.see(f"{n} members, object", await place.run("echo ok", [*made[:n], {}]))


@case("policy context")
async def policy_context(t):
    place = await Place.open(t)
    place.make("ws/f.txt")
    for value in ([], [1], [None, 1], [None, None, 1], {"cwd": 3}, {"workspaceRoots": 3},
                  {"userHomeDir": 3}, {"temporaryDirectories": 3}, {"sandboxPolicyCwd": 3},
                  {"workingDirectory": 3}, {"homeDir": 3}, {"foo": 3}):
        await both(place, str(value), context(["r :root"], policyContext=value))


@case("override")
async def override(t):
    """It changes nothing on Linux."""
    place = await Place.open(t)
    place.make("ws/f.txt", "ws/secret/")
    devices = "ls /dev | tr '\\n' ' '"
    for value in OVERRIDES:
        for name, profile in (("read", ["r :root"]), ("work", WORK), ("disabled", DISABLED)):
            t.see(f"{value}, {name}", await place.run(
                "echo ok", context(profile, sandboxOverride=value), alone=profile is WORK))
        for name, profile in (
                ("deny", managed("w :root", "d @/ws/secret")),
                ("deny, network", managed("w :root", "d @/ws/secret", network="enabled")),
                ("read, network", managed("w :root", "r @/ws/secret", network="enabled"))):
            t.see(f"{value}, write root, {name}", await place.run(
                devices, context(profile, sandboxOverride=value), alone=True))

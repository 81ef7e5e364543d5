"""The sandbox object of the file methods: its shape, and the profiles that need no sandbox."""

from harness.case import case
from harness.fscase import WALK, Files
from harness.peer import ABSENT
from harness.values import WRONG, ask, label

DISABLED = {"type": "disabled"}
ROOT = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}


def context(permissions, **more):
    return {"permissions": permissions, "windowsSandboxLevel": "disabled", **more}


def managed(*entries, **more):
    return {"type": "managed", "network": "restricted",
            "file_system": {"type": "restricted", "entries": list(entries), **more}}


def special(kind, access, **more):
    return {"path": {"type": "special", "value": {"kind": kind, **more}}, "access": access}


DIRECT = {
    "disabled": DISABLED,
    "external, network restricted": {"type": "external", "network": "restricted"},
    "external, network enabled": {"type": "external", "network": "enabled"},
    "unrestricted": {"type": "managed", "network": "restricted",
                     "file_system": {"type": "unrestricted"}},
    "root may be written": managed(special("root", "write")),
    "root may be written, minimal": managed(special("root", "write"), special("minimal", "read")),
    "root may be written, shadowed": managed(special("root", "write"), special("root", "read")),
}
READ_DIRECT = {
    "root may be read": managed(ROOT),
    "root may be read, some written": managed(ROOT, special("slash_tmp", "write")),
    "root may be written, some read": managed(special("root", "write"),
                                              special("slash_tmp", "read")),
}
RESTRICTED = {
    "nothing": managed(), "minimal": managed(special("minimal", "read")),
    "root as a path": managed({"path": {"type": "path", "path": "file:///"}, "access": "read"}),
    "root may be read, some denied": managed(ROOT, {"path": {"type": "path", "path": "file:///mnt"},
                                                    "access": "deny"}),
}
READS = [("readFile", "f", {}), ("readFile", "lnk", {"followSymlinks": False}),
         ("getMetadata", "d", {}), ("canonicalize", "lnk", {}), ("readDirectory", "full", {}),
         ("walk", "d", {"options": WALK}), ("open", "f", {"handleId": "r"}),
         ("readFile", "nope", {})]
WRITES = [("writeFile", "f", {"dataBase64": "eA=="}), ("createDirectory", "new", {}),
          ("remove", "full", {}), ("open", "new", {"handleId": "w", "mode": "replace"})]


def add_profile(name, permissions, calls, prefix):
    @case(f"{prefix}: {name}")
    async def profile(t):
        files = await Files.open(t)
        for method, path, params in calls:
            await files.effect(f"{method} {path}", method, path, sandbox=context(permissions),
                               **params)
        if calls is not READS:
            await files.effect("copy", "copy", sourcePath=files.uri("f"), recursive=False,
                               destinationPath=files.uri("new"), sandbox=context(permissions))
            await files.effect("bad base64", "writeFile", "f", dataBase64="!",
                               sandbox=context(permissions))


for _name, _permissions in DIRECT.items():
    add_profile(_name, _permissions, READS + WRITES, "direct")
for _name, _permissions in READ_DIRECT.items():
    add_profile(_name, _permissions, READS, "reads are direct")


def add_restricted(name, permissions):
    @case(f"restricted: {name}")
    async def restricted(t):
        """Whatever the answer is, nothing may happen outside of a sandbox."""
        files = await Files.open(t)
        for method, path, params in READS[:2] + WRITES[:2]:
            await files.effect(f"{method} {path}", method, path, sandbox=context(permissions),
                               **params)


for _name, _permissions in RESTRICTED.items():
    add_restricted(_name, _permissions)


async def shapes(t, values, wrap):
    files = await Files.open(t)
    for n, value in enumerate(values):
        params = {"path": files.uri("f"), "sandbox": wrap(value)}
        t.see(f"{n} {label(value)}", await ask(files.c, "fs/readFile", params))


def add_shape(name, values, wrap):
    @case(f"shape: {name}")
    async def shape(t):
        await shapes(t, values, wrap)


URI = ["file:///x", "/x", "x", "http://x", "file:///x?", "file:///a%00b", "file://h/x",
       "file:///C:/x"]
FIELDS = {
    "windowsSandboxLevel": ["disabled", "restricted-token", "elevated", "mxc", "Disabled",
                            {"disabled": None}, {"mxc": None}],
    "sandboxOverride": ["noOverride", "escalatedSandboxWithRestrictions",
                        "bypassSandboxFirstAttempt",
                        {"noOverride": None}],
    "windowsSandboxProxySettingsMode": ["reconcile", "preserve", {"preserve": None}],
    "useLegacyLandlock": [], "windowsSandboxPrivateDesktop": [], "unknown": [],
    "cwd": URI, "userHomeDir": URI,
    "workspaceRoots": [["file:///x"], *([u] for u in URI), [None], [5], ["file:///x", "x"]],
    "temporaryDirectories": [["file:///x"], *([u] for u in URI), [None], [5]],
    "policyContext": [{"cwd": "file:///x"}, {"cwd": "x"}, {"cwd": None}, {"cwd": 5},
                      {"workspaceRoots": []}, {"workspaceRoots": None}, {"workspaceRoots": ["x"]},
                      {"workspaceRoots": 5}, {"userHomeDir": 5}],
    "permissions": [{"type": "x"}, {"type": 5}, {"type": None}, {"type": "Disabled"},
                    {"type": "disabled", "x": 1}, {"type": "external"}, {"type": "managed"},
                    {"type": "external", "network": "x"}, {"type": "external", "network": None},
                    {"type": "external", "network": True}, {"type": "external", "network": {}},
                    {"type": "external", "network": {"enabled": None}},
                    {"fileSystem": {}}, {"type": "managed", "network": "restricted"},
                    {"type": "managed", "file_system": {"type": "unrestricted"}}],
}
for _field, _values in FIELDS.items():
    add_shape(_field, [ABSENT] + WRONG + _values,
              lambda v, f=_field: {**context(DISABLED), f: v})
add_shape("file_system", WRONG + [{"type": t} for t in ("x", 5, None, "unrestricted",
                                                        "restricted")],
          lambda v: context({"type": "managed", "network": "restricted", "file_system": v}))
# Full read access beside the value, so that no sandbox is needed where it is right.
add_shape("entries", [v for v in WRONG if v != []] + [[5], [[]], [None]],
          lambda v: context({"type": "managed", "network": "restricted",
                             "file_system": {"type": "restricted", "entries": v}}))
add_shape("glob_scan_max_depth", [ABSENT, 0, -1, 1, 5, "x", True, {}, 1.5],
          lambda v: context(managed(ROOT, glob_scan_max_depth=v)))
add_shape("entry", WRONG[:10] + [
    {"path": 5, "access": "read"}, {"path": "x", "access": "read"}, {"path": {}, "access": "read"},
    {"access": "read"}, {"path": ROOT["path"]}, {**ROOT, "access": "x"}, {**ROOT, "access": None},
    {**ROOT, "access": 5}, {**ROOT, "access": "write"}, {**ROOT, "x": 5}, {**ROOT, "access": {}},
    {**ROOT, "missing_path_behavior": "x"}, {**ROOT, "missing_path_behavior": "skip"},
    {**ROOT, "missing_path_behavior": None}, {**ROOT, "missing_path_behavior": 5}],
    lambda v: context(managed(ROOT, v)))
add_shape("entry path", WRONG[:10] + [
    {"type": "x"}, {"type": 5}, {"type": "path"}, *({"type": "path",
                                                     "path": v} for v in WRONG[:10]),
    *({"type": "path", "path": u} for u in URI[:6]), {"type": "glob_pattern"},
    *({"type": "glob_pattern", "pattern": v} for v in WRONG[:7]), {"type": "special"},
    *({"type": "special", "value": v} for v in WRONG),
    *({"type": "special", "value": {"kind": k}} for k in (
        "x", 5, "root", "minimal", "tmpdir", "slash_tmp", "unknown")),
    {"type": "special", "value": {"kind": "unknown", "path": ":x"}},
    {"type": "special", "value": {"kind": "unknown", "path": 5}},
    {"type": "special", "value": {"kind": "project_roots", "subpath": 5}}],
    lambda v: context(managed(ROOT, {"path": v, "access": "read"})))


@case("shape: older ones")
async def older(t):
    await shapes(t, [{"type": "readOnly"}, {"sandboxPolicy": {"type": "read-only"}},
                     {"mode": "read-only"}], lambda v: v)


@case("profiles that depend on the working directory")
async def dynamic(t):
    """Found when the params are decoded."""
    files = await Files.open(t)
    for kind in ("project_roots", "current_working_directory"):
        for more in ({}, {"policyContext": {}}):
            t.see(f"{kind} {more}", await files.call(
                "readFile", "f", sandbox=context(managed(ROOT, special(kind, "write")), **more)))
        for more in ({"cwd": "file:///mnt"}, {"policyContext": {"cwd": "file:///mnt"}}):
            t.see(f"{kind} {more}", await files.call(
                "readFile", "f", sandbox=context(managed(ROOT, special(kind, "write")), **more)))
    glob = {"path": {"type": "glob_pattern", "pattern": "**/*.env"}, "access": "deny"}
    t.see("relative glob", await files.call("readFile", "f", sandbox=context(managed(ROOT, glob))))


@case("order of checks")
async def order(t):
    files = await Files.open(t)
    for name, method, params in (
            ("bad sandbox, bad path", "readFile", {"path": "x", "sandbox": {}}),
            ("bad path, bad sandbox", "readFile", {"sandbox": {}, "path": "x"}),
            ("foreign path", "readFile", {"path": "file:///C:/x", "sandbox": context(DISABLED)}),
            ("long handle", "open", {"handleId": "x" * 33, "path": files.uri("f"),
                                     "sandbox": context(managed())}),
            ("limits of walk", "walk", {"path": files.uri("d"),
                                        "options": {**WALK, "maxEntries": 0},
                                        "sandbox": context(DISABLED)})):
        t.see(name, await files.c.call(f"fs/{method}", params))
    before = await t.open()
    t.see("before initialize", await before.call("fs/readFile", {"path": files.uri("f"),
                                                                 "sandbox": {}}))

"""The sandboxes that commands and file calls are measured in, as the driver takes them."""

import json
import pathlib


def uri(path):
    return pathlib.Path(path).as_uri()


def special(access, kind, **more):
    """An entry for what a kind of path stands for."""
    return {"path": {"type": "special", "value": {"kind": kind, **more}}, "access": access}


def path(access, name):
    return {"path": {"type": "path", "path": uri(name)}, "access": access}


def sandbox(directory, entries):
    files = {"type": "restricted", "entries": entries}
    return json.dumps({
        "permissions": {"type": "managed", "file_system": files, "network": "restricted"},
        "cwd": uri(directory), "workspaceRoots": [uri(directory)],
        "windowsSandboxLevel": "disabled", "useLegacyLandlock": False}, separators=(",", ":"))


def read_only(directory):
    return sandbox(directory, [special("read", "root")])


def workspace_write(directory):
    """As clients build it."""
    kept = [special("read", "project_roots", subpath=name) for name in (".git", ".agents", ".codex")]
    for entry in kept:
        entry["missing_path_behavior"] = "skip"
    return sandbox(directory, [special("read", "root"), special("write", "project_roots"),
                               special("write", "slash_tmp"), special("write", "tmpdir")] + kept)


def restrictive(directory):
    """What programs need, a workspace, and in it something that may not be read."""
    return sandbox(directory, [special("read", "minimal"), special("write", "project_roots"),
                               path("deny", directory + "/secret")])

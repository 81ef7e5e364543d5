"""doc/protocol.schema.json and the server: every method and notification, and what both refuse."""

import copy
import json
import re

import pytest

from harness.files import uri
from harness.fleet import Fleet
from harness.origin import Origin
from harness.outside import PRELUDE, proxy
from harness.rpc import PATH, b64
from harness.schema import Sampler, Schema
from harness.starting import Undecided
from harness.web import available, stream

SCHEMA = Schema()
ENTRIES = [
    {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
    {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": "x"}},
     "access": "write", "missing_path_behavior": "skip"},
    {"path": {"type": "special", "value": {"kind": "unknown", "path": "x", "subpath": None}},
     "access": "none"},
    {"path": {"type": "glob_pattern", "pattern": "/tmp/*.never"}, "access": "deny"},
    {"path": {"type": "path", "path": "file:///tmp"}, "access": "write"},
]
PROFILE = {"type": "managed", "network": "restricted",
           "file_system": {"type": "restricted", "entries": ENTRIES, "glob_scan_max_depth": 2}}
SANDBOX = {
    "permissions": PROFILE, "cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"],
    "policyContext": {"cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"]},
    "windowsSandboxLevel": "disabled", "sandboxOverride": "noOverride",
    "userHomeDir": "file:///root", "temporaryDirectories": ["file:///tmp"],
    "windowsSandboxProxySettingsMode": "reconcile", "useLegacyLandlock": False}
OLDER = {"sandboxPolicy": {"type": "workspace-write", "writable_roots": ["/tmp"],
                           "read_only_access": {"type": "restricted", "readable_roots": ["/usr"],
                                                "include_platform_defaults": True},
                           "network_access": False, "exclude_tmpdir_env_var": True,
                           "exclude_slash_tmp": False},
         "sandboxPolicyCwd": "/tmp", "useLegacyLandlock": False,
         "fileSystemSandboxPolicy": {"kind": "restricted", "entries": ENTRIES[:1],
                                     "glob_scan_max_depth": 1},
         "additionalPermissions": {"network": {"enabled": True},
                                   "file_system": {"read": ["/usr"], "write": ["/tmp"],
                                                   "entries": None, "glob_scan_max_depth": None}}}
UNTAGGED = {"permissions": OLDER["additionalPermissions"], "cwd": "/tmp"}


class Witness(Sampler):
    """Judges everything and keeps it: the last result of each method, each notification."""

    def __init__(self):
        super().__init__(every=True)
        self.results, self.notifications = {}, {}

    def answered(self, message, size, call):
        super().answered(message, size, call)
        if call and "result" in message:
            self.results[call[0]] = message["result"]

    def notified(self, message, size):
        super().notified(message, size)
        self.notifications[message["method"]] = message["params"]


class Play:
    """Calls every method and provokes every notification."""

    def __init__(self, server, place):
        self.server, self.place = server, place
        self.witness = Witness()
        self.client = server.connect()
        self.client.sampler = self.witness
        self.client.initialize(notifications=["process/started", "process/failed"])

    def processes(self):
        client = self.client
        client.sync()
        client.call("environment/info")
        client.error("process/start", client.start_params(["/nonexistent"]))
        shell = client.start("stty size; read x; kill -9 $$", tty=True,
                             size={"rows": 5, "cols": 6}, timeoutMs=3_600_000)
        client.ask("resize", shell, size={"rows": 7, "cols": 8})
        client.write(shell, "x\n", writeId="one")
        client.ask("wait", shell)
        client.wait_closed(shell)
        talker = client.start("cat; sleep 1000", pipeStdin=True)
        client.write(talker, "text")
        client.wait_output(talker, "text")
        client.call("process/list")
        client.ask("closeStdin", talker, writeId="two")
        client.interrupt(talker)
        client.terminate(talker, mode={"type": "graceful", "timeoutMs": 0})
        client.wait_closed(talker)
        for method in ("read", "snapshot"):
            client.ask(method, talker)
        client.ask("ack", talker, seq=1)

    def views(self, place):
        """A view that misses something, one that ends early, and one that the viewer ends."""
        client = self.client
        flood = client.start("head -c 2000000 /dev/zero", sink=lambda *_: None)
        client.wait_closed(flood)
        view = client.attach(client.session, flood)
        client.wait(lambda: view.closed and view.gaps, "the gap")
        client.call("process/detach", {"attachId": view.id})
        (place / "text").write_text("no program\n")
        (place / "text").chmod(0o755)
        undecided = Undecided(place, place / "text")
        owner = self.server.client()
        params = owner.start_params([undecided.path, "-c", "true"])
        start = owner.send("process/start", params)
        owner.call("process/list")
        view = client.attach(owner.session, params["processId"])
        undecided.decide()
        owner.answer(start)
        client.wait(lambda: view.detached, "process/detached")
        owner.close()

    def files(self):
        client, place = self.client, self.place
        (place / "d").mkdir()
        path, other = uri(place / "d" / "f"), uri(place / "d" / "g")
        client.call("fs/watch", {"watchId": "w", "path": uri(place), "recursive": True})
        client.call("fs/watchMissing", {"watchId": 1, "missing": [path]})
        client.call("fs/writeFile", {"path": path, "dataBase64": b64("text"), "atomic": True})
        client.wait(lambda: {"fs/changed", "fs/missingChanged"} <= set(self.witness.notifications),
                    "the changes")
        client.call("fs/unwatch", {"watchId": "w"})
        client.call("fs/readFile", {"path": path, "maxBytes": 100})
        client.call("fs/open", {"handleId": "h", "path": path, "mode": "replace"})
        client.call("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": b64("more")})
        client.call("fs/close", {"handleId": "h"})
        client.call("fs/open", {"handleId": "h", "path": path})
        client.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 100})
        client.call("fs/setPermissions", {"path": path, "mode": 0o600})
        client.call("fs/open", {"handleId": "u", "path": path, "mode": "update"})
        client.call("fs/setTimes", {"path": path, "modifiedAtMs": -1})
        link = uri(place / "d" / "l")
        client.call("fs/symlink", {"path": link, "targetBase64": b64(b"\xff")})
        client.call("fs/readLink", {"path": link})
        client.call("fs/getMetadata", {"path": path})
        client.call("fs/canonicalize", {"path": path})
        client.call("fs/createDirectory", {"path": uri(place / "e")})
        client.call("fs/copy", {"sourcePath": path, "destinationPath": other, "recursive": False})
        client.call("fs/rename", {"sourcePath": other, "destinationPath": uri(place / "e" / "g")})
        client.call("fs/readDirectory", {"path": uri(place)})
        client.call("fs/walk", {"path": uri(place), "options": {
            "maxDepth": 3, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": False,
            "links": True}})
        client.call("fs/remove", {"path": uri(place / "e")})

    def environment(self, place):
        self.client.call("environmentConfig/read", {
            "cwd": uri(place), "configPaths": [["mcp_servers"]], "requirementsPaths": []})

    def network(self):
        """The proxy of a process refuses a host."""
        code = PRELUDE + 'print(get("http://never.example/"))'
        process = self.client.start(["/usr/bin/python3", "-c", code],
                                    networkProxy=proxy({"example.com": "allow"}))
        self.client.wait_closed(process)
        self.client.wait(lambda: "network/policyDecision" in self.witness.notifications, "verdict")

    def capabilities(self, place):
        at = place / "root" / "s"
        (at / "agents").mkdir(parents=True)
        (at / "SKILL.md").write_text("---\nname: n\ndescription: d\n---\n")
        (at / "agents" / "openai.yaml").write_text("policy: {}\n")
        (place / "root" / ".codex-plugin").mkdir()
        (place / "root" / ".codex-plugin" / "plugin.json").write_text("{}")
        roots = [{"id": "r", "path": uri(place / "root")}, {"id": "n", "path": uri(place / "none")}]
        self.client.call("capabilityRoots/discoverV1", {"roots": roots})
        self.client.call("capabilities/discoverV2", {"cwd": uri(place)})

    def web(self):
        origin = Origin(lambda x: x.answer(body=b"text"))
        _, body = stream(self.client, origin.url)
        assert body.finish() == (b"text", None)
        origin.close()


@pytest.fixture(scope="module")
def shared(nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    yield made.start("--allow-attach", "--concurrent-requests", "4")
    made.finish()


@pytest.fixture(scope="module")
def play(shared, tmp_path_factory):
    made = Play(shared, tmp_path_factory.mktemp("play"))
    made.processes()
    made.views(tmp_path_factory.mktemp("views"))
    made.files()
    made.environment(made.place)
    made.network()
    made.capabilities(made.place)
    if available():
        made.web()
    yield made
    made.client.close()


def methods():
    """Those of the schema that this build has."""
    return set(SCHEMA.document["methods"]) - (set() if available() else {"http/request"})


def test_every_method_fits(play):
    assert set(play.witness.results) == methods()


def test_every_notification_fits(play):
    known = SCHEMA.document["notifications"]
    assert set(play.witness.notifications) == {
        name for name, parts in known.items() if parts["from"] == "server"
        and (available() or not name.startswith("http/"))}


def test_the_server_knows_every_method(client):
    for method in methods():
        assert client.answer(client.send(method, [])).get("error", {}).get("code") == -32602, method
    assert client.error("no/method")[0] == -32601


# Mutations.

# One of each type of JSON; a float and a text that is no name, no path and no Base64.
ODD = (None, True, 7, -1, 1.5, "?", [], ["?"], {}, {"odd": 1})


def places(value, path=()):
    """The way to every member and to the first element of every list."""
    keys = list(value) if isinstance(value, dict) else [0] if value else []
    for key in keys:
        yield (*path, key)
        if isinstance(value[key], (dict, list)):
            yield from places(value[key], (*path, key))


def changed(value, path, new):
    """A copy with another value at a place; without one, it lacks the member."""
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if new:
        inner[path[-1]] = new[0]
    else:
        del inner[path[-1]]
    return made


def mutations(value):
    for path in places(value):
        yield path, changed(value, path, ())
        for odd in ODD:
            yield path, changed(value, path, (odd,))


def start(**more):
    return {"processId": "new", "argv": ["/bin/true", "x"], "cwd": "file:///tmp",
            "env": {"PATH": PATH}, "tty": False, **more}


def requests(place, closed, session):
    """Valid params of every method; each row is one that the server accepts as to its shape."""
    path = {"path": uri(place / "f")}
    two = {"sourcePath": uri(place / "f"), "destinationPath": uri(place / "g")}
    return [
        ("initialize", {"clientName": "x", "resumeSessionId": None, "notifications": ["x"],
                        "outputAck": False, "sessionTtlMs": 1000, "closedRetentionMs": None}),
        ("environment/info", {}), ("environment/status", {}), ("process/list", {}),
        ("process/start", start(
            pipeStdin=False, arg0="x", timeoutMs=60_000, networkProxy=None,
            metadata={"threadId": "c0ffee00-0000-4000-8000-000000000000", "toolCallId": "x"},
            envPolicy={"inherit": "core", "ignoreDefaultExcludes": False, "exclude": ["X*"],
                       "set": {"A": "b"}, "includeOnly": ["*"]},
            shellSnapshot={"scopeId": "x", "shell": {"name": "sh", "path": "/bin/sh"}},
            managedNetwork={"loopbackPorts": [80], "allowLocalBinding": True,
                            "allowUnixSockets": ["/x"], "dangerouslyAllowAllUnixSockets": False},
            enforceManagedNetwork=False)),
        ("process/start", start(tty=True, size={"rows": 3, "cols": 4},
                                limits={"openFiles": 64, "nice": 5, "oomScoreAdj": 900,
                                        "memoryBytes": 1 << 30, "pids": None, "cpuWeight": None})),
        ("process/start", start(io={"type": "pipe", "stdin": "open"})),
        ("process/start", start(tty=True, io={"Pty": {"rows": 3, "cols": 4}})),
        ("process/start", {"direct": start(sandbox=SANDBOX)}),
        ("process/start", start(**OLDER)),
        ("process/start", start(sandbox=UNTAGGED)),
        ("process/start", start(enforceManagedNetwork=True, sandbox={"permissions": {
            "type": "external", "network": "enabled"}})),
        ("process/start", {"prepared": {
            "processId": "new", "io": {"pipe": {"stdin": "Closed"}}, "timeoutMs": 60_000,
            "limits": {"openFiles": 64}, "sandbox": None, "enforceManagedNetwork": False,
            "request": {"command": ["/bin/true"], "cwd": "/tmp", "env": {}, "arg0": "x"}}}),
        ("process/read", {"processId": closed, "afterSeq": 1, "maxBytes": 2, "waitMs": 3}),
        ("process/write", {"processId": closed, "chunk": b64("x"), "writeId": "x",
                           "closeStdin": False}),
        ("process/signal", {"processId": closed, "signal": "interrupt"}),
        ("process/terminate", {"processId": closed, "mode": {"type": "graceful", "timeoutMs": 1}}),
        ("process/terminate", {"processId": closed, "mode": {"Graceful": {"timeout_ms": 1}}}),
        ("process/closeStdin", {"processId": closed, "writeId": "y"}),
        ("process/resize", {"processId": closed, "size": {"rows": 3, "cols": 4}}),
        ("process/ack", {"processId": closed, "seq": 0, "hold": False}),
        ("process/wait", {"processId": closed, "until": "exited", "waitMs": 1}),
        ("process/snapshot", {"processId": closed, "maxBytes": 1}),
        ("process/attach", {"sessionId": session, "processId": "none", "afterSeq": 1}),
        ("process/detach", {"attachId": 999}),
        ("fs/readFile", {**path, "followSymlinks": True, "maxBytes": 9, "sandbox": SANDBOX}),
        ("fs/readFile", {**path, **OLDER}),
        ("fs/writeFile", {**path, "dataBase64": b64("text"), "followSymlinks": True,
                          "atomic": False, "sandbox": None}),
        ("fs/open", {"handleId": "h", **path, "mode": "read", "sandbox": UNTAGGED}),
        ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1}),
        ("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": b64("x")}),
        ("fs/close", {"handleId": "h"}),
        ("fs/createDirectory", {"path": uri(place / "d"), "recursive": True,
                                "followSymlinks": True}),
        ("fs/getMetadata", {**path, "followSymlinks": False}),
        ("fs/canonicalize", dict(path)),
        ("fs/readDirectory", {"path": uri(place)}),
        ("fs/walk", {"path": uri(place), "options": {
            "maxDepth": 1, "maxDirectories": 1, "maxEntries": 1, "followDirectorySymlinks": False,
            "pruneHiddenDirectories": True, "links": False}}),
        ("fs/remove", {"path": uri(place / "none"), "recursive": True, "force": True,
                       "followSymlinks": True}),
        ("fs/copy", {**two, "recursive": False}),
        ("fs/watchMissing", {"watchId": 1, "missing": [uri(place / "none")],
                             "present": uri(place / "f")}),
        ("fs/rename", {**two, "replace": False}),
        ("fs/setPermissions", {**path, "mode": 0o644, "followSymlinks": True}),
        ("fs/setTimes", {**path, "modifiedAtMs": 0, "followSymlinks": True}),
        ("fs/readLink", {"path": uri(place / "link")}),
        ("fs/symlink", {"path": uri(place / "none" / "link"), "target": "x"}),
        ("fs/watch", {"watchId": "w", "path": uri(place), "recursive": False, "sandbox": {
            "permissions": {"type": "disabled"}}}),
        ("fs/unwatch", {"watchId": "w"}),
        ("environmentConfig/read", {"cwd": uri(place), "configPaths": [["a", "b"]],
                                    "requirementsPaths": [["c"], ["d"]]}),
        ("capabilityRoots/discoverV1", {"roots": [{"id": "r", "path": uri(place), "sandbox": {
            "permissions": {"type": "disabled"}}}]}),
        ("capabilities/discoverV2", {"cwd": uri(place), "sandbox": {
            "permissions": {"type": "disabled"}}}),
        *([("http/request", {
            "method": "POST", "url": "http://127.0.0.1:1/", "requestId": "r", "timeoutMs": 100000,
            "headers": [{"name": "a", "value": "b", "valueEnvVar": "HOME"}],
            "bodyBase64": b64("text"), "redirectPolicy": "stop", "streamResponse": True})]
          if available() else []),
    ]


# Members that ask for confinement, and a name that does not.
UNKNOWN = ("unknown", "windowsSandboxAnything", "sandbox_mode", "readOnlyAccess", "network-policy",
           "filesystem_access", "managedNetwork", "useLegacyLandlock", "sandboxPolicyCwd")


# What both refuse, the server for a reason beyond the types, with another code than -32602.
BEYOND_TYPES = re.compile(
    r"missing program for|filesystem walk limits"
    r"|file (read|write) block length|fs/writeFile requires valid base64")


def verdict(client, method, params):
    """What is wrong if the server and the schema do not agree; None if they do."""
    if method == "process/start":
        params = renamed(params, client.new_name())
    message = client.answer(client.send(method, params))
    error = message.get("error")
    found = SCHEMA.request(method, params, error)
    if found is None and error and error["code"] != -32602 and SCHEMA.params(method, params):
        found = None if BEYOND_TYPES.match(error["message"]) else "the schema alone refuses it"
    return found, message


def renamed(value, name):
    """Each start has an id of its own."""
    if isinstance(value, dict):
        return {key: renamed(v, name) for key, v in value.items()}
    return name if value == "new" else value


@pytest.fixture
def rows(client, place):
    (place / "f").write_text("text")
    closed = client.run("true").name
    return requests(place, closed, client.session)


def test_rows_are_valid(client, rows):
    """The table begins with what both accept, for every method."""
    client.sampler = None
    for method, params in rows:
        assert SCHEMA.params(method, params) is None, (method, SCHEMA.params(method, params))
        error = client.answer(client.send(method, params)).get("error", {"code": 0})
        assert error["code"] != -32602 or "PTY" in error["message"], (method, error)
    assert {method for method, _ in rows} == methods()


def test_both_refuse_what_is_missing_or_of_another_type(client, rows):
    """Without each member, and with an odd value in its place, server and schema agree."""
    client.sampler = None
    faults, refused, accepted = [], 0, 0
    for method, params in rows:
        for path, mutated in mutations(params):
            found, message = verdict(client, method, mutated)
            refused += "error" in message
            accepted += "error" not in message
            if found:
                faults.append(f"{method} {path}: {found}: {json.dumps(mutated)[:300]}: {message}")
    print(f"{refused} mutated requests refused, {accepted} accepted")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])
    assert refused > accepted > 0


def test_both_treat_unknown_members_alike(client, rows):
    client.sampler = None
    faults = []
    for method, params in rows:
        for name in UNKNOWN:
            for value in (None, False, True, "x", {"x": 1}):
                if name not in params:
                    found, message = verdict(client, method, {**params, name: value})
                    if found:
                        faults.append(f"{method} {name}={value}: {found}: {message}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])


def required(schema, value, path=()):
    """Places in a valid value that the server always fills."""
    schema = resolve(schema)
    for branch in schema.get("anyOf", []):
        if isinstance(value, (dict, list)) and SCHEMA.judge(value, branch) is None:
            yield from required(branch, value, path)
    for name in schema.get("required", []):
        yield (*path, name)
    if isinstance(value, dict):
        for name, child in value.items():
            yield from required(schema.get("properties", {}).get(name, {}), child, (*path, name))
    elif isinstance(value, list) and value:
        yield from required(schema.get("items", {}), value[0], (*path, 0))


def resolve(schema):
    while "$ref" in schema:
        rest = {name: part for name, part in schema.items() if name != "$ref"}
        schema = {**SCHEMA.document["$defs"][schema["$ref"].rpartition("/")[2]], **rest}
    return schema


def sent(play):
    """What the server sent, with the part of the schema that it fits."""
    for method, result in play.witness.results.items():
        yield method, result, SCHEMA.document["methods"][method]["result"]
    for method, params in play.witness.notifications.items():
        yield method, params, SCHEMA.document["notifications"][method]["params"]


def test_mutations_of_what_the_server_sends_do_not_fit(play):
    tried = 0
    for method, value, schema in sent(play):
        wrong = [changed(value, path, ()) for path in required(schema, value)]
        wrong += [changed(value, path, ({"odd": 1},)) for path in places(value)]
        wrong += [changed(value, (*path, "surplus"), (1,)) for path in [(), *places(value)]
                  if isinstance(inside(value, path), dict)]
        for mutated in wrong:
            tried += 1
            assert SCHEMA.judge(mutated, schema), (method, mutated)
    assert tried > len(SCHEMA.document["methods"])


def inside(value, path):
    for key in path:
        value = value[key]
    return value

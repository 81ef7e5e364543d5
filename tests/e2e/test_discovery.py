"""Capability discovery: hostile trees, files that change, sandboxes, bounds."""

import os
import threading

import pytest

from harness.fleet import Fleet
from harness.sandbox import place, servers, uri, user

__all__ = ["place", "servers", "user"]

V1, V2 = "capabilityRoots/discoverV1", "capabilities/discoverV2"
SKILL = "---\nname: n\ndescription: d\n---\n"


@pytest.fixture(scope="module")
def server(nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    yield made.start()
    made.finish()


@pytest.fixture
def client(server):
    made = server.client()
    yield made
    made.close()


def put(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, bytes):
        path.write_bytes(text)
    else:
        path.write_text(text)


def discover(client, *roots, **more):
    return client.call(V1, {"roots": [{"id": str(n), "path": uri(r), **more}
                                      for n, r in enumerate(roots)]})["roots"]


def names(root):
    return [s["instructions"]["path"].rsplit("/", 2)[1] for s in root["skills"]]


def test_loops_pipes_and_devices(client, tmp_path):
    """Nothing waits for a peer, and no link leads round for ever."""
    put(tmp_path / "a" / "SKILL.md", SKILL)
    for n in range(40):
        (tmp_path / "a" / f"up{n}").symlink_to("..")
    for name in ("SKILL.md", ".codex-plugin/plugin.json", "agents/openai.yaml"):
        (tmp_path / "b" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / "b" / name)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "SKILL.md").symlink_to("/dev/zero")
    (tmp_path / "c" / ".mcp.json").symlink_to("/dev/zero")
    (tmp_path / "d").symlink_to("/proc/self/fd")
    found, = discover(client, tmp_path)
    assert names(found) == ["a"] and found["plugin"] is None


def test_declared_pipe(client, tmp_path):
    put(tmp_path / ".codex-plugin" / "plugin.json", '{"mcpServers":"./pipe","apps":"./zero"}')
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    found, = discover(client, tmp_path)
    assert found["plugin"]["mcpConfig"] is None and found["plugin"]["appsConfig"] is None


def test_deep_and_wide(client, tmp_path):
    at = tmp_path
    for n in range(300):
        at = at / "d"
    os.makedirs(at)
    for n in range(2100):
        (tmp_path / f"w{n:04}").mkdir()
    put(tmp_path / "d" / "SKILL.md", SKILL)
    found, = discover(client, tmp_path)
    assert names(found) == ["d"]
    assert found["warnings"] == [f"capability scan reached its traversal limit (root: {uri(tmp_path)})"]


def test_answer_is_bounded(server, client, tmp_path):
    """Each byte of these files becomes six in JSON: the answer has no room for them."""
    for n in range(9):
        put(tmp_path / f"{n}" / "SKILL.md", "\x01" * (1 << 20))
    small = tmp_path / "0"
    big, little = discover(client, tmp_path, small)
    assert big["error"] == "the answer has no room for the files of this capability root"
    assert big["skills"] == [] and names(little) == ["0"]
    assert client.call("environment/status") == {"status": "ready"}
    assert server.rss() < 400 << 20


def test_files_that_change(client, tmp_path):
    """A writer grows, shrinks and replaces a file while it is read, again and again."""
    path, stop = tmp_path / "s" / "SKILL.md", threading.Event()
    put(path, SKILL)

    def meddle():
        n = 0
        while not stop.is_set():
            n += 1
            put(tmp_path / "new", "x" * (n * 9973 % (3 << 20)))
            os.replace(tmp_path / "new", path)
            with open(path, "r+") as f:
                f.truncate(n % 100)
    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        for _ in range(60):
            found, = discover(client, tmp_path)
            assert found["error"] is None
            assert all(len(s["instructions"]["contents"]) <= 1 << 20 for s in found["skills"])
    finally:
        stop.set()
        thread.join()


def test_two_at_once_and_a_lost_connection(server, tmp_path):
    for n in range(300):
        put(tmp_path / f"{n:03}" / "SKILL.md", SKILL * 100)
    first, second = server.client(), server.client()
    for c in (first, second):
        for _ in range(4):
            c.send(V1, {"roots": [{"id": "r", "path": uri(tmp_path)}] * 8})
    first.close()
    assert len(names(discover(second, tmp_path)[0])) == 300
    second.close()


@pytest.fixture
def homes(tmp_path, nothing_left):  # pylint: disable=unused-argument
    made = Fleet()
    (tmp_path / "home").mkdir()
    yield made.start(env={"HOME": str(tmp_path / "home"), "CODEX_HOME": ""}), tmp_path / "home"
    made.finish()


def test_hostile_yaml(homes):
    """No text is worth more than a warning, however it grows in a parser."""
    server, home = homes
    bombs = ["a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)),
        "[" * 500_000, "{" * 100_000, "- " * 300_000, "? " * 100_000, "a: " * 100_000,
        "&a [*a, *a]\n", "!" * 500_000, "'" * 500_000 + "x", "\t" * 900_000, "%" * 100_000,
        "\n".join(f"k{n}: v" for n in range(60_000)), "a: |\n" + " x\n" * 200_000]
    for n, text in enumerate(bombs):
        put(home / ".agents/skills" / f"{n:02}" / "SKILL.md", f"---\ndescription: d\nx: \n{text}\n---\n")
        put(home / ".agents/skills" / f"m{n:02}" / "SKILL.md", SKILL)
        put(home / ".agents/skills" / f"m{n:02}" / "agents/openai.yaml", text)
    client = server.client()
    found = client.call(V2, {"cwd": "file:///"})
    assert len([s for s in found["skills"] if "/m" in s["path"]]) == len(bombs)
    assert set(found["warnings"]) <= {
        "some capability metadata could not be loaded; discovery may be incomplete"}
    assert server.rss() < 300 << 20
    client.close()


def test_remote_plugins(homes):
    server, home = homes
    cache = home / ".codex/plugins/cache/m"
    notes = {"good": '{"schema_version":1,"remote_plugin_id":" r "}', "old":
             '{"schema_version":0,"remote_plugin_id":"r"}', "blank":
             '{"schema_version":1,"remote_plugin_id":" "}', "text": "x", "long":
             '{"schema_version":1,"remote_plugin_id":"' + "x" * 1025 + '"}', "large": " " * 17000}
    for name, note in notes.items():
        put(cache / name / "1" / ".codex-plugin/plugin.json", "{}")
        put(cache / name / ".codex-remote-plugin-install.json", note)
    put(cache / "none" / "1" / ".codex-plugin/plugin.json", "{}")
    client = server.client()
    found = client.call(V2, {"cwd": "file:///"})
    assert {p["id"]: p["remotePluginId"] for p in found["plugins"]} == {
        f"{n}@m": "r" if n == "good" else None for n in [*notes, "none"]}
    assert found["warnings"] == [
        "some capability locations could not be resolved; discovery may be incomplete"]
    client.close()


def test_sandbox(place, servers):
    """A root in a sandbox: nothing outside shows, through whatever link."""
    for name in ("in/a", "in/secret", "out/b"):
        place.put(f"{name}/SKILL.md", SKILL)
    place.put("out/x.json", "secret")
    place.put("in/.codex-plugin/plugin.json", '{"mcpServers":"./link.json"}')
    place.link("in/link", "../out")
    place.link("in/link.json", "../out/x.json")
    place.mkdir("in/c")
    place.link("in/c/SKILL.md", "../../out/b/SKILL.md")
    inside, outside = discover(place.client, place.base / "in", place.base / "out",
                               sandbox=place.sandbox("r in", "d in/secret"))
    assert names(inside) == ["a"]
    assert inside["plugin"]["mcpConfig"] is None
    assert outside["skills"] == [] and outside["error"] is not None

"""What the client learns of the server's host: shell state, configuration, skills."""

from .common import check, equal, get, put, scenario, within

SKILL = "---\nname: {}\ndescription: A skill of the server's host.\n---\nDo it.\n"


@scenario(since=("0.166.0", "it has no snapshots of its server's shell"))
async def shell_snapshot(b):
    """The startup files of the login shell run once for three commands."""
    put(f"{b.server_home}/.bash_profile",
        f"echo run >> {b.outside}/runs\nexport FROM_PROFILE=yes\nhelper() {{ echo helper; }}\n")
    await b.start_server()
    async with b.app("danger-full-access", "never", features=("shell_snapshot_v2",)) as (m, _):
        o = [await m.shell("echo $FROM_PROFILE; helper") for _ in range(3)]
    for one in o:
        equal(one.code, 0, "exit code")
        within("yes\nhelper\n", one.out)
    starts = [s["params"] for s in b.proxy.calls("process/start")]
    check(all("shellSnapshot" in s for s in starts), "a start without shellSnapshot")
    equal(get(f"{b.outside}/runs").count("run"), 1, "runs of the startup files")


@scenario(since=("0.166.0", "it does not read its server's configuration"))
async def configuration(b):
    """The client asks for the MCP servers of the host: a trusted project counts, another does not."""
    await b.start_server()
    for level in ("trusted", "untrusted"):
        put(f"{b.work}/.codex/config.toml", "[mcp_servers.of_project]\nurl = \"http://127.0.0.1:1/\"\n")
        put(f"{b.server_home}/config.toml",
            f"[projects.\"{b.work}\"]\ntrust_level = \"{level}\"\n"
            "[mcp_servers.of_user]\nurl = \"http://127.0.0.1:1/\"\n")
        async with b.client() as m:
            o = await m.shell("echo ok")
        equal(o.code, 0, "exit code")
        answer = b.proxy.calls("environmentConfig/read")[-1]["result"]["config"]["layers"]
        texts = " ".join(layer["toml"] for layer in answer)
        within("of_user", texts)
        equal("of_project" in texts, level == "trusted", f"the project's layer when {level}")


@scenario(since=("0.166.0", "it asks for capabilities otherwise"))
async def capabilities(b):
    """The client finds the skill of a root that its user selects, by the first method."""
    put(f"{b.outside}/plugin/.codex-plugin/plugin.json", '{"name":"chosen"}')
    put(f"{b.outside}/plugin/skills/s/SKILL.md", SKILL.format("of-the-root"))
    await b.start_server()
    roots = [{"id": "r", "location": {"type": "environment", "environmentId": "remote",
                                      "path": f"file://{b.outside}/plugin"}}]
    async with b.app("danger-full-access", "never", {"selectedCapabilityRoots": roots},
                     features=("executor_capability_discovery",)) as (m, _):
        o = await m.shell("echo ok")
    equal(o.code, 0, "exit code")
    found = b.proxy.calls("capabilityRoots/discoverV1")
    check(found, "the client asked for no root")
    root, = found[0]["result"]["roots"]
    equal(root["error"], None, "error")
    equal([s["instructions"]["path"].rpartition("/plugin/")[2] for s in root["skills"]],
          ["skills/s/SKILL.md"], "skills")


@scenario(since=("0.166.0", "it asks for capabilities otherwise"))
async def host_capabilities(b):
    """The client finds the skills and plugins of the host, by the second method, and tells the
    model of them."""
    put(f"{b.server_home}/skills/s/SKILL.md", SKILL.format("of-the-host"))
    plugin = f"{b.server_home}/plugins/cache/market/chosen/1.0.0"
    put(f"{plugin}/.codex-plugin/plugin.json",
        '{"name":"chosen","mcpServers":{"inside":{"command":"/bin/false"}}}')
    put(f"{plugin}/skills/t/SKILL.md", SKILL.format("of-the-plugin"))
    await b.start_server()
    async with b.app("danger-full-access", "never", features=(
            "executor_capability_discovery", "executor_capability_discovery_v2")) as (m, _):
        o = await m.shell("echo ok")
        told = str(m.first["input"])
    equal(o.code, 0, "exit code")
    found = b.proxy.calls("capabilities/discoverV2")
    check(found, "the client asked for no capabilities")
    answer = found[0]["result"]
    equal([s["name"] for s in answer["skills"]], ["of-the-host"], "skills")
    equal([p["id"] for p in answer["plugins"]], ["chosen@market"], "plugins")
    equal(answer["plugins"][0]["files"]["mcpConfig"]["contents"],
          '{"inside":{"command":"/bin/false"}}', "the MCP server in the manifest")
    within("of-the-host", told)

"""What leaves the host through the server: MCP servers over HTTP, commands behind a proxy."""

from rig.mcp_http import McpHttp
from rig.model import tool

from .common import check, equal, scenario, within

SINCE = ("0.166.0", "its configuration has no environment for a URL, and no proxy of an executor")


@scenario(since=SINCE)
async def mcp_http(b):
    """An MCP server over HTTP, whose requests the server makes; it answers with JSON and with event
    streams."""
    await b.start_server()
    web = McpHttp()
    tables = (f'[mcp_servers.demo]\nurl = "http://127.0.0.1:{await web.listen()}/mcp"\n'
              'environment_id = "remote"\n')
    async with b.client(tables) as m:
        spaces = [t["name"] for t in m.first["tools"] if t["type"] == "namespace"]
        check(spaces, "no tool of the MCP server was offered")

        async def echo(text):
            return (await m.call({**tool("echo", text=text), "namespace": spaces[0]})).text

        within("got 5: hello", await echo("hello"))
        within("got 300000: xxx", await echo("x" * 300000))
    web.close()
    equal(web.seen[:2], [("POST", "initialize"), ("POST", "notifications/initialized")],
          "the first requests")
    equal([s for s in web.seen if s[1] == "tools/call"], [("POST", "tools/call")] * 2, "calls")
    check(b.proxy.calls("http/request"), "the client did not use the server")


@scenario(since=SINCE)
async def network_proxy(b):
    """The client's feature network_proxy: each command has a proxy, which knows one host."""
    await b.start_server()
    web, closed = McpHttp(), McpHttp()
    open_port, other = await web.listen(), await closed.listen()
    tables = ("[sandbox_workspace_write]\nnetwork_access = true\n"
              "[features.network_proxy]\nenabled = true\n"
              "[features.network_proxy.domains]\n"
              '"127.0.0.1" = "allow"\n"denied.invalid" = "deny"\n')
    curl = "curl -sS --max-time 60 -w '%{http_code}\\n'"
    async with b.client(tables, sandbox="workspace-write") as m:
        o = await m.shell("echo active $CODEX_NETWORK_PROXY_ACTIVE")
        equal((o.code, o.out.strip()), (0, "active 1"), "exit code and variable")
        within("202", (await m.shell(f"{curl} -X DELETE http://127.0.0.1:{open_port}/")).out)
        within("202", (await m.shell(f"{curl} -p -X DELETE http://127.0.0.1:{open_port}/")).out)
        for url, word in (("http://blocked.invalid/", "Domain not in allowlist."),
                          ("http://denied.invalid/", "Domain denied by the sandbox policy."),
                          ("http://localhost/", "local/private network addresses")):
            refused = (await m.shell(f"{curl} {url}")).out
            within(word, refused)
            within("403", refused)
        tunnel = await m.shell(f"{curl} https://blocked.invalid/")
        check(tunnel.code not in (0, None), "a tunnel was opened")
        past = await m.shell("env -u http_proxy -u HTTP_PROXY -u ALL_PROXY -u all_proxy "
                             f"{curl} http://127.0.0.1:{other}/ 2>/dev/null")
        check(past.code not in (0, None), "a connection past the proxy was made")
    web.close()
    closed.close()
    equal((len(web.seen), closed.seen), (2, []), "requests that arrived")
    starts = b.proxy.calls("process/start")
    check(all(s["params"].get("networkProxy") for s in starts), "a start without networkProxy")

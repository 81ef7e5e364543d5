"""The client with our MCP server, `exec-server mcp`, and the rules that both read."""

import os
import shlex
import subprocess

from rig.model import tool

from .approvals import ESCALATED
from .common import check, equal, exists, get, put, scenario, within

RULES = """
prefix_rule(pattern=["touch"], decision="prompt", justification="it makes files")
prefix_rule(pattern=["id"], decision="forbidden", justification="ids are private")
"""


def tables(b):
    """Settings that let the client start the server, with rules of its own."""
    home = b.directory("mcp-home")
    put(f"{home}/rules/test.rules", RULES)
    return (f'[mcp_servers.ours]\ncommand = "{os.environ["EXEC_SERVER"]}"\n'
            f'args = ["mcp", "--system-config", "{home}/none", "--audit-log", "{home}/audit"]\n'
            f'environment_id = "remote"\ncwd = "{b.work}"\n'
            'default_tools_approval_mode = "approve"\n'
            f'env = {{ CODEX_HOME = "{home}" }}\n')


async def shell(m, command, **more):
    spaces = [t["name"] for t in m.first["tools"] if t["type"] == "namespace"]
    check(spaces, "no tool of the MCP server was offered")
    call = tool("shell", command=command, login=False, **more)
    return (await m.call({**call, "namespace": spaces[0]})).text


TIMES = "the answers hold the time that a command took"


@scenario(differs={"processes": TIMES, "calls": TIMES})
async def mcp_shell(b):
    """Run, Escalate after a prompt, the prompt declined, and Deny; the sandbox is the turn's."""
    await b.start_server()
    async with b.app("workspace-write", "on-request", tables=tables(b)) as (m, app):
        within("Seccomp:\\t2", await shell(m, "echo in >inside; grep Seccomp: /proc/self/status"))
        within("Read-only file system", await shell(m, f"echo out >{b.outside}/run"))
        equal(app.requests, [], "what the client asked")
        within('"exit_code":0', await shell(m, f"touch {b.outside}/granted"))
        equal(len(app.requests), 1, "what the client asked")
        within("outside the sandbox", str(app.requests))
        within("it makes files", str(app.requests))
        app.decision = "decline"
        within("User declined execution", await shell(m, f"touch {b.outside}/declined"))
        within("Execution denied: ids are private", await shell(m, "id -u; echo $?"))
        equal(len(app.requests), 2, "what the client asked")
    equal(get(f"{b.work}/inside"), "in\n", "the file inside")
    check(exists(b.outside, "granted"), "the granted file is missing")
    for name in ("run", "declined"):
        check(not exists(b.outside, name), f"{name} was made")


def allow(home, *words):
    """Our way to write the rule; the file of rules."""
    subprocess.run([os.environ["EXEC_SERVER"], "execpolicy", "allow", *words], check=True,
                   stdout=subprocess.DEVNULL, env={"CODEX_HOME": home})
    return get(f"{home}/rules/default.rules")


@scenario
async def amended_rules(b):
    """What the client writes when its user allows a command for good, we write too, and once."""
    await b.start_server()
    commands = [["mkdir", "-p", "a b"], ["touch", "it's \"q\" \\ \t/é"], ["uname", "-a"]]
    written = []
    async with b.app("workspace-write", "on-request") as (m, app):
        app.decision = "amend"
        for command in commands:
            asked = len(app.requests)
            await m.shell(shlex.join(command), **ESCALATED)
            equal(len(app.requests), asked + 1, f"what the client asked for {command}")
            written.append(app.requests[-1]["params"]["proposedExecpolicyAmendment"])
    theirs = get(f"{b.root}/home-1/rules/default.rules")
    for words in written:
        equal(allow(f"{b.root}/home-1", *words), theirs, "the client's file after our writing")
    home = b.directory("ours")
    for words in written:
        ours = allow(home, *words)
    equal(ours, theirs, "the file")
    equal(theirs.count("\n"), len(commands), "lines")

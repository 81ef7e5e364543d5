"""Interception in both modes: decisions, prompts, escalation; old and new programs mixed."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from harness import procfs
from harness.settings import BINARY
from harness.waiting import patiently, until
from peer import OLD_SERVER, OLD_WRAPPER
from test_shell import marked, sleeper

RULES = """
prefix_rule(pattern=["uname"])
prefix_rule(pattern=["id"], decision="forbidden", justification="ids are private")
prefix_rule(pattern=["who"], decision="forbidden")
prefix_rule(pattern=["touch"], decision="prompt", justification="it makes files")
prefix_rule(pattern=["dash"])
prefix_rule(pattern=["sh"])
prefix_rule(pattern=["sleep"])
"""


@pytest.fixture
def links(tmp_path):
    """A directory with our program under the old names."""
    made = tmp_path / "links"
    made.mkdir()
    for name in (OLD_SERVER, OLD_WRAPPER):
        (made / name).symlink_to(BINARY)
    return made


def in_mode(start, bash, links):
    """Starts servers that intercept with that patched Bash, or without one."""
    def made(*options, rules=RULES, hello=True, **more):
        mode = ["--intercept", "notify"] if bash is None else [
            "--intercept", "wrapper", "--bash", bash, "--execve", links / OLD_WRAPPER]
        server = start(*mode, *options, rules=rules)
        if hello:
            server.hello(**more)
        return server
    return made


@pytest.fixture(params=["old bash", "our bash", "notify"])
def bash(request, start, links):
    """bash(**hello): a server that intercepts, in each of the modes."""
    patched = {"old bash": lambda: request.getfixturevalue("old").bash, "notify": lambda: None,
               "our bash": lambda: request.getfixturevalue("our_bash")}
    return in_mode(start, patched[request.param](), links)


@pytest.fixture
def patched(start, old, links):
    """As bash(), in the mode wrapper alone."""
    return in_mode(start, old.bash, links)


SECCOMP = "grep Seccomp: /proc/self/status"


def test_run_deny_escalate(bash):
    server = bash()
    assert server.run(SECCOMP)["output"] == "Seccomp:\t2\n"
    assert server.run(f"sh -c '{SECCOMP}'")["output"] == "Seccomp:\t0\n"
    denied = server.run("id -u")
    assert (denied["output"], denied["exit_code"]) == ("Execution denied: ids are private\n", 1)
    assert server.run("who")["output"] == "Execution denied: Execution forbidden by policy\n"


@pytest.mark.parametrize("command, output, code", [
    ("sh -c 'exit 7'", "", 7), ("{ sh -c 'kill -TERM $$'; } 2>/dev/null; echo $?", "143\n", 0),
    ("sh -c 'kill -KILL $$' | cat; echo ${PIPESTATUS[0]}", "137\n", 0),
    ("sh -c 'cat <&3' 3<<<three", "three\n", 0), ("echo in | sh -c cat", "in\n", 0),
    ("exec -a zero sh -c 'echo $0'", "zero\n", 0), ("umask 027; sh -c umask", "0027\n", 0),
    ("cd /usr; sh -c pwd", "/usr\n", 0), ("A='x y' sh -c 'echo \"$A\"'", "x y\n", 0),
    ("unset HOME; sh -c 'echo ${HOME-none}'", "none\n", 0),
    ("LD_PRELOAD=/x BASH_ENV=/y sh -c 'echo \"[$LD_PRELOAD$BASH_ENV$EXEC_WRAPPER]\"' 2>/dev/null",
     "[]\n", 0),
    ("sh -c 'ls -m /proc/self/fd'", "0, 1, 2, 3\n", 0),
    ("trap '' PIPE USR1; sh -c 'grep SigIgn /proc/self/status'", "SigIgn:\t0000000000001200\n", 0),
    ("sh -c 'grep SigIgn /proc/self/status'", "SigIgn:\t0000000000000000\n", 0),
    ("ulimit -n 99; ulimit -c 0; sh -c 'ulimit -n'", "99\n", 0),
    ("renice -n 19 -p $$ >/dev/null; sh -c nice", "19\n", 0),
    ("sh -c 'echo x' '' \"a'b\"", "x\n", 0)])
def test_an_escalated_program_is_run_faithfully(bash, command, output, code):
    result = bash().run(command)
    assert (result["output"], result["exit_code"]) == (output, code)


@pytest.mark.parametrize("command, output, code", [
    ("nosuch_zz", "command not found", 127), ("/etc/passwd", "Permission denied", 126),
    ("printf 'echo plain $1' > $T/s; chmod +x $T/s; $T/s arg", "plain arg", 0)])
def test_what_run_keeps(bash, tmp_path, command, output, code):
    server = bash(full=True)
    result = server.run(f"T={tmp_path}; {command}")
    assert output in result["output"] and result["exit_code"] == code


def test_pipelines_of_escalated_programs_end(bash):
    server = bash()
    numbers = [server.call("sh -c 'echo one' | sh -c cat", timeout_ms=100000) for _ in range(25)]
    assert all(server.result(n)["output"] == "one\n" for n in numbers)


def test_signals_reach_an_escalated_program(bash, tmp_path):
    server = bash(full=True)
    script = ("sh -c 'trap \"echo caught; exit 9\" USR1; echo up > '$T'/up; "
              "while :; do /bin/true; done' & "
              "while ! test -s $T/up; do :; done; kill -USR1 $!; wait $!; echo $?")
    assert server.run(f"T={tmp_path}; {script}", timeout_ms=100000)["output"] == "caught\n9\n"


def standing_in(server):
    """The processes inside that stand for programs outside: wrappers or stubs."""
    found = []
    for pid in procfs.below(server.process.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
            if f.read() in ("codex-execve-wr\n", "exec-stub\n"):
                found.append(pid)
    return found


@pytest.mark.parametrize("how", ["cancel", "eof", "wrapper"])
def test_escalated_programs_do_not_outlive_their_call(bash, how):
    server = bash()
    mark = sleeper(f"escalated{how}")
    number = server.call(f"sleep {mark} >/dev/null 2>&1", timeout_ms=1000000)
    until(lambda: marked(mark), "the program runs")
    if how == "cancel":
        server.send("notifications/cancelled", {"requestId": number})
    elif how == "eof":
        server.close()
    elif how == "wrapper":
        stands_in, = standing_in(server)
        os.kill(stands_in, signal.SIGKILL)
        assert server.result(number)["exit_code"] == 137
    until(lambda: not marked(mark), "end of the program")


def test_escalated_programs_do_not_outlive_a_timeout(bash):
    server = bash()
    mark = sleeper("escalatedtimeout")

    def attempt(limit):
        number = server.call(f"sleep {mark} >/dev/null 2>&1", timeout_ms=limit)
        until(lambda: marked(mark) or number in server.answers, "it runs, or had no time to")
        ran = number not in server.answers
        assert server.result(number)["timed_out"]
        return ran or None
    assert patiently(attempt, 1000)
    until(lambda: not marked(mark), "end of the program")


def test_a_trap_may_start_programs_after_the_timeout(bash):
    """SIGTERM leaves time for an orderly end, and programs are decided as before."""
    server = bash()
    trap = f"trap 'uname; id; touch x; {SECCOMP}; echo end; exit' TERM; "

    def attempt(limit):
        result = server.run(trap + "echo ready; while :; do :; done", timeout_ms=limit)
        assert result["timed_out"]
        return result["output"] if result["output"].endswith("end\n") else None
    assert patiently(attempt, 1000) == (
        "ready\nLinux\nExecution denied: ids are private\n"
        "Execution denied: approval needed, but the command has timed out\nSeccomp:\t2\nend\n")


def test_background_programs_are_decided_after_the_shell(bash, tmp_path):
    server = bash(full=True)
    out = tmp_path / "late"
    server.run(f"(sleep 0.3; uname > {out}; id; echo $? >> {out}) & ")
    until(lambda: out.exists() and out.read_text().endswith("1\n"), "the background goes on")
    assert out.read_text() == "Linux\n1\n"


# -- prompts --

def asked(server):
    message = server.other()
    assert message["method"] == "elicitation/create"
    assert set(message["params"]["requestedSchema"]) <= {"$schema", "type", "properties", "required"}
    return message["id"], message["params"]["message"]


@pytest.mark.parametrize("answer, output", [
    ({"action": "accept", "content": {}}, "0\n"),
    ({"action": "decline"}, "Execution denied: User declined execution\n1\n"),
    ({"action": "cancel"}, "Execution denied: User cancelled execution\n1\n"),
    ({}, "Execution denied: the client could not ask its user\n1\n")])
def test_prompts(bash, tmp_path, answer, output):
    server = bash()
    number = server.call(f"touch '{tmp_path}/a b'; echo $?", timeout_ms=1500)
    question, text = asked(server)
    assert text == (f"Allow agent to run `/usr/bin/touch '{tmp_path}/a b'` in `/tmp` outside the "
                    "sandbox?\n\nit makes files")
    server.reply(question, answer)
    assert server.result(number)["output"] == output
    assert (tmp_path / "a b").exists() == (output == "0\n")


@pytest.mark.parametrize("argument, shown", [
    (r"x\ny", r"'x\x0ay'"), (r"\e[2K\rsafe", r"'\x1b[2K\x0dsafe'"), (r"a\u202eb", r"a\u202eb"),
    ("x` in `/`?", "'x` in `/`?'"), (r"caf\u00e9", "caf\u00e9")])
def test_a_question_cannot_look_like_another(bash, argument, shown):
    server = bash()
    number = server.call(f"touch $'{argument}'")
    question, text = asked(server)
    command = text.partition(" outside the sandbox?")[0]
    assert command.startswith("Allow agent to run `/usr/bin/touch ")
    assert command.endswith("` in `/tmp`") and "\n" not in command
    words = command[len("Allow agent to run `/usr/bin/touch "):-len("` in `/tmp`")]
    assert words.replace("'", "") == shown.replace("'", "")
    server.reply(question, {"action": "cancel"})
    server.result(number)


def test_an_error_instead_of_an_answer(bash):
    server = bash()
    number = server.call("touch x; echo $?")
    server.line(json.dumps({"jsonrpc": "2.0", "id": asked(server)[0],
                            "error": {"code": -1, "message": "no"}}))
    assert "could not ask" in server.result(number)["output"]


def test_the_clock_stands_still_while_a_prompt_is_open(bash, tmp_path):
    server = bash()
    number = server.call(f"touch {tmp_path}/x & touch {tmp_path}/y; wait; echo done", timeout_ms=700)
    questions = [asked(server)[0], asked(server)[0]]
    server.run("sleep 1", timeout_ms=100000)
    for question in questions:
        server.reply(question, {"action": "accept"})
    result = server.result(number)
    assert result["output"] == "done\n" and not result["timed_out"]


def test_a_client_that_cannot_be_asked(bash):
    server = bash(elicitation=False)
    assert server.run("touch x")["output"] == (
        "Execution denied: approval needed, but this client cannot be asked\n")


def test_cancelling_withdraws_the_prompt(bash):
    server = bash()
    number = server.call("touch x", timeout_ms=1000000)
    question = asked(server)[0]
    server.send("notifications/cancelled", {"requestId": number})
    withdrawn = server.other()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question
    server.reply(question, {"action": "accept"})
    assert server.request("ping")["result"] == {}


def modern_call(server, command, **more):
    return server.modern("tools/call", {"name": "shell", "arguments": {
        "command": command, "login": False, "workdir": "/tmp"}, **more})


def test_prompts_without_a_handshake(bash, tmp_path):
    server = bash(hello=False)
    command = f"touch {tmp_path}/one; echo $?; touch {tmp_path}/two; echo $?"
    first = server.answer(modern_call(server, command))["result"]
    assert first["resultType"] == "input_required"
    key, = first["inputRequests"]
    assert first["inputRequests"][key]["method"] == "elicitation/create"
    again = server.answer(modern_call(server, command, requestState=first["requestState"],
                                      inputResponses={"other": {"action": "accept"}}))["result"]
    assert list(again["inputRequests"]) == [key] and again["requestState"] != first["requestState"]
    stale = server.answer(modern_call(server, command, requestState=first["requestState"],
                                      inputResponses={key: {"action": "accept"}}))["error"]
    assert (stale["code"], stale["message"]) == (-32602, "unknown or expired requestState")
    other = server.answer(modern_call(server, "true", requestState=again["requestState"]))["error"]
    assert other["code"] == -32602
    second = server.answer(modern_call(server, command, requestState=again["requestState"],
                                       inputResponses={key: {"action": "accept"}}))["result"]
    key, = second["inputRequests"]
    last = server.answer(modern_call(server, command, requestState=second["requestState"],
                                     inputResponses={key: {"action": "decline"}}))["result"]
    assert last["resultType"] == "complete"
    assert last["structuredContent"]["output"] == (
        "0\nExecution denied: User declined execution\n1\n")
    assert (tmp_path / "one").exists() and not (tmp_path / "two").exists()


# -- rules --

def test_dangerous_commands_run_inside_after_approval(bash, tmp_path):
    server = bash()
    victim = tmp_path / "victim"
    victim.write_text("")
    number = server.call(f"rm -r -f {victim}")
    question, text = asked(server)
    assert "outside" not in text
    server.reply(question, {"action": "accept"})
    assert "Read-only" in server.result(number)["output"] and victim.exists()


def test_a_program_of_the_same_name_gains_nothing(bash, tmp_path):
    server = bash()
    evil = tmp_path / "bin" / "uname"
    evil.parent.mkdir()
    server.state({"type": "workspace-write"}, evil.parent)
    script = f"#!/bin/sh\\n{SECCOMP}\\n"
    result = server.run(f"printf '{script}' > {evil}; chmod +x {evil}; PATH={evil.parent}:$PATH; uname")
    assert result["output"] == "Seccomp:\t2\n"
    link = evil.parent / "sh"
    assert server.run(f"ln -s {evil} {link}; {link}")["output"] == "Seccomp:\t2\n"


def test_an_interpreter_is_judged_too(bash, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/id -u\n")
    script.chmod(0o755)
    assert "denied: ids are private" in bash().run(str(script))["output"]


def test_rules_reload(bash):
    server = bash()
    assert server.run("uname")["output"] == "Linux\n"
    server.rules('prefix_rule(pattern=["uname"], decision="forbidden")')
    assert "forbidden" in server.run("uname")["output"]
    server.rules("prefix_rule(pattern=[)")
    denied = server.run("/bin/true; echo $?")["output"]
    assert "test.rules:1:22" in denied and denied.endswith("1\n")
    server.rules("")
    assert server.run("uname")["output"] == "Linux\n"


def test_requirements_come_on_top(start, old, links):
    server = start("--bash", old.bash, "--execve", links / OLD_WRAPPER, rules=RULES, requirements="""
[[rules.prefix_rules]]
pattern = [{ token = "uname" }, { any_of = ["-a", "-r"] }]
decision = "forbidden"
justification = "by order"
""")
    server.hello()
    assert server.run("uname -r")["output"] == "Execution denied: by order\n"
    assert server.run("uname")["output"] == "Linux\n"


@pytest.mark.parametrize("what, text", [
    ({"rules": "x = "}, "failed to parse rules file"),
    ({"requirements": "x = ["}, "Error parsing requirements file"),
    ({"requirements": '[rules]\nprefix_rules = [{pattern=[{token="a"}], decision="allow"}]'},
     "has decision 'allow', which is not permitted in requirements.toml"),
    ({"requirements": '[rules]\nprefix_rules = [{pattern=[{token=" "}], decision="prompt"}]'},
     "blank")])
def test_a_bad_file_refuses_the_start(start, what, text):
    server = start("--intercept", "off", stderr=subprocess.PIPE, **what)
    assert text in server.process.stderr.read().decode()
    assert server.process.wait() == 1


def test_the_audit_log(bash, tmp_path):
    log = tmp_path / "audit"
    server = bash("--audit-log", log)
    server.run("id -u")
    server.close()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    decided = next(line for line in lines if line["event"] == "exec_decided")
    assert decided["action"] == "Deny" and decided["rule"] == "forbidden: id"
    assert {"call_started", "call_ended"} <= {line["event"] for line in lines}


# -- hostile peers --

RAW = """
import array, json, os, socket, struct, sys
sock = socket.socket(fileno=int(os.environ["CODEX_ESCALATE_SOCKET"]))
def ask(body, fds=None):
    a, b = socket.socketpair()
    sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
    b.close()
    a.sendall(body if isinstance(body, bytes) else struct.pack("<I", len(body)) + body.encode())
    head = a.recv(4)
    if len(head) < 4:
        return "EOF"
    answer = json.loads(a.recv(struct.unpack("<I", head)[0]))
    if answer == {"action": "Escalate"} and fds is not None:
        body = json.dumps({"fds": fds}).encode()
        a.sendmsg([struct.pack("<I", len(body))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                  array.array("i", [0] * len(fds)))])
        a.sendall(body)
        head = a.recv(4)
        return json.loads(a.recv(100)) if len(head) == 4 else "EOF"
    return answer
def q(file, *argv, **more):
    return json.dumps({"file": file, "argv": argv, "workdir": "/tmp", "env": {}, **more})
"""


@pytest.mark.parametrize("code, output", [
    ("ask(q('/usr/bin/id', 'uname'))['action']['Deny']['reason']", "ids are private"),
    ("ask(q('/bin/true', 'true'))", "{'action': 'Run'}"),
    ("ask('{}')", "EOF"), ("ask('[1]')", "EOF"), ("ask(b'\\xff\\xff\\xff\\xff')", "EOF"),
    ("ask(q('/bin/sh', 'sh', env={'A=B': 'x'}))", "EOF"),
    ("ask(q('/bin/sh', 'sh', '-c', 'exit 3'), [0, 1, 2])", "{'exit_code': 3}"),
    ("ask(q('/bin/sh', 'sh', '-c', 'exit 3'), [0, 0, 2])", "EOF"),
    ("ask(q('/bin/sh', 'sh', '-c', 'exit 3'), [99])", "EOF"),
    ("ask(q('/nonexistent/sh', 'sh'))", "{'action': 'Run'}"),
    ("[sock.send(b'x') for _ in range(3)] and ask(q('/bin/true'))", "{'action': 'Run'}")])
def test_a_program_that_speaks_the_protocol_itself(patched, tmp_path, code, output):
    script = tmp_path / "raw.py"
    script.write_text(RAW + f"print({code})\n")
    assert patched().run(f"/usr/bin/python3 {script}")["output"] == output + "\n"


SWAP = """
import os
place = os.getcwd()
def swap(target):
    os.symlink(target, "new")
    os.rename("new", "way")
swap("/usr/bin")
os.mkdir("evil")
with open("evil/uname", "w") as f:
    f.write("#!/bin/sh\\ngrep Seccomp: /proc/self/status\\n")
os.chmod("evil/uname", 0o755)
a, b = socket.socketpair()
sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
def send(text, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    a.sendmsg([struct.pack("<I", len(text))], rights)
    a.sendall(text.encode())
send(json.dumps({"file": FILE, "argv": ["uname"], "workdir": place, "env": {}}))
print(a.recv(struct.unpack("<I", a.recv(4))[0]).decode(), flush=True)
swap(place + "/evil")
send('{"fds": [0, 1, 2]}', [0, 1, 2])
print(a.recv(struct.unpack("<I", a.recv(4))[0]).decode())
"""


@pytest.mark.parametrize("file", ["place + '/way/uname'", "'way/uname'"])
def test_a_name_that_changes_after_the_decision(patched, tmp_path, file):
    """The program that was judged runs, whatever its name leads to by then."""
    server = patched()
    work = tmp_path / "work"
    work.mkdir()
    server.state({"type": "workspace-write"}, work)
    script = tmp_path / "swap.py"
    script.write_text(RAW + SWAP.replace("FILE", file))
    result = server.run(f"/usr/bin/python3 {script}", workdir=str(work))
    assert result["output"] == '{"action":"Escalate"}\nLinux\n{"exit_code":0}\n'


def test_peers_that_say_nothing_leave_room_for_others(patched, tmp_path):
    script = tmp_path / "silent.py"
    script.write_text(RAW + """
held = []
for _ in range(60):
    a, b = socket.socketpair()
    sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
    held.append(a)
print(ask(q("/bin/true")))
""")
    server = patched()
    assert server.run(f"/usr/bin/python3 {script}; uname")["output"] == (
        "{'action': 'Run'}\nLinux\n")


# -- old and new programs --

@pytest.fixture
def a_bash(request, bash_by):
    """The Bash of the old package, or ours."""
    return request.getfixturevalue("old").bash if bash_by == "old" else (
        request.getfixturevalue("our_bash"))


@pytest.mark.parametrize("bash_by", ["old", "ours"])
@pytest.mark.parametrize("server_by, wrapper_by", [
    ("ours", "old"), ("ours", "ours"), ("old", "old"), ("old", "ours"), ("compat", "old"),
    ("compat", "ours"), ("name", "ours"), ("name", "old")])
def test_old_and_new(start, old, links, a_bash, server_by, wrapper_by):
    wrapper = old.wrapper if wrapper_by == "old" else links / OLD_WRAPPER
    options = ["--bash", a_bash, "--execve", wrapper]
    if server_by == "compat":
        server = start("--compat", "--intercept", "wrapper", *options, rules=RULES)
    else:
        program = {"old": old.server, "name": links / OLD_SERVER}.get(server_by)
        rules = RULES.replace(', justification="ids are private"', "").replace(
            ', justification="it makes files"', "")
        server = start(*options, rules=rules, program=program)
    server.hello(full=True)
    assert "Linux" in server.run("uname")["output"]
    denied = server.run("id; echo $?")["output"]
    assert "Execution denied: " in denied and "1\n" in denied
    assert server.run("sh -c 'exit 7'")["exit_code"] == 7
    number = server.call("touch x; echo $?")
    question = server.other()
    assert question["method"] == "elicitation/create"
    server.reply(question["id"], {"action": "decline"})
    assert "User declined execution" in server.result(number)["output"]


def test_the_old_launcher_runs_our_programs(start, old, links, tmp_path):
    """The launcher looks for its programs in its own directory."""
    package = tmp_path / "package"
    vendor = package / "vendor" / old.server.parent.name
    (package / "bin").mkdir(parents=True)
    vendor.mkdir(parents=True)
    (package / "bin" / "mcp-server.js").write_bytes(old.launcher.read_bytes())
    (package / "package.json").write_bytes((old.directory / "package.json").read_bytes())
    (vendor / "bash").symlink_to(old.bash.parents[1])
    for name in (OLD_SERVER, OLD_WRAPPER):
        (vendor / name).symlink_to(BINARY)
    server = start(package / "bin" / "mcp-server.js", program="node", rules=RULES)
    server.hello(full=True)
    assert "Linux" in server.run("uname")["output"]
    assert server.close() == 0

"""What --json prints: doc/xs.schema.json, and the table of commands."""

import json
import os
import re
import signal

import pytest
from jsonschema import Draft202012Validator

from harness.settings import ROOT
from harness.waiting import until

SCHEMA = json.loads((ROOT / "doc" / "xs.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def check(command, text):
    """Validates each line; returns them."""
    lines = [json.loads(line) for line in text.decode().splitlines()]
    for line in lines:
        judge(SCHEMA["x-commands"][command], line)
    return lines


def judge(schema, value):
    errors = list(VALIDATOR.evolve(schema=schema).iter_errors(value))
    assert not errors, (value, errors[0].message)


def test_38_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


def test_38_each_command_has_a_schema(lone_xs):
    listed = re.findall(r"^command (\w+)$", lone_xs.run("completion", "list").text(), re.MULTILINE)
    assert sorted(SCHEMA["x-commands"]) == sorted(set(listed) - {"completion"})


@pytest.fixture(params=["ours", "reference"])
def both(request, xs):
    if request.param == "reference":
        xs.host = request.getfixturevalue("reference").url
    return xs


def run(xs, *args, status=0, **more):
    """Runs a command with --json; its lines."""
    done = xs.run("--json", *args, **more)
    assert done.status == status, done
    return check(args[0], done.out)


def test_38_run(both):
    lines = run(both, "run", "sh", "-c", "echo o; echo e >&2; exit 3", status=3)
    assert {x.get("stream") for x in lines if x["event"] == "output"} == {"stdout", "stderr"}
    assert [x["event"] for x in lines[-2:]] == ["exited", "closed"] and lines[-2]["exitCode"] == 3
    run(both, "run", "sh", "-c", "kill -9 $$", status=137)
    run(both, "run", "--timeout", "50ms", "sleep", "100", status=124)
    lines = run(both, "run", "-t", "echo", "x")
    assert {x.get("stream") for x in lines if x["event"] == "output"} == {"pty"}
    assert run(both, "run", "nosuch", status=127) == []


def test_38_shell(xs):
    assert run(xs, "shell", "-T", stdin=b"exit 4\n", status=4)[-1]["event"] == "closed"


def test_38_detached(xs):
    assert run(xs, "run", "-d", "--name", "a", "sh", "-c", "echo x; exit 2")[0]["name"] == "a"
    assert run(xs, "wait", "a", status=2)[0]["exitCode"] == 2
    for command in ("attach", "logs"):
        lines = run(xs, command, "a", status=2 if command == "attach" else 0)
        assert lines[0]["event"] == "output", command
    [document] = run(xs, "ps")
    assert [p["state"] for p in document["processes"]] == ["closed"]
    assert run(xs, "run", "-d", "--name", "b", "sleep", "1000")
    assert run(xs, "kill", "-s", "TERM", "b") == [{"event": "signaled", "name": "b"}]
    assert run(xs, "kill", "a", "b") == [{"event": "ended", "name": "a"},
                                         {"event": "ended", "name": "b"}]


def test_38_processes_of_servers_that_are_gone(fleet, lone_xs):
    server = fleet.start()
    run(lone_xs, "run", "-d", "sleep", "1000", host=server.url)
    server.stop()
    [document] = run(lone_xs, "ps")
    assert document["processes"][0]["state"] == "unreachable"


def test_38_files(both, tmp_path):
    place = str(tmp_path / "place")
    assert run(both, "mkdir", place) == [{"event": "made", "path": place}]
    assert run(both, "write", place + "/f", stdin=b"x" * 10)[0]["event"] == "written"
    assert run(both, "write", place + "/g", stdin=bytes(3 << 20))[0]["event"] == "written"
    assert run(both, "cat", place + "/f")[0]["offset"] == 0
    [document] = run(both, "ls", place)
    assert [e["fileName"] for e in document["entries"]] == ["f", "g"]
    assert run(both, "ls", "-la", place)[0]["entries"][0]["size"] == 10
    assert run(both, "stat", place + "/f", place + "/nosuch", status=1)[0]["size"] == 10
    (tmp_path / "here").write_bytes(b"1")
    assert run(both, "cp", str(tmp_path / "here"), f":{place}/h")[0]["bytes"] == 1
    assert run(both, "cp", f":{place}/h", str(tmp_path / "back"))[0]["files"] == 1
    assert run(both, "rm", "-r", place)[0]["event"] == "removed"


def test_38_changes(xs, tmp_path):
    (tmp_path / "f").write_bytes(b"")
    assert run(xs, "chmod", "600", str(tmp_path / "f"))[0]["event"] == "changed"
    assert run(xs, "mv", str(tmp_path / "f"), str(tmp_path / "g"))[0]["event"] == "renamed"


def test_38_names_that_are_not_text(xs, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff"
    with open(path, "wb"):
        pass
    assert "pathBase64" in run(xs, "stat", os.fsdecode(path))[0]
    [line] = run(xs, "cp", ":" + os.fsdecode(path), os.fsdecode(path) + "2")
    assert "sourceBase64" in line and "destinationBase64" in line


def test_38_watch(xs, tmp_path):
    watching = xs.start("-v", "--json", "watch", str(tmp_path))
    watching.expect_err("watching")
    (tmp_path / "new").write_text("x")
    watching.expect(b"new")
    watching.expect(b"\n")
    watching.signal(signal.SIGINT)
    until(lambda: watching.popen.poll() is not None, "the end")
    assert check("watch", bytes(watching.out).rpartition(b"\n")[0])


def test_38_about_servers(both):
    assert run(both, "info")[0]["url"].startswith("ws://")
    assert len(run(both, "ping", "--count", "3")) == 3
    assert run(both, "env")[0]["environments"]


def test_38_status_line(xs):
    for args in (["true"], ["nosuch"], ["--timeout", "1ms", "sleep", "9"], ["-d", "true"]):
        done = xs.run("run", "--status-fd", "2", *args)
        judge(SCHEMA["x-status-fd"], json.loads(done.err.splitlines()[-1]
                                                if not done.err.startswith("{")
                                                else done.err.splitlines()[0]))

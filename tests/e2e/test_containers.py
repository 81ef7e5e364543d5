"""Ordinary containers: a sandbox works in them, or is refused with the flag that would allow it."""

import base64
import json
import os
import shutil
import warnings

import pytest

from harness.containers import (CAPABILITIES, DOCKER, NO_LANDLOCK, NO_USERNS, Containers, deny,
                                why_not)
from harness.sandbox import DENIED, MISSING, READ_ONLY, Result, special

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SECRET = "a-secret-of-the-container"
# The search for leaks at the end of a sanitized program goes by pids that a shared /proc has not.
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}
USERS = pytest.mark.parametrize("uid", [0, 12345], ids=["root", "user"])
PRIVATE = ("environ", "mem", "maps", "smaps", "auxv", "io", "pagemap", "syscall", "stack",
           "personality", "map_files", "fdinfo", "ns/user", "cwd", "root", "exe", "fd/0")


# Looks at every process but itself; what it can get at it tells.
LOOK = """
import glob, os, sys
me = os.readlink("/proc/self")
for process in glob.glob("/proc/[0-9]*"):
    if process == "/proc/" + me:
        continue
    print("seen")
    for name in sys.argv[1:]:
        path = process + "/" + name
        for how, look in (("read", lambda: open(path, "rb").read(1)),
                          ("link", lambda: os.readlink(path)), ("list", lambda: os.listdir(path))):
            try:
                if look():
                    print(how, path)
            except OSError:
                pass
    for name in ("oom_score_adj", "comm", "coredump_filter", "clear_refs", "mem", "uid_map"):
        try:
            os.close(os.open(process + "/" + name, os.O_WRONLY))
            print("wrote", name)
        except OSError:
            pass
if "SECRET" in os.environ:
    print("SECRET")
"""


@pytest.fixture(scope="module", name="containers")
def fixture_containers():
    made = Containers()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def finished(containers):
    yield
    containers.finish()


def profile(*entries, network="restricted"):
    """A sandbox object: "r", "w" or "d", and a token or a path."""
    access = {"r": "read", "w": "write", "d": "deny"}
    made = []
    for text in entries:
        kind, _, target = text.partition(" ")
        path = special(target[1:]) if target.startswith(":") else {
            "type": "path", "path": "file://" + target}
        made.append({"path": path, "access": access[kind]})
    return {"permissions": {"type": "managed", "network": network,
                            "file_system": {"type": "restricted", "entries": made}},
            "cwd": "file:///work", "workspaceRoots": ["file:///work"]}


READ = profile("r :root")
WORK = profile("r :root", "w :project_roots")
HIDE = profile("r :minimal", "w :project_roots", "d /etc/passwd")


def start(client, command, sandbox, **more):
    params = client.start_params(command, cwd="file:///work", sandbox=sandbox,
                                 env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **NO_LEAKS}, **more)
    client.call("process/start", params)
    return Result(client.wait_closed(client.processes[params["processId"]]))


def refusal(client, command, sandbox, **more):
    return client.error("process/start", client.start_params(
        command, cwd="file:///work", sandbox=sandbox, **more))


# /proc, where a fresh one cannot be mounted.

@USERS
def test_programs_that_need_proc(containers, uid):
    client = containers.start(uid=uid).client()
    for sandbox in (READ, WORK, HIDE):
        assert start(client, "readlink /proc/self/cwd; head -c9 /proc/meminfo", sandbox).out == \
            "/work\nMemTotal:"
        assert start(client, ["/bin/bash", "-c", "diff <(echo a) <(echo b)"],
                     sandbox).out.split() == ["1c1", "<", "a", "---", ">", "b"]
        got = start(client, "echo x | tee /dev/stderr", sandbox)
        assert (got.out, got.err) == ("x\n", "x\n")
    for program, args, text in (("node", "-p 1+1", "2"), ("java", "-version", "64-Bit")):
        if shutil.which(program) is None or not os.path.realpath(
                shutil.which(program)).startswith("/usr/"):
            warnings.warn(f"left out: {program} is not installed")
            continue
        got = start(client, f"{program} {args}", READ)
        assert got.code == 0 and text in got.text, got


@pytest.mark.parametrize("options", [
    {}, {"uid": 12345}, {"rules": NO_LANDLOCK}, {"uid": 12345, "rules": NO_LANDLOCK}],
    ids=["root", "user", "root-without-landlock", "user-without-landlock"])
def test_other_processes_stay_private(containers, options):
    """They can be seen, but nothing can be taken from them, nor be written to them."""
    container = containers.start(**options)
    container.config["process"]["env"].append(f"SECRET={SECRET}")
    client = container.client()
    for network in ("restricted", "enabled"):
        sandbox = profile("r :root", "w :project_roots", network=network)
        beside = client.start("sleep 1000")
        other = client.start_params("sleep 1000", cwd="file:///work", sandbox=READ)
        client.call("process/start", other)
        got = start(client, ["/usr/bin/python3", "-c", LOOK, *PRIVATE], sandbox)
        assert set(got.out.split()) == {"seen"} and got.out.count("seen") >= 6, got
        client.terminate(beside)
        client.terminate(client.processes[other["processId"]])


@USERS
def test_proc_is_read_only(containers, uid):
    client = containers.start(uid=uid).client()
    names = ("sys/kernel/hostname", "sys/kernel/core_pattern", "self/oom_score_adj", "self/comm",
             "1/oom_score_adj")
    for sandbox in (WORK, HIDE):
        got = start(client, "".join(f"(echo 5 >/proc/{name}) && echo {name}; " for name in names),
                    sandbox)
        assert got.out == "" and got.err.count(READ_ONLY) == len(names), got
    for name in ("kcore", "keys", "timer_list", "kpageflags"):
        got = start(client, f"head -c1 /proc/{name}", WORK)
        assert got.out == "" and (DENIED in got.err or MISSING in got.err), (name, got)


@USERS
def test_file_calls_see_no_secrets(containers, uid):
    """The file helper has that /proc, too."""
    container = containers.start(uid=uid)
    container.config["process"]["env"].append(f"SECRET={SECRET}")
    client = container.client()
    read = {"path": "file:///proc/self/status", "sandbox": HIDE}
    assert b"Name:" in base64.b64decode(client.call("fs/readFile", read)["dataBase64"])
    for name in ("environ", "mem", "maps", "auxv"):
        code, _text = client.error("fs/readFile", {**read, "path": f"file:///proc/1/{name}"})
        assert code in (-32600, -32603), name
    for name in ("/proc/1/oom_score_adj", "/proc/self/comm", "/proc/sys/kernel/hostname"):
        assert client.error("fs/writeFile", {**read, "path": "file://" + name,
                                             "dataBase64": "eA=="})[0] in (-32600, -32603)


@pytest.mark.parametrize("options", [{}, {"uid": 12345}, {"readonly": True}, {"userns": True},
                                     {"no_new_privs": True, "uid": 12345},
                                     {"userns": True, "caps": [*CAPABILITIES, "SYS_ADMIN", "NET_ADMIN"],
                                      "rules": NO_USERNS}],
                         ids=["root", "user", "read-only", "rootless", "no-new-privileges",
                              "backend-root"])
def test_policies_are_enforced(containers, options):
    client = containers.start(**options).client()
    for sandbox, inside in ((READ, False), (WORK, True), (HIDE, True)):
        got = start(client, "touch /work/x; touch /home/x; mkdir /work/.git/x; cat /etc/passwd",
                    sandbox)
        assert (got.err.count("/work/x") == 0) == inside, got
        assert "/home/x" in got.err and "/work/.git" in got.err
        assert ("root:" in got.out) == (sandbox is not HIDE)
    managed = {"enforceManagedNetwork": True, "managedNetwork": {"loopbackPorts": []}}
    assert start(client, "true", WORK, **managed).code == 0


def test_an_image_of_the_program_alone(containers):
    client = containers.start("scratch").client()
    for sandbox in (READ, WORK):
        got = start(client, ["/opt/exec-server", "--version"], sandbox)
        assert got.code == 0 and got.out.startswith("exec-server "), got
    path = {"path": "file:///work/x", "dataBase64": "eA=="}
    assert client.call("fs/writeFile", {**path, "sandbox": WORK}) == {}
    assert READ_ONLY in client.error("fs/writeFile", {**path, "sandbox": READ})[1]


# Containers that refuse namespaces.

SECCOMP = "--security-opt seccomp=unconfined"
MANAGED = {"enforceManagedNetwork": True, "managedNetwork": {"loopbackPorts": []}}


def check_weak(container, flag):
    """What Landlock can enforce alone is enforced; all else is refused, and nothing done."""
    client = container.client()
    got = start(client, "touch /work/x; touch /tmp/x; cat /etc/passwd; readlink /proc/self/cwd", READ)
    assert got.err.count(DENIED) == 2 and "root:" in got.out and "/work" in got.out, got
    only = profile("r :root", "w /work/file")
    (container.work / "file").touch(mode=0o666)
    (container.work / "file").chmod(0o666)
    assert start(client, "echo x >/work/file", only).code == 0
    for sandbox, more in ((WORK, {}), (HIDE, {}), (READ, MANAGED),
                          (profile("r :root", "d /etc/passwd"), {})):
        code, text = refusal(client, "touch /work/x", sandbox, **more)
        assert code == -32603 and flag in text, text
    path = {"path": "file:///work/x", "dataBase64": "eA=="}
    for sandbox in (WORK, HIDE):
        code, text = client.error("fs/writeFile", {**path, "sandbox": sandbox})
        assert code == -32603 and flag in text, text
    assert READ_ONLY in client.error("fs/writeFile", {**path, "sandbox": READ})[1]
    assert [p.name for p in container.work.iterdir()] == ["file"]


@USERS
def test_filter_of_docker(containers, uid):
    check_weak(containers.start(uid=uid, rules=DOCKER), SECCOMP)


def test_filter_that_kills(containers):
    """A service manager may end who makes a forbidden call: the server does not make it."""
    client = containers.start(rules=[deny("mount_setattr", "unshare", "setns", errno=None)]).client()
    assert start(client, "touch /work/x", READ).err.count(DENIED) == 1
    code, text = refusal(client, "true", WORK)
    assert code == -32603 and SECCOMP in text, text
    assert client.call("environment/status") == {"status": "ready"}


def test_root_without_capabilities(containers):
    check_weak(containers.start(caps=[]), "--cap-add SETFCAP")
    client = containers.start(caps=["SETFCAP"]).client()
    assert start(client, "touch /work/x", WORK).code == 0


def test_user_without_capabilities(containers):
    client = containers.start(caps=[], uid=12345).client()
    assert start(client, "touch /work/x", WORK).code == 0


def test_nothing_can_be_enforced(containers):
    """A filter that refuses namespaces, on a kernel without Landlock."""
    container = containers.start(rules=[*DOCKER, *NO_LANDLOCK])
    client = container.client()
    for sandbox in (READ, WORK, HIDE):
        code, text = refusal(client, "touch /work/x", sandbox)
        assert code == -32603 and SECCOMP in text, text
    assert not list(container.work.iterdir())


# The doctor.

ALL = {"readOnly", "writableFile", "writableDirectory", "deniedPath", "hiddenFiles", "network",
       "managedNetwork"}
WEAK = {"readOnly", "writableFile", "network"}


@pytest.mark.parametrize("options, code, policies, causes", [
    ({}, 0, ALL, {"proc"}),
    ({"masked": False}, 0, ALL, set()),
    ({"uid": 12345, "readonly": True}, 0, ALL, {"proc"}),
    ({"userns": True}, 0, ALL, {"proc"}),
    ({"rules": DOCKER}, 1, WEAK, {"seccomp"}),
    ({"uid": 12345, "rules": DOCKER}, 1, WEAK, {"seccomp"}),
    ({"rules": [deny("open_tree", "move_mount", "mount_setattr", errno=38)]}, 1, WEAK, {"seccomp"}),
    ({"caps": []}, 1, WEAK, {"setfcap"}),
    ({"userns": True, "caps": [*CAPABILITIES, "SYS_ADMIN"], "rules": NO_USERNS}, 1,
     ALL - {"managedNetwork"}, {"net-admin"}),
    ({"rules": [*DOCKER, *NO_LANDLOCK]}, 3, set(), {"seccomp"}),
], ids=["podman", "unmasked", "read-only", "rootless", "docker", "docker-user", "old-filter",
        "no-capabilities", "no-net-admin", "nothing"])
def test_doctor(containers, options, code, policies, causes):
    container = containers.start(**options)
    done = container.run("doctor", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (code, "")
    assert found["enforces"] == {0: "all", 1: "some", 3: "none"}[code]
    assert {k for k, v in found["policies"].items() if v["enforcedBy"]} == policies, found
    assert {c["id"] for c in found["causes"]} - {"cgroups"} == causes
    for cause in found["causes"]:
        assert cause["what"] and cause["docker"] and cause["podman"]
    assert found["host"]["seccomp"] == (2 if "rules" in options else 0)
    assert found["host"]["procHidden"] == options.get("masked", True)


def test_doctor_in_words(containers):
    done = containers.start(rules=DOCKER).run("doctor")
    assert done.returncode == 1
    for line in ("  seccomp: a seccomp filter refuses it", f"    docker       {SECCOMP}",
                 f"    podman       {SECCOMP}",
                 "    kubernetes   securityContext.seccompProfile.type: Unconfined",
                 "Some sandbox policies can be enforced, others are refused."):
        assert line + "\n" in done.stdout, (line, done.stdout)

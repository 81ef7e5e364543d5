"""process/start: parameters, order of checks, working directory, spawn errors, lookup."""

import json
import os
import resource
import signal

import pytest

from harness.rpc import PATH
from harness.waiting import until

NO_ENTRY = (-32603, "No such file or directory (os error 2)")
NOT_DIR = (-32603, "Not a directory (os error 20)")
DENIED = (-32603, "Permission denied (os error 13)")
NOEXEC = (-32603, "Exec format error (os error 8)")
MODES = pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])


def script(path, text="#!/bin/sh\necho \"$0\"\n", mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def out(process):
    return process.output().decode().replace("\r\n", "\n")


@MODES
def test_minimal(client, tty):
    process = client.run(["/bin/echo", "hello"], tty=tty)
    assert out(process) == "hello\n"
    assert process.exit_code == 0
    assert process.exited["sandboxDenied"] is False
    assert "signal" not in process.exited or process.exited["signal"] is None


def test_all_optional_fields(client):
    process = client.run(
        ["/bin/echo", "x"], metadata=None, envPolicy=None, shellSnapshot=None, pipeStdin=False,
        arg0=None, sandbox=None, enforceManagedNetwork=False, managedNetwork=None,
        networkProxy=None, unknown={"deep": [1]})
    assert process.exit_code == 0


def test_shell_snapshot_is_ignored(client):
    process = client.run(["/bin/sh", "-lc", "echo ok"],
                         shellSnapshot={"scopeId": "s", "shell": {"name": "sh", "path": "/bin/sh"}})
    assert process.output() == b"ok\n"


@pytest.mark.parametrize("permissions", [
    {"type": "disabled"},
    {"type": "external", "network": "enabled"},
    {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "enabled"},
])
@pytest.mark.parametrize("level", ["disabled", None])
def test_sandbox_that_asks_for_nothing(client, permissions, level):
    sandbox = {"permissions": permissions}
    if level:
        sandbox["windowsSandboxLevel"] = level
    params = client.start_params(["/bin/true"], sandbox=sandbox)
    result = client.call("process/start", params)
    assert result == {"processId": params["processId"], "sandboxType": "linuxSeccomp"}
    client.wait_closed(client.processes[params["processId"]])
    assert client.processes[params["processId"]].exit_code == 0


def test_sandbox_is_never_ignored(client, tmp_path):
    sandbox = {"permissions": {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}},
        "windowsSandboxLevel": "disabled", "cwd": "file:///tmp"}
    params = client.start_params(["/bin/mkdir", str(tmp_path / "x")], sandbox=sandbox)
    assert client.call("process/start", params)["sandboxType"] == "linuxSeccomp"
    process = client.wait_closed(client.processes[params["processId"]])
    assert process.exit_code != 0 and process.exited["sandboxDenied"] is True
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["", " ", "\n\t\u0001", "é😀", "a" * 4096, "a\u0000b", "{}"])
def test_process_ids(client, name):
    process = client.run("echo x", processId=name)
    assert process.output() == b"x\n"
    assert client.read(name)["closed"]


def test_process_ids_that_differ_after_a_nul(client):
    assert client.run("echo b", processId="a\0b").output() == b"b\n"
    assert client.error("process/read", {"processId": "a"}) == (-32600, "unknown process id a")
    assert client.error("process/read", {"processId": "a\0c"}) == (
        -32600, "unknown process id a\0c")
    assert client.start_error("true", processId="a\0b") == (
        -32600, "process a\0b already exists")
    assert client.run("echo c", processId="a\0c").output() == b"c\n"


def test_process_id_too_long(client):
    code, _ = client.start_error(["/bin/true"], processId="a" * 4097)
    assert code == -32602
    code, _ = client.start_error(["/bin/true"], processId="é" * 2049)
    assert code == -32602


REQUIRED = ["processId", "argv", "cwd", "env", "tty"]


@pytest.mark.parametrize("field", REQUIRED)
def test_missing_field(client, field):
    params = client.start_params(["/bin/true"])
    del params[field]
    assert client.error("process/start", params) == (-32602, f"missing field `{field}`")


@pytest.mark.parametrize("field, value, text", [
    ("processId", None, "invalid type: null, expected a string"),
    ("processId", 5, "invalid type: number, expected a string"),
    ("argv", None, "invalid type: null, expected a sequence"),
    ("argv", "x", 'invalid type: string "x", expected a sequence'),
    ("argv", {}, "invalid type: map, expected a sequence"),
    ("argv", [5], "invalid type: number, expected a string"),
    ("argv", ["/bin/true", None], "invalid type: null, expected a string"),
    ("cwd", None, "invalid type: null, expected a string"),
    ("env", None, "invalid type: null, expected a map"),
    ("env", [], "invalid type: sequence, expected a map"),
    ("env", {"A": None}, "invalid type: null, expected a string"),
    ("env", {"A": 5}, "invalid type: number, expected a string"),
    ("tty", None, "invalid type: null, expected a boolean"),
    ("tty", "yes", 'invalid type: string "yes", expected a boolean'),
    ("tty", 1, "invalid type: number, expected a boolean"),
    ("pipeStdin", None, "invalid type: null, expected a boolean"),
    ("enforceManagedNetwork", None, "invalid type: null, expected a boolean"),
    ("arg0", 5, "invalid type: number, expected a string"),
    ("envPolicy", 5, "invalid type: number, expected struct ExecEnvPolicy"),
    ("metadata", 5, "invalid type: number, expected struct ExecMetadata"),
    ("sandbox", 5, "invalid type: number, expected struct WireFileSystemSandboxContext"),
    ("managedNetwork", 5, "invalid type: number, expected struct ManagedNetworkSandboxContext"),
    ("networkProxy", 5, "invalid type: number, expected struct RemoteNetworkProxyLaunchConfig"),
    ("shellSnapshot", 5, "invalid type: number, expected struct ShellSnapshotRequest"),
])
def test_wrong_type(client, field, value, text):
    assert client.start_error(["/bin/true"], **{field: value}) == (-32602, text)


@pytest.mark.parametrize("params, text", [
    ("null", "invalid type: null, expected struct WireExecParams"),
    ("5", "invalid type: number, expected struct WireExecParams"),
])
def test_params_of_another_type(client, params, text):
    client.send_raw(f'{{"id":900,"method":"process/start","params":{params}}}')
    assert client.answer(900)["error"] == {"code": -32602, "message": text}


def test_duplicate_key_in_env(client):
    text = json.dumps(client.start_params(["/bin/true"])).replace(
        '"env": {', '"env": {"A": "1", "A": "2", ')
    client.send_raw(f'{{"id":900,"method":"process/start","params":{text}}}')
    assert client.answer(-1)["error"]["code"] == -32600
    client.barrier()
    assert client.answers == {}


def test_empty_argv(client):
    assert client.start_error([]) == (-32602, "argv must not be empty")


def test_empty_program(client):
    assert client.start_error([""]) == (-32603, "missing program for pipe spawn")
    assert client.start_error([""], tty=True) == (-32603, "missing program for PTY spawn")


def test_already_exists(client):
    name = client.new_name()
    process = client.start("cat", processId=name, pipeStdin=True)
    exists = (-32600, f"process {name} already exists")
    assert client.start_error(["/bin/true"], processId=name) == exists
    assert client.start_error(["/no/such/program"], processId=name) == exists
    # Earlier checks come first.
    assert client.start_error([], processId=name) == (-32602, "argv must not be empty")
    assert client.start_error(["x"], processId=name, cwd="http:///x")[0] == -32602
    client.terminate(process)
    client.wait_closed(process)
    assert client.start_error(["/bin/true"], processId=name) == exists


@MODES
def test_failed_start_frees_the_id(client, tty):
    name = client.new_name()
    for _ in range(3):
        assert client.start_error(["/no/such/program"], processId=name, tty=tty) == NO_ENTRY
    assert client.error("process/read", {"processId": name}) == (
        -32600, f"unknown process id {name}")
    assert client.run(["/bin/true"], processId=name).exit_code == 0


# Working directory.

@MODES
@pytest.mark.parametrize("form", [
    "file://{}", "file:{}", "{}", "file://localhost{}", "file://{}/", "{}/", "file://{}/x/..",
    "file://{}/./"])
def test_cwd_forms(client, tmp_path, form, tty):
    folder = tmp_path / "here"
    (folder / "x").mkdir(parents=True)
    process = client.run(["/bin/pwd", "-P"], cwd=form.format(folder), tty=tty)
    assert out(process) == f"{folder}\n"


def test_cwd_is_decoded(client, tmp_path):
    folder = tmp_path / "a b%é"
    folder.mkdir()
    uri = f"file://{tmp_path}/a%20b%25%C3%A9"
    assert out(client.run(["/bin/pwd", "-P"], cwd=uri)) == f"{folder}\n"
    assert out(client.run(["/bin/pwd", "-P"], cwd=str(folder))) == f"{folder}\n"


def test_cwd_without_slashes(client):
    assert out(client.run(["/bin/pwd", "-P"], cwd="file:tmp")) == "/tmp\n"
    assert out(client.run(["/bin/pwd", "-P"], cwd="file:///%74mp")) == "/tmp\n"
    assert out(client.run(["/bin/pwd", "-P"], cwd="file:///tmp/../usr")) == "/usr\n"


@pytest.mark.parametrize("cwd, text", [
    ("tmp", "invalid URI: relative URL without a base"),
    ("", "invalid URI: relative URL without a base"),
    ("./tmp", "invalid URI: relative URL without a base"),
    ("http:///tmp", "unsupported path URI scheme `http`"),
    ("file:///tmp?x=1", "query parameters are not allowed in path URIs"),
    ("file:///tmp#x", "fragments are not allowed in path URIs"),
    ("file:///tmp%00x", "'file:///tmp%00x' is invalid on 'linux'"),
    ("file://server/share", "cwd URI `file://server/share` is not valid on this exec-server "
                            "host: 'file://server/share' is invalid on 'linux'"),
    ("file://server/it's/x", "cwd URI `file://server/it's/x` is not valid on this exec-server "
                             "host: 'file://server/it's/x' is invalid on 'linux'"),
    ("file:///C:/x", "cwd URI `file:///C:/x` is not valid on this exec-server host: "
                     "'file:///C:/x' is invalid on 'linux'"),
])
def test_bad_cwd(client, cwd, text):
    assert client.start_error(["/bin/true"], cwd=cwd) == (-32602, text)


@MODES
def test_cwd_that_is_not_there(client, tmp_path, tty):
    assert client.start_error(["/bin/true"], cwd=f"file://{tmp_path}/none", tty=tty) == NO_ENTRY
    assert client.start_error(["/bin/true"], cwd=str(tmp_path / "none"), tty=tty) == NO_ENTRY
    file = script(tmp_path / "file")
    assert client.start_error(["/bin/true"], cwd=str(file), tty=tty) == NOT_DIR


@MODES
def test_cwd_with_nul(client, tty):
    assert client.start_error(["/bin/true"], cwd="/tmp\0x", tty=tty)[0] in (-32602, -32603)


# Spawn errors, the same in both modes.

@MODES
class TestSpawnErrors:
    def test_missing_program(self, client, tty):
        assert client.start_error(["/no/such/program"], tty=tty) == NO_ENTRY
        assert client.start_error(["no-such-program-anywhere"], tty=tty) == NO_ENTRY

    def test_missing_interpreter(self, client, tmp_path, tty):
        path = script(tmp_path / "x", "#!/no/such/interpreter\n")
        assert client.start_error([str(path)], tty=tty) == NO_ENTRY

    def test_not_executable(self, client, tmp_path, tty):
        assert client.start_error([str(script(tmp_path / "x", mode=0o644))], tty=tty) == DENIED
        assert client.start_error([str(tmp_path)], tty=tty) == DENIED

    def test_no_shebang(self, client, tmp_path, tty):
        assert client.start_error([str(script(tmp_path / "x", "echo hi\n"))], tty=tty) == NOEXEC
        assert client.start_error([str(script(tmp_path / "y", ""))], tty=tty) == NOEXEC
        script(tmp_path / "bin" / "tool", "echo hi\n")
        assert client.start_error(["tool"], tty=tty,
                                  env={"PATH": str(tmp_path / "bin")}) == NOEXEC

    def test_component_is_a_file(self, client, tmp_path, tty):
        path = script(tmp_path / "x")
        assert client.start_error([f"{path}/y"], tty=tty) == NOT_DIR

    def test_name_too_long(self, client, tty):
        assert client.start_error(["/" + "x" * 300], tty=tty) == (
            -32603, "Filename too long (os error 36)")

    def test_symlink_loop(self, client, tmp_path, tty):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        assert client.start_error([str(tmp_path / "a")], tty=tty) == (
            -32603, "Symbolic link loop (os error 40)")

    def test_text_file_busy(self, client, tmp_path, tty):
        path = script(tmp_path / "x")
        with open(path, "ab"):
            assert client.start_error([str(path)], tty=tty) == (
                -32603, "Text file busy (os error 26)")

    @pytest.mark.parametrize("where", ["argument", "environment", "total"])
    def test_too_long(self, client, tty, where):
        argv, env = ["/bin/true"], {"PATH": PATH}
        if where == "argument":
            argv.append("x" * 131072)
        elif where == "environment":
            env["X"] = "x" * 131072
        else:
            argv += ["x" * 100000] * 100
        assert client.start_error(argv, env=env, tty=tty) == (
            -32603, "Argument list too long (os error 7)")

    def test_longest_argument(self, client, tty):
        process = client.run(["/bin/sh", "-c", "echo ${#1}", "sh", "x" * 131071], tty=tty)
        assert out(process) == "131071\n"

    def test_nul(self, client, tty):
        argv = (-32603, "nul byte found in provided data")
        env = (-32603, "data provided contains a nul byte")
        assert client.start_error(["/bin/tr\0ue"], tty=tty) == argv
        assert client.start_error(["/bin/true", "a\0b"], tty=tty) == argv
        assert client.start_error(["/bin/true"], arg0="a\0b", tty=tty) == argv
        assert client.start_error(["/bin/true"], env={"A": "a\0b"}, tty=tty) == env
        assert client.start_error(["/bin/true"], env={"A\0B": "x"}, tty=tty) == env


def test_failed_starts_leak_nothing(server):
    client = server.client()
    client.run("true")
    client.barrier()
    before = server.fds()
    for tty in (False, True):
        for argv in (["/no/such"], ["/tmp"], ["/bin/true", "x" * 200000]):
            for _ in range(20):
                client.start_error(argv, tty=tty, pipeStdin=True)
    until(lambda: server.fds() <= before and server.zombies() == [], "all given back")


# Program lookup, by the rules of pipes in both modes.

@MODES
class TestLookup:
    def test_child_path_is_searched(self, client, tmp_path, tty):
        tool = script(tmp_path / "bin" / "tool-x")
        assert out(client.run(["tool-x"], env={"PATH": f"/none:{tool.parent}"}, tty=tty)) == (
            f"{tool}\n")

    def test_server_path_is_not_searched(self, fleet, tmp_path, tty):
        tool = script(tmp_path / "bin" / "tool-x")
        client = fleet.start(env={"PATH": f"{tool.parent}:/usr/bin:/bin"}).client()
        assert client.start_error(["tool-x"], env={"PATH": "/usr/bin:/bin"}, tty=tty) == NO_ENTRY
        assert client.start_error(["tool-x"], env={}, tty=tty) == NO_ENTRY

    def test_default_path(self, client, tty):
        assert out(client.run(["echo", "x"], env={}, tty=tty)) == "x\n"

    @pytest.mark.parametrize("path", ["", ":/none", "/none:", "/none::/other", ".", "sub/..",
                                      "sub"])
    def test_relative_components(self, client, tmp_path, path, tty):
        script(tmp_path / "tool-x", "#!/bin/sh\necho found\n")
        script(tmp_path / "sub" / "tool-x", "#!/bin/sh\necho found\n")
        process = client.run(["tool-x"], env={"PATH": path}, cwd=str(tmp_path), tty=tty)
        assert out(process) == "found\n"

    @pytest.mark.parametrize("name", ["./tool-x", "sub/tool-x", "sub/../tool-x"])
    def test_name_with_a_slash_is_relative_to_cwd(self, client, tmp_path, name, tty):
        script(tmp_path / "tool-x", "#!/bin/sh\necho found\n")
        script(tmp_path / "sub" / "tool-x", "#!/bin/sh\necho found\n")
        process = client.run([name], cwd=str(tmp_path), env={"PATH": "/usr/bin:/bin"}, tty=tty)
        assert out(process) == "found\n"

    def test_unusable_hits_are_skipped(self, client, tmp_path, tty):
        script(tmp_path / "a" / "tool-x", mode=0o644)
        (tmp_path / "b" / "tool-x").mkdir(parents=True)
        good = script(tmp_path / "c" / "tool-x")
        path = ":".join(str(tmp_path / d) for d in "abc")
        assert out(client.run(["tool-x"], env={"PATH": path}, tty=tty)) == f"{good}\n"

    def test_last_error_of_the_search_counts(self, client, tmp_path, tty):
        file = script(tmp_path / "file")
        assert client.start_error(["tool-x"], env={"PATH": f"/none:{file}"}, tty=tty) == NOT_DIR
        assert client.start_error(["tool-x"], env={"PATH": f"{file}:/none"}, tty=tty) == NO_ENTRY
        for count in (256, 5000):
            assert client.start_error(["x" * count], tty=tty) == (
                -32603, "Filename too long (os error 36)")

    def test_long_directories_are_passed_over(self, client, tmp_path, tty):
        """As the reference's search: the kernel refuses only what is just too long."""
        good = script(tmp_path / "tool-x")
        deep = "/" + "/".join(["d" * 100] * 100)
        for count in (4000, 4096, 4340, 9000):
            path = f"{deep[:count]}:{tmp_path}"
            assert out(client.run(["tool-x"], env={"PATH": path}, tty=tty)) == f"{good}\n"
        assert client.start_error(["tool-x"], env={"PATH": f"{deep[:4095]}:{tmp_path}"},
                                  tty=tty) == (-32603, "Filename too long (os error 36)")

    def test_only_unusable_hits(self, client, tmp_path, tty):
        script(tmp_path / "a" / "tool-x", mode=0o644)
        path = f"/none:{tmp_path}/a:/other"
        assert client.start_error(["tool-x"], env={"PATH": path}, tty=tty) == DENIED

    @pytest.mark.parametrize("arg0", ["other", "", "-sh", "/bin/echo"])
    def test_arg0(self, client, arg0, tty):
        process = client.run(["/bin/sh", "-c", "tr '\\0' '|' </proc/$$/cmdline | cut -d'|' -f1"],
                             arg0=arg0, tty=tty)
        assert out(process) == f"{arg0}\n"

    def test_arg0_with_lookup(self, client, tty):
        process = client.run(["sh", "-c", "tr '\\0' '|' </proc/$$/cmdline | cut -d'|' -f1"],
                             arg0="renamed", tty=tty)
        assert out(process) == "renamed\n"


# Attributes of a child.

@MODES
class TestAttributes:
    def fields(self, client, tty, script_text, **options):
        return out(client.run(script_text, tty=tty, **options)).split()

    def test_session_and_group(self, client, tty):
        pid, group, session = self.fields(client, tty, "echo $$; cut -d' ' -f5,6 /proc/$$/stat")
        assert pid == group == session

    def test_descriptors(self, client, tty):
        for _ in range(3):
            client.start("cat", pipeStdin=True)
        listed = self.fields(client, tty, "exec /bin/ls /proc/self/fd")
        # ls has the directory itself open.
        assert [int(x) for x in listed] == [0, 1, 2, 3]

    def test_no_descriptor_of_the_server_is_inherited(self, fleet, tmp_path, tty):
        file = open(tmp_path / "leak", "wb")
        os.set_inheritable(file.fileno(), True)

        def share():
            os.dup2(file.fileno(), 77)
        server = fleet.start(preexec=share)
        file.close()
        assert [int(x) for x in self.fields(server.client(), tty, "exec /bin/ls /proc/self/fd")
                ] == [0, 1, 2, 3]

    def test_stdin(self, client, tty):
        target, = self.fields(client, tty, "readlink /proc/self/fd/0")
        assert target.startswith("/dev/pts/") if tty else target == "/dev/null"

    def test_output_is_blocking(self, client, tty):
        flags = self.fields(client, tty, "grep flags /proc/self/fdinfo/1 /proc/self/fdinfo/2")
        for value in flags[1::2]:
            assert not int(value, 8) & os.O_NONBLOCK

    def test_signal_mask_and_dispositions(self, fleet, tty):
        def dirty():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
            for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2, signal.SIGTSTP,
                           signal.SIGPIPE):
                signal.signal(number, signal.SIG_IGN)
        server = fleet.start(preexec=dirty)
        text = self.fields(server.client(), tty, "exec cat /proc/self/status")
        values = {name: int(text[text.index(name) + 1], 16)
                  for name in ("SigBlk:", "SigIgn:", "SigCgt:")}
        assert values == {"SigBlk:": 0, "SigIgn:": 0, "SigCgt:": 0}

    def test_umask_and_limits_are_inherited(self, fleet, tty):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lower = min(soft, 512)

        def limit():
            os.umask(0o027)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lower, hard))
        server = fleet.start(preexec=limit)
        assert self.fields(server.client(), tty, "umask; ulimit -Sn") == ["0027", str(lower)]

    def test_no_new_variables(self, client, tty):
        names = [line.partition("=")[0] for line in
                 self.fields(client, tty, "exec env", env={"PATH": PATH, "A": "1"})]
        assert set(names) - {"PWD"} == ({"PATH", "A", "SHELL"} if tty else {"PATH", "A"})


def test_two_separate_output_pipes(client):
    process = client.run("readlink /proc/self/fd/1 /proc/self/fd/2")
    one, two = process.output().decode().split()
    assert one.startswith("pipe:") and two.startswith("pipe:") and one != two


def test_stdin_pipe(client):
    process = client.run("readlink /proc/self/fd/0", pipeStdin=True)
    assert process.output().startswith(b"pipe:")


def test_many_processes_at_once(client):
    processes = [client.start("read x", pipeStdin=True) for _ in range(200)]
    for process in processes:
        client.write(process, "\n")
    for process in processes:
        client.wait_closed(process)
        assert process.exit_code == 0


def test_out_of_descriptors(fleet):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    server = fleet.start(preexec=limit)
    client = server.client()
    started, error = [], None
    for _ in range(60):
        answer = client.answer(client.send(
            "process/start", client.start_params("cat", pipeStdin=True)))
        if "error" in answer:
            error = answer["error"]
            break
        started.append(answer["result"]["processId"])
    assert error == {"code": -32603, "message": "No file descriptors available (os error 24)"}
    client.sync()
    for name in started:
        assert client.terminate(name) == {"running": True}
        client.wait_closed(client.processes[name])
    assert client.run("echo again").output() == b"again\n"


@pytest.mark.parametrize("method, params, text", [
    ("process/start", {"cwd": "rel"}, "invalid URI: relative URL without a base"),
    ("process/start", {"cwd": "rel", "argv": 5}, "invalid URI: relative URL without a base"),
    ("process/start", {"argv": 5, "cwd": "rel"}, "invalid type: number, expected a sequence"),
    ("process/start", {"sandbox": {}}, "missing field `permissions`"),
    ("process/start", {"metadata": {"threadId": "x"}}, "invalid thread ID: not a UUID"),
    ("process/start", {"envPolicy": {"inherit": "a\0b"}},
     "unknown variant `a\0b`, expected one of `core`, `all`, `none`"),
    ("process/write", {"chunk": "!"}, "Invalid symbol 33, offset 0."),
    ("fs/copy", {"destinationPath": "rel"}, "invalid URI: relative URL without a base"),
    ("fs/open", {"mode": "x"}, "unknown variant `x`, expected `read` or `replace`"),
    ("fs/readFile", {"sandbox": 5, "path": "rel"},
     "invalid type: number, expected struct WireFileSystemSandboxContext"),
])
def test_first_fault_in_the_text_is_reported(client, method, params, text):
    """A missing field comes last; a quoted value is whole."""
    assert client.error(method, params) == (-32602, text)


# A host without device files: a chroot, a minimal image.

@pytest.fixture(name="bare")
def bare_server(fleet):
    """A server whose /dev is empty."""
    script = "mount -t tmpfs none /dev && exec \"$@\""
    flags = "-m" if os.getuid() == 0 else "-rm"
    return fleet.start(wrapper=("unshare", flags, "/bin/sh", "-c", script, "sh"))


READ_ONLY = {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": [
    {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]},
    "network": "restricted"}, "cwd": "file:///tmp"}


@pytest.mark.parametrize("sandbox", [None, READ_ONLY], ids=["plain", "sandboxed"])
def test_no_dev_null(bare, sandbox):
    """A command needs no /dev/null; its input is empty all the same."""
    client = bare.client()
    params = client.start_params(["/bin/sh", "-c", "cat; echo read $?; exit 3"], sandbox=sandbox)
    client.call("process/start", params)
    process = client.wait_closed(client.processes[params["processId"]])
    assert process.output() == b"read 0\n" and process.exit_code == 3
    assert client.start_error(["/nowhere/program"], sandbox=sandbox) == NO_ENTRY


def test_no_terminal_device(bare):
    """The error names what is missing: not the program."""
    assert bare.client().start_error(["/bin/true"], tty=True) == (
        -32603, "cannot open a terminal: /dev/ptmx: No such file or directory (os error 2)")

"""Wrong usage of the server, of xs and of the MCP server: one line that names the object and says
what to do."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from harness.server import environment, run
from harness.settings import BINARY
from harness.ws import Refused
from test_ext_limits import ROOT_ONLY

XS = str(Path(BINARY).parent / "xs")
CAP = ["--ws-auth", "capability-token"]
JWT = ["--ws-auth", "signed-bearer-token"]
HELP = "see 'exec-server --help'"
WS = "expected `ws://IP:PORT`"

# Arguments, exit status, the object that the line names, what it says to do. In all of them {dir}
# is a directory with the files of `place`.
SERVER = [
    (["--listn", "stdio"], 2, "'--listn'", "did you mean '--listen'?"),
    (["--lsten=stdio"], 2, "'--lsten'", "did you mean '--listen'?"),
    (["--session-tll", "5"], 2, "'--session-tll'", "did you mean '--session-ttl'?"),
    (["--log", "info"], 2, "'--log'", "did you mean '--log-level'?"),
    (["-listen", "stdio"], 2, "'-listen'", "did you mean '--listen'?"),
    (["--nonsense"], 2, "'--nonsense'", HELP),
    (["stdio"], 2, "'stdio'", HELP),
    (["docter"], 2, "'docter'", HELP),
    (["doctor", "--jsn"], 2, "'--jsn'", HELP),
    (["--listen"], 2, "'--listen <URL>'", "a value is required"),
    (["--listen", "stdio", "--listen", "stdio"], 2, "'--listen <URL>'", "multiple times"),
    (["--session-ttl", "-1"], 2, "'-1' for '--session-ttl <SECONDS>'", "must not be negative"),
    (["--session-ttl", "soon"], 2, "'soon' for '--session-ttl <SECONDS>'", "not a number"),
    (["--session-ttl", "1h"], 2, "'1h' for '--session-ttl <SECONDS>'", "not a number"),
    (["--session-ttl", "99999999999"], 2, "'--session-ttl <SECONDS>'", "must be at most 31536000"),
    (["--max-connections", "0"], 2, "'--max-connections <COUNT>'", "between 1 and 1000000"),
    (["--max-processes", "-5"], 2, "'-5' for '--max-processes <COUNT>'", "must not be negative"),
    (["--retained-output", "1"], 2, "'--retained-output <BYTES>'", "between 65536 and 16777216"),
    (["--log-level", "loud"], 2, "'loud' for '--log-level <LEVEL>'", "error, warn, info, debug"),
    (["--log-format", "xml"], 2, "'xml' for '--log-format <FORMAT>'", "text, json"),
    (["--allow-direct-exec", "yes"], 2, "'yes' for '--allow-direct-exec <BOOL>'", "true, false"),
    (["--metrics=yes"], 2, "'--metrics'", "no more were expected"),
    (["--http-host", "a:80"], 2, "'a:80' for '--http-host <NAME>'", "not a host name"),
    (["--trusted-proxy", "10.0.0.0/99"], 2, "'10.0.0.0/99' for '--trusted-proxy <CIDR>'",
     "a network such as 10.0.0.0/8"),
    (["--trusted-proxy", "proxy.example"], 2, "'proxy.example'", "a network such as 10.0.0.0/8"),
    (["--ws-auth", "basic"], 2, "'basic' for '--ws-auth <MODE>'", "capability-token"),
    (["--aws-region", "x"], 2, "'--aws-region <REGION>'", "requires '--remote <URL>'"),
    (["--remote", "https://x"], 1, "--remote", "is not available"),
    (["--command-memory", "5"], 1, "--command-memory", "must be between"),
    (["--command-pids", "9", "--command-pids-max", "8"], 1, "--command-pids", "lower it"),
    (["--command-timeout", "x"], 2, "'x' for '--command-timeout <SECONDS>'", "not a number"),
    # Listening.
    (["--listen", "ws://localhost:0"], 1, "`ws://localhost:0`", WS),
    (["--listen", "wss://127.0.0.1:0"], 1, "`wss://127.0.0.1:0`", WS),
    (["--listen", "http://127.0.0.1:0"], 1, "`http://127.0.0.1:0`", WS),
    (["--listen", "127.0.0.1:0"], 1, "`127.0.0.1:0`", WS),
    (["--listen", "ws://127.0.0.1"], 1, "`ws://127.0.0.1`", WS),
    (["--listen", "ws://127.0.0.1:70000"], 1, "`ws://127.0.0.1:70000`", WS),
    (["--listen", "unix://socket"], 1, "`unix://socket`", "expected `unix:///PATH`"),
    (["--listen", "unix:///" + "x" * 108], 1, "x" * 108, "longer than 107 bytes"),
    (["--listen", "ws://203.0.113.77:0"], 1, "ws://203.0.113.77:0", "see `ip address`"),
    (["--listen", "unix://{dir}/file"], 1, "{dir}/file", "choose another path, or remove it"),
    (["--listen", "unix://{dir}/none/socket"], 1, "{dir}/none/socket", "No such file"),
    (["--listen", "fd://"], 1, "fd://", "systemd"),
    (["--listen", "ws://0.0.0.0:0", "--require-auth"], 1, "`ws://0.0.0.0:0`", "`--ws-auth`"),
    (["--listen", "ws://0.0.0.0:0", "--metrics"], 1, "--metrics", "`--ws-auth`"),
    # Tokens.
    (CAP, 1, "`--ws-auth capability-token`", "`--ws-token-file` or `--ws-token-sha256` is"),
    (JWT, 1, "`--ws-auth signed-bearer-token`", "`--ws-shared-secret-file` is required"),
    (["--ws-token-file", "{dir}/file"], 1, "flags require", "`--ws-auth capability-token`"),
    ([*CAP, "--ws-token-file", "{dir}/none"], 1, "{dir}/none", "No such file"),
    ([*CAP, "--ws-token-file", "{dir}/empty"], 1, "{dir}/empty", "must not be empty"),
    ([*CAP, "--ws-token-sha256", "abc"], 1, "--ws-token-sha256", "64-character hex"),
    ([*CAP, "--ws-tokens-file", "{dir}/file"], 1, "{dir}/file: line 1", "expected `NAME TOKEN`"),
    ([*CAP, "--ws-tokens-file", "{dir}/file", "--ws-token-sha256", "0" * 64], 1,
     "`--ws-tokens-file`", "give one"),
    ([*JWT, "--ws-shared-secret-file", "{dir}/file"], 1, "{dir}/file", "at least 32 bytes"),
    # Files.
    (["--config-file", "{dir}/none"], 1, "{dir}/none", "No such file"),
    (["--config-file", "{dir}/file"], 1, "{dir}/file", "expected"),
    (["--config-file", "{dir}/wrong.json"], 1, "{dir}/wrong.json", "unknown key `listn`"),
    (["--audit-log", "{dir}/none/log"], 1, "{dir}/none/log", "No such file"),
    (["--http-program", "{dir}/none"], 1, "{dir}/none", "No such file"),
    # Health.
    (["health"], 2, "health", "one URL, that of --listen"),
    (["health", "localhost"], 2, "`localhost`", "`ws://IP:PORT` or `unix:///PATH`"),
    (["health", "unix://{dir}/none"], 1, "unix://{dir}/none", "No such file"),
]

MORE = "--help'"
CLIENT = [
    ([], 2, "a command is missing", "see 'xs --help'"),
    (["rnu", "true"], 2, "'rnu'", MORE),
    (["run"], 2, "run", "needs [--] COMMAND"),
    (["run", "--tiny", "true"], 2, "'--tiny'", "see 'xs run --help'"),
    (["run", "--timout", "3", "true"], 2, "'--timout'", "did you mean '--timeout'?"),
    (["atach", "x"], 2, "'atach'", "did you mean 'attach'?"),
    (["--token", "x", "run", "true"], 2, "'--token'", "see 'xs --help'"),
    (["run", "--timeout"], 2, "'--timeout'", "needs a value; see 'xs run --help'"),
    (["run", "--timeout", "-1", "true"], 2, "'-1'", "see 'xs run --help'"),
    (["run", "--timeout", "99999999d", "true"], 2, "'99999999d'", "see 'xs run --help'"),
    (["run", "--env", "=x", "true"], 2, "--env", "needs a name before '='"),
    (["run", "--name", "a b", "true"], 2, "'a b'", "takes 1 to 64 letters, digits"),
    (["run", "-t=yes", "true"], 2, "'-=", MORE),
    (["kill", "-s", "NOPE", "x"], 2, "'NOPE'", "takes one of: INT TERM KILL"),
    (["attach"], 2, "attach", "needs NAME"),
    (["attach", "nosuch"], 1, "nosuch", "see 'xs ps'"),
    (["kill", "nosuch"], 1, "nosuch", "see 'xs ps'"),
    (["attach", "../x"], 1, "../x", "see 'xs ps'"),
    (["ps", "extra"], 2, "'extra'", "see 'xs ps --help'"),
    (["ls"], 2, "no exec-server is named", "environments.toml or CODEX_EXEC_SERVER_URL"),
    (["mv", ":a"], 2, "mv", "needs SOURCE DESTINATION"),
    (["chmod", "644"], 2, "chmod", "needs MODE PATH..."),
    (["completion"], 2, "completion", "needs SHELL"),
    (["-H", "ws://127.0.0.1:99999", "run", "true"], 2, "ws://127.0.0.1:99999", "port"),
    (["-H", "ssh://", "run", "true"], 2, "ssh://", "bad host name"),
    (["-H", "unix://{dir}/file", "run", "true"], None, "{dir}/file", "Connection refused"),
    (["-H", "ws://[::1", "run", "true"], 2, "ws://[::1", "invalid IPv6 address"),
    (["-H"], 2, "-H", "see 'xs "),
    (["run", "true"], 2, "no exec-server is named", "environments.toml or CODEX_EXEC_SERVER_URL"),
    (["-H", "nosuch", "run", "true"], 2, "nosuch", "no environment is called"),
    (["-H", "ws://", "run", "true"], 2, "ws://", "host"),
    (["-H", "ws://a:x", "run", "true"], 2, "ws://a:x", "port"),
    (["-H", "http://127.0.0.1:1", "run", "true"], 2, "http://127.0.0.1:1", "not one of ws:"),
    (["-H", "unix://socket", "run", "true"], 2, "unix://socket", "needs an absolute path"),
    (["-H", "ssh://-x", "run", "true"], 2, "ssh://-x", "bad host name"),
    (["-H", "fd:x", "run", "true"], 2, "fd:x", "fd:IN,OUT"),
    (["-H", "ws://u:p@127.0.0.1:1", "run", "true"], 2, "ws://127.0.0.1:1", "give a token"),
    (["-H", "ws://127.0.0.1:1", "run", "true"], None, "ws://127.0.0.1:1", "Connection refused"),
    (["-H", "unix://{dir}/none", "run", "true"], None, "{dir}/none", "No such file"),
    (["cp", "one"], 2, "cp", "needs SOURCE... DESTINATION"),
    (["cp", "one", "two"], 2, "one and two are both here", ":PATH is there"),
    (["chmod", "999", ":x"], 2, "'999'", "a mode is octal"),
    (["completion", "tcsh"], 2, "'tcsh'", "bash, zsh or fish"),
    (["run", "--timeout", "soon", "true"], 2, "soon", ""),
]

MCP_MORE = "see 'exec-server mcp --help'"
NO_PROGRAM = "is not a file that can be executed"
MCP = [
    (["--intercpt", "notify"], 2, "'--intercpt'", "did you mean '--intercept'?"),
    (["--audit-lg={dir}/log"], 2, "'--audit-lg'", "did you mean '--audit-log'?"),
    (["--nonsense"], 2, "'--nonsense'", MCP_MORE),
    (["--listen", "stdio"], 2, "'--listen'", MCP_MORE),
    (["-x"], 2, "'-x'", MCP_MORE),
    (["extra"], 2, "'extra'", MCP_MORE),
    ([""], 2, "''", MCP_MORE),
    (["--bash"], 2, "'--bash <PATH>'", "a value is required"),
    (["--execve="], 2, "'--execve <PATH>'", "a value is required"),
    (["--system-config"], 2, "'--system-config <DIR>'", "a value is required"),
    (["--compat=yes"], 2, "'--compat'", "it takes none"),
    (["--intercept", "sometimes"], 2, "'sometimes' for '--intercept <MODE>'",
     "possible values: auto, notify, wrapper, off"),
    (["--log-level", "loud"], 2, "'loud' for '--log-level <LEVEL>'",
     "possible values: error, warn, info, debug, off"),
    (["--intercept", "wrapper"], 1, "--intercept wrapper", "needs --bash or CODEX_BASH_PATH"),
    (["--bash", "/bin/sh"], 1, "codex-execve-wrapper", "use --execve"),
    (["--bash", "{dir}/none", "--execve", "{dir}/none"], 1, "{dir}/none", NO_PROGRAM),
    (["--bash", "/bin/sh", "--execve", "{dir}/none"], 1, "--execve: {dir}/none", NO_PROGRAM),
    (["--bash", "{dir}/none", "--intercept", "notify"], 1, "{dir}/none", NO_PROGRAM),
    (["--audit-log", "{dir}/none/log"], 1, "{dir}/none/log", "No such file"),
    (["--audit-log", "{dir}"], 1, "{dir}", "Is a directory"),
    (["--system-config", "{dir}/file"], 1, "{dir}/file", "Not a directory"),
]
MCP_HOMES = [("{dir}/none", "which does not exist: create it, or unset it"),
             ("{dir}/file", "which is not a directory: create it, or unset it")]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "file").write_text("word\n")
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "wrong.json").write_text('{"listn": "stdio"}')
    return tmp_path


def check(err, thing, advice):
    assert err.endswith("\n") and err.count("\n") == 1, err
    assert thing in err, err
    assert advice in err, err


def test_there_are_enough():
    assert len(SERVER) >= 60 and len(CLIENT) >= 40 and len(MCP) >= 20


@pytest.mark.parametrize("args, status, thing, advice", SERVER)
def test_server(place, args, status, thing, advice):
    code, out, err = run(*[a.format(dir=place) for a in args])
    assert (code, out) == (status, ""), err
    assert err.startswith("error: " if status == 2 else "Error: "), err
    check(err.partition("\n\nUsage")[0].rstrip("\n") + "\n", thing.format(dir=place), advice)


@pytest.mark.parametrize("args, status, thing, advice", CLIENT)
def test_client(place, args, status, thing, advice):
    done = subprocess.run([XS, *[a.format(dir=place) for a in args]], cwd=place,
                          env=environment({"HOME": str(place), "CODEX_HOME": str(place)}),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    err = done.stderr.decode()
    assert done.stdout == b"" and (done.returncode == status if status else done.returncode), err
    assert err.startswith("xs: "), err
    check(err, thing.format(dir=place), advice)


@pytest.mark.parametrize("file, advice", [("none", "No such file"), ("blank", "it is empty"),
                                          ("words", "has characters that no header can have")])
def test_token_file_of_xs(fleet, place, file, advice):
    (place / "blank").write_text("\n")
    (place / "words").write_text("two words\n")
    url = fleet.start().url
    done = subprocess.run([XS, "-H", url, "--token-file", file, "run", "true"], cwd=place,
                          env=environment({"HOME": str(place)}), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (255, b"")
    check(done.stderr.decode(), "token" if file == "words" else file, advice)


def mcp(place, *args, **more):
    done = subprocess.run([BINARY, "mcp", *args], cwd=place, stdin=subprocess.DEVNULL,
                          env=environment({"HOME": str(place), **more}), capture_output=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize("args, status, thing, advice", MCP)
def test_mcp(place, args, status, thing, advice):
    code, out, err = mcp(place, *[a.format(dir=place) for a in args])
    assert (code, out) == (status, b""), err
    assert err.startswith("error: " if status == 2 else "Error: "), err
    check(err, thing.format(dir=place), advice)


@pytest.mark.parametrize("home, advice", MCP_HOMES)
def test_mcp_without_a_home(place, home, advice):
    code, out, err = mcp(place, CODEX_HOME=home.format(dir=place))
    assert (code, out) == (1, b"")
    check(err, home.format(dir=place), advice)


def test_mcp_names_the_line_of_a_bad_rule(place):
    (place / "rules").mkdir()
    (place / "rules" / "a.rules").write_text('prefix_rule(patern=["x"])\n')
    code, out, err = mcp(place, CODEX_HOME=str(place))
    assert (code, out) == (1, b"")
    assert f"{place}/rules/a.rules:1:1" in err and "Missing parameter `pattern`" in err


# What needs more than a command line.

def test_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = run("--listen", url)
    assert (code, out) == (1, "")
    check(err, f"cannot listen on {url}: ", "choose another port, or 0 for any")


@ROOT_ONLY
def test_low_port_as_a_plain_user(tmp_path):
    limit = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not limit.exists() or int(limit.read_text()) <= 80:
        pytest.skip("port 80 is for everybody here")
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", BINARY, "--listen",
                           "ws://127.0.0.1:80"], env=environment(), cwd="/", timeout=120,
                          capture_output=True, check=False)
    assert done.returncode == 1
    check(done.stderr.decode(), "cannot listen on ws://127.0.0.1:80: Permission denied",
          "choose another port")


def test_socket_in_use(fleet, tmp_path):
    url = fleet.start(listen=f"unix://{tmp_path}/socket").url
    code, _, err = run("--listen", url)
    assert code == 1
    check(err, url, "choose another path")


def test_open_token_file(fleet, tmp_path):
    path = tmp_path / "token"
    path.write_text("t")
    path.chmod(stat.S_IRUSR | stat.S_IROTH)
    server = fleet.start("--log-level", "warn", *CAP, "--ws-token-file", str(path), quiet=False)
    check(server.stderr(), str(path), f"run `chmod o-rwx {path}`")


@pytest.mark.parametrize("path, option", [("/metrics", "--metrics"), ("/v1/files", "--http-files")])
def test_path_that_is_off(fleet, path, option):
    answer = fleet.start().http().ask(path)
    assert (answer.status, answer.body) == (404, f"the server was started without {option}".encode())


@pytest.mark.parametrize("headers", [[("Host", "foreign.example")],
                                     [("Host", "127.0.0.1"), ("Sec-Fetch-Mode", "cors")]])
def test_metrics_for_a_foreign_host(fleet, headers):
    answer = fleet.start("--metrics").http().ask("/metrics", headers=headers)
    assert answer.status == 403
    check(answer.body.decode() + "\n", "Host", "--http-host")


@pytest.mark.parametrize("header, text", [(None, b"missing websocket bearer token"),
                                          ("Bearer x", b"invalid websocket bearer token"),
                                          ("Basic x", b"invalid authorization header")])
def test_wrong_token(fleet, header, text):
    server = fleet.start(*CAP, "--ws-token-sha256", "0" * 64)
    with pytest.raises(Refused) as refused:
        server.websocket(headers=[("Authorization", header)] if header else [])
    assert (refused.value.response.status, refused.value.response.body) == (401, text)


def test_xs_names_a_refused_token(fleet, tmp_path):
    server = fleet.start(*CAP, "--ws-token-sha256", "0" * 64)
    done = subprocess.run([XS, "-H", server.url, "run", "true"], timeout=120, capture_output=True,
                          env=environment({"HOME": str(tmp_path), "XS_TOKEN": "sekret"}),
                          stdin=subprocess.DEVNULL, check=False)
    err = done.stderr.decode()
    check(err, server.url, "token")
    assert "sekret" not in err and done.returncode != 0 and os.path.exists(XS)

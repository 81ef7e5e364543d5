"""The config file and --print-config."""

import json
import os

import pytest

from harness.server import run
from harness.ws import Refused

# Every key, with a value that is not the default.
SAMPLE = {
    "listen": "ws://127.0.0.1:0", "concurrentRequests": 4, "maxConnections": 7,
    "requireAuth": True, "httpHosts": ["box.example"], "metrics": True, "httpFiles": True,
    "sessionTtlMs": 1234, "sessionTtlMaxMs": 5678, "closedRetentionMaxMs": 8765,
    "keepDetached": True, "allowAttach": True, "maxProcessesPerConnection": 3,
    "retainedOutputBytesPerProcess": 70000, "closedRetentionMs": 2500,
    "closedOutputBytesMax": 1000000, "shutdownGracePeriodMs": 10, "allowDirectExec": False,
    "allowPreparedExec": False, "linuxSandboxPidNamespace": "inherit", "auditLog": "/var/log/exec-server", "logLevel": "off",
    "logFormat": "json", "trustedProxies": ["10.0.0.0/8", "unix"],
    "commandMemoryBytes": 1 << 30, "commandMemoryBytesMax": 1 << 31, "commandPids": 100,
    "commandPidsMax": 200, "commandCpuPercent": 150, "commandCpuPercentMax": 400,
    "commandTimeoutMs": 1500, "commandTimeoutMaxMs": 60000,
    "console": "ws://127.0.0.1:0", "consoleControl": True, "consoleHosts": ["box"],
    "consolePage": "/usr/share/page",
}


@pytest.fixture
def config(tmp_path):
    """Writes a config file and returns its path."""
    def write(value):
        path = tmp_path / "config.json"
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)
    return write


def print_config(*args, **options):
    """What the program says holds."""
    code, out, err = run("--print-config", *args, **options)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_defaults():
    assert print_config() == {
        "listen": "ws://127.0.0.1:0", "concurrentRequests": 1, "maxConnections": 1024,
        "requireAuth": False, "httpHosts": [], "metrics": False, "httpFiles": False,
        "sessionTtlMs": 30000, "sessionTtlMaxMs": 86400000, "closedRetentionMaxMs": 86400000,
        "keepDetached": False, "allowAttach": False, "maxProcessesPerConnection": 0,
        "retainedOutputBytesPerProcess": 1048576, "closedRetentionMs": 30000,
        "closedOutputBytesMax": 67108864, "shutdownGracePeriodMs": 0, "allowDirectExec": True,
        "allowPreparedExec": True, "linuxSandboxPidNamespace": "isolate", "logLevel": "info",
        "logFormat": "text", "trustedProxies": [],
        "commandMemoryBytes": 0, "commandMemoryBytesMax": 0, "commandPids": 0,
        "commandPidsMax": 0, "commandCpuPercent": 0, "commandCpuPercentMax": 0,
        "commandTimeoutMs": 0, "commandTimeoutMaxMs": 0, "consoleControl": False,
        "consoleHosts": [],
    }


def test_sample_covers_every_key():
    assert set(print_config()) == set(SAMPLE) - {"auditLog", "console", "consolePage"}


def test_every_key(config):
    assert print_config("--config-file", config(SAMPLE)) == SAMPLE


@pytest.mark.parametrize("key", sorted(SAMPLE))
def test_one_key(config, key):
    want = {**print_config(), key: SAMPLE[key]}
    assert print_config("--config-file", config({key: SAMPLE[key]})) == want


def test_printed_file_is_a_config_file(config):
    first = run("--print-config", "--config-file", config(SAMPLE))[1]
    assert run("--print-config", "--config-file", config(first))[1] == first


@pytest.mark.parametrize("args, key, value", [
    (["--closed-retention", "1.5"], "closedRetentionMs", 1500),
    (["--max-processes", "9"], "maxProcessesPerConnection", 9),
    (["--retained-output", "65536"], "retainedOutputBytesPerProcess", 65536),
    (["--shutdown-grace-ms", "77"], "shutdownGracePeriodMs", 77),
    (["--allow-direct-exec", "true"], "allowDirectExec", True),
    (["--allow-prepared-exec=true"], "allowPreparedExec", True),
    (["--http-host", "a", "--http-host", "b"], "httpHosts", ["a", "b"]),
    (["--audit-log", "/x"], "auditLog", "/x"),
    (["--closed-output-max", "0"], "closedOutputBytesMax", 0),
    (["--session-ttl", "2"], "sessionTtlMs", 2000),
    (["--session-ttl-max", "0.5"], "sessionTtlMaxMs", 500),
    (["--closed-retention-max", "3"], "closedRetentionMaxMs", 3000),
    (["--max-connections", "1"], "maxConnections", 1),
    (["--concurrent-requests", "2"], "concurrentRequests", 2),
    (["--log-level", "warn"], "logLevel", "warn"),
    (["--log-format", "text"], "logFormat", "text"),
    (["--trusted-proxy", "::1"], "trustedProxies", ["::1"]),
    (["--command-memory", "2000000"], "commandMemoryBytes", 2000000),
    (["--command-memory-max", "5000000000"], "commandMemoryBytesMax", 5000000000),
    (["--command-pids", "7"], "commandPids", 7),
    (["--command-pids-max", "300"], "commandPidsMax", 300),
    (["--command-cpu-percent", "50"], "commandCpuPercent", 50),
    (["--command-cpu-percent-max", "800"], "commandCpuPercentMax", 800),
    (["--command-timeout", "0.5"], "commandTimeoutMs", 500),
    (["--command-timeout-max", "9"], "commandTimeoutMaxMs", 9000),
    (["--console", "ws://[::1]:1"], "console", "ws://[::1]:1"),
    (["--console-control"], "consoleControl", True),
    (["--console-host", "a", "--console-host", "b"], "consoleHosts", ["a", "b"]),
    (["--console-page", "/x"], "consolePage", "/x"),
    (["--listen", "stdio"], "listen", "stdio"),
])
def test_command_line_wins(config, args, key, value):
    assert print_config("--config-file", config(SAMPLE), *args) == {**SAMPLE, key: value}
    assert print_config(*args)[key] == value


def test_environment_wins_over_file(config):
    got = print_config("--config-file", config(SAMPLE), env={"EXEC_SERVER_LOG": "info"})
    assert got["logLevel"] == "info"


@pytest.mark.parametrize("text, reason", [
    ('{"bogus": 1}', "unknown key `bogus`"),
    ('{"maxProcesses": 1}', "unknown key `maxProcesses`"),
    ('{"wsToken": "secret"}', "unknown key `wsToken`"),
    ('{"metrics": "yes"}', "`metrics` must be true or false"),
    ('{"maxConnections": "9"}', "`maxConnections` must be a whole number"),
    ('{"maxConnections": 0}', "`maxConnections` must be between 1 and 1000000"),
    ('{"retainedOutputBytesPerProcess": 65535}',
     "`retainedOutputBytesPerProcess` must be between 65536 and 16777216"),
    ('{"shutdownGracePeriodMs": 3600001}', "`shutdownGracePeriodMs` must be at most 3600000"),
    ('{"auditLog": null}', "`auditLog` must be a string"),
    ('{"httpHosts": "a"}', "`httpHosts` must be an array of host names"),
    ('{"httpHosts": ["a/b"]}', "`httpHosts`: `a/b`: not a host name"),
    ('{"trustedProxies": "a"}', "`trustedProxies` must be an array of networks"),
    ('{"trustedProxies": ["10.0.0.0/33"]}', "`trustedProxies`: `10.0.0.0/33`: "
     "not an address, a network such as 10.0.0.0/8, or `unix`"),
    ('{"logLevel": "loud"}', "`logLevel` must be one of `error`, `warn`, `info`, `debug`, `off`"),
    ('{"listen": "ws://x"}',
     "`listen`: invalid websocket --listen URL `ws://x`; expected `ws://IP:PORT`"),
    ("[]", "must be a JSON object"),
])
@pytest.mark.parametrize("mode", [[], ["--print-config"]])
def test_bad_file(config, text, reason, mode):
    path = config(text)
    assert run("--config-file", path, *mode) == (1, "", f"Error: config file {path}: {reason}\n")


@pytest.mark.parametrize("text", ["", "{", "{}{}", '{"metrics": true, "metrics": true}', "# x"])
def test_not_json(config, text):
    path = config(text)
    code, out, err = run("--config-file", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"Error: config file {path}: ") and err.count("\n") == 1


def test_not_utf8(config):
    path = config(b'{"auditLog": "\xff"}')
    assert run("--config-file", path) == (
        1, "", f"Error: config file {path} is not valid UTF-8\n")


def test_largest_file(config):
    limit = 1 << 20
    path = config("{" + " " * (limit - 2) + "}")
    assert run("--config-file", path, "--print-config")[0] == 0
    config("{" + " " * (limit - 1) + "}")
    assert run("--config-file", path) == (
        1, "", f"Error: config file {path} is larger than {limit} bytes\n")
    os.truncate(path, 1 << 40)  # must not be read whole
    assert run("--config-file", path)[0] == 1


def test_missing_file(tmp_path):
    path = tmp_path / "absent"
    assert run("--config-file", str(path)) == (
        1, "", f"Error: failed to read config file {path}: "
        "No such file or directory (os error 2)\n")


def test_twice(config):
    path = config({})
    code, out, err = run("--config-file", path, "--config-file", path)
    assert (code, out) == (2, "")
    assert "cannot be used multiple times" in err


def test_secrets_are_not_printed(config, tmp_path):
    (tmp_path / "token").write_text("very-secret-token")
    (tmp_path / "secret").write_text("very-secret-secret-of-enough-bytes")
    capability = {"wsAuth": "capability-token", "wsTokenFile": "token"}
    code, out, _ = run("--config-file", config(capability), "--print-config", cwd=tmp_path)
    assert code == 0 and "very-secret" not in out
    got = json.loads(out)
    assert got["wsAuth"] == "capability-token" and got["wsTokenFile"] == str(tmp_path / "token")
    signed = {"wsAuth": "signed-bearer-token", "wsSharedSecretFile": "secret", "wsIssuer": "me",
              "wsMaxClockSkewSeconds": 5}
    code, out, _ = run("--config-file", config(signed), "--print-config", cwd=tmp_path)
    assert code == 0 and "very-secret" not in out
    assert {**json.loads(out), **signed} == {
        **json.loads(out), **signed, "wsSharedSecretFile": "secret"}
    assert run("--config-file", config(out), "--print-config", cwd="/")[1] == out


def test_secret_is_checked(config):
    path = config({"wsAuth": "capability-token", "wsTokenFile": "/nonexistent/token"})
    assert run("--config-file", path, "--print-config") == (
        1, "", "Error: failed to read websocket auth secret /nonexistent/token: "
        "No such file or directory (os error 2)\n")


def test_file_is_used(fleet, config, tmp_path):
    (tmp_path / "token").write_text("secret-token")
    path = config({"listen": "ws://127.0.0.2:0", "wsAuth": "capability-token",
                   "wsTokenFile": str(tmp_path / "token")})
    server = fleet.start("--config-file", path, listen=None)
    assert server.address[0] == "127.0.0.2"
    with pytest.raises(Refused) as refusal:
        server.client()
    assert refusal.value.response.status == 401
    server.client(headers=[("Authorization", "Bearer secret-token")]).sync()


def test_limit_from_file(fleet, config):
    server = fleet.start("--config-file", config({"maxConnections": 1}))
    client = server.client()
    assert server.http().read().status == 503
    client.sync()


def test_file_through_a_pipe():
    """What a shell passes as <(...) is read to its end."""
    reader, writer = os.pipe()
    os.write(writer, b'{"metrics": true}')
    os.close(writer)
    try:
        got = print_config("--config-file", "/dev/stdin", stdin=reader)
    finally:
        os.close(reader)
    assert got["metrics"] is True


def test_old_config_option_is_ignored(config):
    """-c and --config are options of the reference and have nothing to do with the file."""
    assert print_config("-c", "metrics=true", "--config", config({"metrics": True})) == \
        print_config()

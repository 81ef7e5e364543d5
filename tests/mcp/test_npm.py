"""The npm package, as npx starts it from its file, driven by the official SDK's client."""

import json
import os
import shutil
import subprocess
import tarfile

import pytest

from conftest import package
from harness.settings import BINARY, PATIENCE, ROOT
from test_sdk import HERE


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program under test, without what debuggers want: it is packed faster."""
    path = tmp_path_factory.mktemp("program") / "exec-server"
    subprocess.run(["strip", "-o", path, BINARY], check=True, timeout=PATIENCE)
    return path


@pytest.fixture(scope="module")
def tarball(program, tmp_path_factory):
    if shutil.which("npx") is None:
        pytest.skip("there is no npx")
    out = tmp_path_factory.mktemp("npm")
    subprocess.run([ROOT / "tools" / "npm", program, out], check=True, timeout=PATIENCE)
    [path] = out.glob("exec-server-mcp-*.tgz")
    return path


@pytest.fixture
def env(tmp_path):
    """npm keeps everything in a directory of the test, and asks no registry."""
    return {**os.environ, "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path),
            "npm_config_cache": str(tmp_path / "cache"), "npm_config_offline": "true",
            "npm_config_userconfig": "/dev/null", "npm_config_update_notifier": "false"}


def test_what_is_in_it(tarball):
    with tarfile.open(tarball) as tar:
        modes = {m.name: m.mode for m in tar}
        about = json.load(tar.extractfile("package/package.json"))
    program = f"package/bin/exec-server-{os.uname().machine}"
    assert modes == {"package/LICENSE": 0o644, "package/README.md": 0o644, program: 0o755,
                     "package/exec-server-mcp": 0o755, "package/package.json": 0o644}
    assert about["bin"] == {"exec-server-mcp": "exec-server-mcp"}
    assert (about["name"], about["os"]) == ("exec-server-mcp", ["linux"])
    assert "scripts" not in about and "dependencies" not in about
    program = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True)
    assert program.stdout.split()[1] == about["version"]


def test_the_bytes_depend_on_the_input_alone(program, tarball, tmp_path):
    subprocess.run([ROOT / "tools" / "npm", program, tmp_path], check=True, timeout=PATIENCE)
    [again] = tmp_path.glob("*.tgz")
    assert again.read_bytes() == tarball.read_bytes()


def test_npx_and_the_sdk(tarball, env, tmp_path):
    sdk = package("@modelcontextprotocol/sdk", "1.32.2")
    done = subprocess.run(
        ["node", HERE / "sdk_client.mjs", "--brief", "1", sdk, "npx", "-y", f"file:{tarball}",
         "--system-config", tmp_path / "none"],
        env=env, capture_output=True, text=True, timeout=PATIENCE + 60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    seen["result"].pop("duration")
    assert seen == {"version": "exec-server", "tools": ["shell", "write_stdin"],
                    "result": {"exit_code": 3, "output": "out\n", "timed_out": False}}


def test_installed_it_keeps_options_and_status(tarball, env, tmp_path):
    place = tmp_path / "a project"
    place.mkdir()
    subprocess.run(["npm", "install", "--prefix", place, tarball], env=env, check=True,
                   capture_output=True, timeout=PATIENCE)
    program = place / "node_modules" / ".bin" / "exec-server-mcp"
    done = subprocess.run([program, "--intercept", "sometimes"], env=env, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and "'sometimes' for '--intercept <MODE>'" in done.stderr


def test_another_machine_is_named(tarball, tmp_path):
    with tarfile.open(tarball) as tar:
        tar.extractall(tmp_path)
    shutil.rmtree(tmp_path / "package" / "bin")
    done = subprocess.run([tmp_path / "package" / "exec-server-mcp"], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"has no program for {os.uname().machine}" in done.stderr


def test_a_file_that_is_no_program(tmp_path):
    done = subprocess.run([ROOT / "tools" / "npm", __file__, tmp_path], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1 and f"npm: {__file__} is no program" in done.stderr

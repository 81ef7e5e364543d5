"""The client of doc/write-a-client.md, as it stands there, with connections that are cut."""

import hashlib
import re
import subprocess

import pytest

from harness import cutting
from harness.server import environment
from harness.settings import ROOT

PYTHON = "/usr/bin/python3"
TEXT = (ROOT / "doc" / "write-a-client.md").read_text()
LINES = 60_000


@pytest.fixture
def program(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    path = tmp_path / "client.py"
    path.write_text(code)
    return path


def run(program, url, *argv, stdin=b"", token=None):
    done = subprocess.run([PYTHON, str(program), url, *argv], input=stdin, capture_output=True,
                          timeout=600, check=False,
                          env={**environment(), **({"TOKEN": token} if token else {})})
    return done.returncode, done.stdout, done.stderr.decode()


def test_it_is_as_short_as_promised(program):
    lines = [line for line in program.read_text().splitlines()
             if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 140


def test_the_example(fleet, program):
    server = fleet.start()
    assert run(program, server.url, "tr", "a-z", "A-Z", stdin=b"hello\n") == (0, b"HELLO\n", "")
    assert run(program, server.url, "sh", "-c", "echo out; echo err >&2; exit 3") == (
        3, b"out\n", "err\n")


def test_token_and_errors(fleet, program):
    digest = hashlib.sha256(b"a-token").hexdigest()
    server = fleet.start("--ws-auth", "capability-token", "--ws-token-sha256", digest)
    assert run(program, server.url, "true", token="a-token")[0] == 0
    assert "401" in run(program, server.url, "true", token="b")[2]
    code, _, err = run(program, server.url, "no-such-program", token="a-token")
    assert code == 1 and "No such file" in err


@pytest.mark.parametrize("kind", [cutting.FIN, cutting.RST])
def test_cut_connections(fleet, program, kind):
    """Input, output and the start happen once, however often the connection is cut."""
    server = fleet.start()
    stdin = b"".join(b"line %d\n" % i for i in range(LINES))
    plan = [cutting.Cut(cutting.DOWN, 5000, kind), cutting.Cut(cutting.UP, 3000, kind)]
    plan += [cutting.Cut(direction, 50_007 * i, kind) for i in range(1, 5)
             for direction in (cutting.DOWN, cutting.UP)]
    cuts = 0
    for _ in range(5):  # how much is left to be cut after a resume depends on the time
        with cutting.Proxy(server.address, plan) as proxy:
            code, out, err = run(program, proxy.url, "sh", "-c", "echo begin; cat; exit 7",
                                 stdin=stdin)
            assert proxy.cuts
            cuts += len(proxy.cuts)
        assert (code, err) == (7, "")
        assert out == b"begin\n" + stdin
    assert cuts >= 5


def test_start_whose_answer_is_lost(fleet, program, tmp_path):
    """Wherever the connection ends, the command runs once."""
    server = fleet.start()
    for at in range(900, 1700, 200):
        log = tmp_path / f"log-{at}"
        with cutting.Proxy(server.address, [cutting.Cut(cutting.DOWN, at)]) as proxy:
            code, _, err = run(program, proxy.url, "sh", "-c", f"echo once >>{log}")
        assert log.read_text() == "once\n" if code == 0 else "lost" in err, (at, code, err)

"""Interception of execs (src/intercept), with the driver of tests/intercept in the server's place."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from harness.settings import BINARY, PATIENCE
from harness.waiting import until

BUILT = pathlib.Path(BINARY).resolve().parent / "tests"
DRIVER, WAYS = BUILT / "intercept-driver", BUILT / "exec-ways"
X86 = os.uname().machine == "x86_64"
MARK = 99  # exit status of the program that rules name
WAYS_64 = ["execve", "execvp", "fexecve", "path-fd", "dev-fd", "proc-fd", "proc-root",
           "execveat-dir", "relative", "dots", "link", "script", "nested", "memfd", "thread",
           "setsid", "vfork", "spawn"]
I386 = """
.code32
.globl _start
_start: mov %esp,%ebp
 lea 8(%ebp),%ecx
 mov (%ecx),%ebx
 mov (%ebp),%edx
 lea 8(%ebp,%edx,4),%edx
 mov $11,%eax
 int $0x80
 mov $213,%ebx
 mov $1,%eax
 int $0x80
"""


class Place:
    """A directory with the programs, and the driver."""

    def __init__(self, path, programs):
        self.path = path
        self.log = path / "log"
        self.evil = path / "evil"
        self.good = path / "good"
        for program in programs.iterdir():
            shutil.copy(program, path)

    def argv(self, options, command):
        return [DRIVER, "--log", self.log, *options, "--", *command]

    def run(self, options, command, **more):
        """The finished driver; `command` is a list, or a script for bash."""
        if isinstance(command, str):
            command = ["/bin/bash", "-c", command]
        return subprocess.run(self.argv(options, command), cwd=self.path, text=True,
                              timeout=PATIENCE * 4, capture_output=True, **more)

    def start(self, options, command, **more):
        return subprocess.Popen(self.argv(options, command), cwd=self.path, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def events(self):
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text(errors="surrogateescape").split("\n")[:-1]]

    def asked(self, name):
        return [e for e in self.events() if pathlib.Path(e.get("file") or "").name == name]

    def happened(self, event):
        return [e for e in self.events() if e.get("event") == event]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Static programs: `evil` exits with MARK, `good` only if its argument is `badly`."""
    made = tmp_path_factory.mktemp("programs")
    source = tmp_path_factory.mktemp("sources") / "program.c"
    for name, evil in (("evil", 1), ("good", 0)):
        source.write_text("#include <string.h>\nint main(int c, char **v) {\n    return %d || "
                          "(c > 1 && strcmp(v[1], \"badly\") == 0) ? %d : 0;\n}\n" % (evil, MARK))
        subprocess.run(["cc", "-static", "-o", made / name, source], check=True)
    return made


@pytest.fixture
def place(tmp_path, programs):
    return Place(tmp_path, programs)


@pytest.mark.parametrize("way", WAYS_64)
def test_every_way_to_start_a_program_is_decided(place, way):
    start = [WAYS, way, place.evil]
    rules = ["evil", "memfd:evil"]
    assert place.run([], start).returncode == MARK
    shutil.rmtree(place.path / "exec-ways-link", ignore_errors=True)
    denied = place.run([o for name in rules for o in ("--deny", name + "=because")], start)
    assert (denied.returncode, denied.stderr) == (1, "Execution denied: because\n")
    place.log.unlink()
    escalated = place.run(["--descendants", "--escalate", "evil"], start)
    assert escalated.returncode == MARK
    assert len(place.happened("escalated")) == (0 if way == "memfd" else 1)


@pytest.mark.skipif(not X86, reason="calls of x86")
def test_calls_of_32_bit_programs_are_decided(place):
    (place.path / "i386.S").write_text(I386)
    subprocess.run(["cc", "-m32", "-nostdlib", "-static", "-o", place.path / "i386",
                    place.path / "i386.S"], check=True)
    start = [place.path / "i386", place.evil]
    if subprocess.run(start, check=False).returncode != MARK:
        pytest.skip("this kernel runs no 32-bit programs")
    assert place.run([], start).returncode == MARK
    denied = place.run(["--deny", "evil=32"], start)
    assert (denied.returncode, denied.stderr) == (1, "Execution denied: 32\n")
    assert place.run(["--descendants", "--escalate", "evil"], start).returncode == MARK
    assert place.happened("escalated")
    # From a 64-bit program nothing can be injected: the call fails.
    assert place.run([], [WAYS, "int80", place.evil]).returncode == MARK
    assert place.run(["--deny", "evil"], [WAYS, "int80", place.evil]).returncode == 213


INDIRECT = {
    "plain": "./evil", "exec": "exec ./evil", "subshell": "(./evil)", "pipeline": "true | ./evil",
    "substitution": "x=$(./evil); exit $?", "command": "command ./evil", "env": "env -i ./evil",
    "xargs": "echo | xargs ./evil", "find": "find . -name evil -exec {} ';'",
    "sh": "sh -c './evil; exit $?'", "dash": "dash -c './evil; exit $?'", "nice": "nice ./evil",
    "timeout": "timeout 60 ./evil", "nohup": "nohup ./evil", "setsid": "setsid -w ./evil",
    "background": "./evil & wait $!", "trap": "trap ./evil EXIT; exit 0",
    "python": "python3 -c 'import subprocess, sys; sys.exit(subprocess.call(\"./evil\"))'",
    "perl": "perl -e 'exit(system(\"./evil\") >> 8)'",
    "make": "printf 'all:\\n\\t./evil\\n' >Makefile; make -s",
    "unset": "unset BASH_EXEC_WRAPPER EXEC_WRAPPER; ./evil",
    "hash": "PATH=.:$PATH; evil", "path": "PATH=/nonexistent:$PWD:$PATH; evil",
    "script": "printf '#!%s\\n' $PWD/evil >s; chmod +x s; ./s",
    "link": "ln -s evil other; ./other",
}


@pytest.mark.parametrize("start", INDIRECT)
def test_a_denial_holds_however_the_program_is_started(place, start):
    script = INDIRECT[start]
    place.run([], script)
    assert place.asked("evil") or start == "script"
    denied = place.run(["--deny", "evil=no evil"], script)
    assert "Execution denied: no evil" in denied.stderr
    assert denied.returncode != MARK


def test_builtins_and_programs_that_do_not_exist_are_not_asked_about(place):
    done = place.run([], "PATH=/nonexistent:/usr/lib:$PATH; cd .; echo x; [ 1 = 1 ]; "
                     "env nothing-such; ./nor-this; /etc/passwd; /usr/bin; exit 3")
    assert done.returncode == 3
    assert [pathlib.Path(e["path"]).name for e in place.events()] == ["env"]
    assert "No such file" in done.stderr and "Permission denied" in done.stderr
    codes = place.run([], "nothing-such; echo $?; /etc/passwd; echo $?").stdout
    assert codes == "127\n126\n"


def test_the_decision_sees_what_the_kernel_sees(place):
    place.run([], "ln -s evil other; cd /; exec -a name '%s/other' 'a b' ''" % place.path)
    seen = place.asked("evil")[0]
    assert seen["path"] == f"{place.path}/other" and seen["file"] == str(place.evil)
    assert seen["argv"] == ["name", "a b", ""] and seen["cwd"] == "/" and seen["byShell"]


def test_only_the_shells_own_calls_are_escalated(place):
    done = place.run(["--escalate", "evil"],
                     "./evil; (./evil); bash -c './evil; :'; env ./evil; sh -c ./evil")
    assert done.returncode == MARK
    assert [e["verdict"] for e in place.asked("evil")] == 3 * ["escalate"] + 2 * ["run"]


def test_large_and_strange_arguments(place):
    script = ("import os, sys\n"
              "big = 'x' * 100000\n"
              "os.spawnv(os.P_WAIT, './evil', ['evil'] + [big] * 8 + ['\\udcff'])\n"
              "def failing(*a):\n"
              "    try: os.execve(*a)\n"
              "    except OSError as e: print(e.errno)\n"
              "failing('./evil', ['evil'] + [big] * 40, {})\n"
              "failing('./' + 'y' * 5000, ['y'], {})\n"
              "failing('./evil/x', ['y'], {})\n")
    done = place.run([], ["/usr/bin/python3", "-c", script])
    assert done.stdout.split() == ["7", "36", "20"]
    assert len(place.asked("evil")[0]["argv"]) == 10


# -- escalation --


def test_an_escalated_program_has_all_that_the_caller_had(place):
    script = ("trap '' USR1; umask 027; ulimit -n 77; nice -n 5 true; cd /usr; "
              "exec 3>%s/three 4</dev/null; "
              "PRE=x bash -c 'echo out; echo err >&2; echo 3 >&3; umask; ulimit -n; pwd; "
              "echo $PRE; grep -E ^Sig[IB] /proc/self/status; grep NoNew /proc/self/status; "
              "[ -e /proc/self/fd/4 ] && echo four; [ -e /proc/self/fd/5 ] || echo no five; "
              "read x; echo got $x' 2>&1")
    plain = subprocess.run(["env", "--default-signal", "/bin/bash", "-c", script % place.path],
                           text=True, input="line\n", capture_output=True, check=True,
                           cwd=place.path)
    done = place.run(["--escalate", "bash"], script % place.path, input="line\n")
    ours = done.stdout.splitlines()
    assert ours == plain.stdout.splitlines() and "got line" in ours
    assert (place.path / "three").read_text() == "3\n"
    assert len(place.happened("escalated")) == 1


@pytest.mark.parametrize("end,code", [("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)])
def test_an_escalated_program_ends_as_it_ends(place, end, code):
    (place.path / "prog").write_text(f"#!/bin/sh\n{end}\n")
    (place.path / "prog").chmod(0o755)
    done = place.run(["--escalate", "prog"], "./prog; echo $?")
    assert done.stdout == f"{code}\n"
    assert place.happened("escalated")
    done = place.run(["--escalate", "prog"], ["/usr/bin/python3", "-c",
                     "import subprocess; print(subprocess.call('./prog'))"])
    assert done.stdout == f"{code if code < 128 else 128 - code}\n"


def test_a_pipeline_of_escalated_programs_ends(place):
    for _ in range(8):
        done = place.run(["--escalate", "cat", "--escalate", "head", "--escalate", "seq"],
                         "seq 1 100000 | cat | head -1; echo hi | cat | cat | cat")
        assert (done.stdout, done.stderr) == ("1\nhi\n", "")


def test_signals_reach_the_escalated_program(place):
    (place.path / "prog").write_text("#!/bin/bash\ntrap 'echo got; exit 5' USR1\necho up\n"
                                     "while :; do sleep 0.01; done\n")
    (place.path / "prog").chmod(0o755)
    done = place.run(["--escalate", "prog"], "./prog >out & p=$!; "
                     "while ! grep -q up out 2>/dev/null; do :; done; kill -USR1 $p; wait $p; "
                     "echo $?; cat out")
    assert done.stdout == "5\nup\ngot\n"
    assert [e["value"] for e in place.happened("signal")] == [signal.SIGUSR1]


def test_an_escalated_program_dies_with_its_stub(place):
    done = place.run(["--escalate", "sleep"], "sleep 1000 & p=$!; "
                     "while ! grep -q escalated log; do :; done; kill -9 $p; wait $p; echo $?; "
                     "while ! grep -q lost log; do :; done")
    assert done.stdout == "137\n"


# -- many at once, and those that go away --


def test_open_questions_block_nobody_else(place):
    done = place.run(["--ask", "evil", "--ask-verdict", "deny", "--ask-ms", "200"],
                     "for i in $(seq 100); do ./evil & p+=($!); done; "
                     "until grep -q ask log; do :; done; echo meanwhile; "
                     "n=0; for i in ${p[@]}; do wait $i; [ $? = 1 ] && n=$((n+1)); done; echo $n")
    assert done.stdout == "meanwhile\n100\n"
    assert done.stderr.count("Execution denied: asked\n") == 100


def test_a_question_is_withdrawn_when_its_caller_dies(place):
    done = place.run(["--hold", "evil"], "./evil & p=$!; while ! grep -q '\"ask\"' log; do :; done; "
                     "kill -9 $p; wait $p; echo $?; while ! grep -q withdrawn log; do :; done")
    assert done.stdout == "137\n"


@pytest.mark.parametrize("command", [["--hold", "evil"], ["--escalate", "sleep"]])
def test_everything_ends_when_the_supervisor_is_killed(place, command):
    script = "trap '' TERM; sleep 1000 & ./evil; ./evil; /usr/bin/touch ran; sleep 1000"
    driver = place.start(command, ["/bin/bash", "-c", script])
    assert until(lambda: place.asked("evil") and place.asked("sleep"), PATIENCE)
    driver.kill()
    driver.wait()
    assert driver.stdout.read() == ""  # nobody has it any more
    if "--hold" in command:
        assert not (place.path / "ran").exists()


def test_a_supervisor_that_dies_while_it_decides_lets_nothing_start(place):
    script = "./evil; echo $? >code; exec 1>&-; while :; do :; done"
    driver = place.start(["--crash", "evil"], ["/bin/bash", "-c", script])
    assert driver.wait(PATIENCE) == -signal.SIGKILL
    assert driver.stdout.read() == ""
    code = place.path / "code"
    assert not code.exists() or code.read_text() != f"{MARK}\n"


# -- races --


@pytest.mark.parametrize("race", ["path", "argv", "link"])
def test_a_forbidden_program_never_wins_a_race(place, race):
    count, good = 300, place.good
    what = {"path": [good, place.evil], "argv": [good, "nicely", "badly"],
            "link": [place.path / "link", good, place.evil]}[race]
    rule = "good badly" if race == "argv" else "evil"
    done = place.run(["--deny", rule], [WAYS, f"race-{race}", str(count), *what])
    counts = dict(map(int, line.split(":")) for line in done.stdout.split())
    assert sum(counts.values()) == count
    assert set(counts) <= {0, 1, 137, 128 + signal.SIGKILL, 202}, counts
    assert counts.get(0) and counts.get(1)


# -- with others --


@pytest.mark.parametrize("tracer", ["strace -f -o trace", "gdb -q -batch -ex run -ex bt --args"])
def test_tracers_inside_work(place, tracer):
    if shutil.which(tracer.split()[0]) is None:
        pytest.skip("no " + tracer.split()[0])
    plain = place.run([], f"{tracer} /bin/echo traced")
    assert "traced" in plain.stdout
    place.run(["--deny", "evil"], f"{tracer} ./evil")
    assert place.asked("evil")[-1]["verdict"] == "deny"
    if tracer.startswith("strace"):
        assert f"exited with {MARK}" not in (place.path / "trace").read_text()


def test_a_listener_above_is_reported(place):
    assert place.run(["--probe"], []).stdout == "works\n"
    inner = place.run([], [DRIVER, "--probe"])
    assert "a seccomp listener already watches this process" in inner.stdout
    assert inner.returncode == 1


@pytest.mark.parametrize("backend", ["userns", "root", "landlock"])
def test_in_a_sandbox(place, backend):
    script = ("./evil; echo $?; env ./evil; echo $?; sh -c 'exit 4'; echo $?; id -u; "
              "grep Seccomp: /proc/self/status; touch /etc/x; cat missing")
    done = place.run(["--sandbox", backend, "--deny", "evil=inside", "--escalate", "grep"], script)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.stdout.split("\n")[:5] == ["1", "1", "4", str(os.getuid()), "Seccomp:\t0"]
    assert done.stderr.count("Execution denied: inside\n") == 2
    assert "cannot touch" in done.stderr and not os.path.exists("/etc/x")
    assert len(place.happened("escalated")) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("sandbox", [[], ["--sandbox", "userns"]])
def test_as_a_plain_user(tmp_path, programs, sandbox):
    place = Place(tmp_path, programs)
    for program in (DRIVER, WAYS):
        shutil.copy(program, tmp_path)
    for path in (tmp_path, *tmp_path.parents):
        if "/tmp" in map(str, path.parents):
            path.chmod(0o755)
    os.chown(tmp_path, 65534, 65534)
    argv = [tmp_path / "intercept-driver", *place.argv(
        [*sandbox, "--deny", "evil=user", "--escalate", "id"],
        ["/bin/bash", "-c", "./evil; env ./evil; id -u; ./exec-ways memfd evil; exec id -u"])[1:]]
    done = subprocess.run(argv, cwd=tmp_path, text=True, capture_output=True, check=False,
                          user=65534, group=65534, extra_groups=[], timeout=PATIENCE * 4)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.stdout == "65534\n65534\n", done.stderr
    assert done.stderr.count("Execution denied: user\n") == 2
    assert len(place.happened("escalated")) == 2



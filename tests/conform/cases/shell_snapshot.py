"""shellSnapshot of process/start: what a command sees of the login shell's state."""

import os

from harness.case import case
from harness.peer import ABSENT

BASH = {"name": "bash", "path": "/bin/bash"}
SNAP = {"scopeId": "s", "shell": BASH}
PROFILE = """echo noise
echo run >> "$HOME/runs"
export FROM_PROFILE=yes BOTH=profile
helper() { printf 'helper %s\\n' "$1"; }
alias ll='ls -l'
shopt -s extglob
set -o pipefail
"""


class Box:
    """A home directory with startup files, and starts in it."""

    def __init__(self, t, c):
        self.t, self.c = t, c
        self.home = t.dir + "/home"
        self.runs = 0
        t.file("home/.bash_profile", PROFILE)

    async def start(self, label, script, argv=None, snapshot=SNAP, **more):
        self.runs += 1
        more = {"cwd": f"file://{self.home}", "env": {"HOME": self.home, "PATH": "/usr/bin:/bin"},
                **more}
        self.t.see(label, await self.c.finish_of(
            argv or ["/bin/bash", "-lc", script], processId=f"p{self.runs}",
            shellSnapshot=snapshot, **more))

    def counted(self, label):
        with open(self.home + "/runs") as f:
            self.t.see(label, f.read().count("run"))


def box_case(name):
    def register(function):
        async def run(t):
            await function(Box(t, await t.connect()))
        return case(name)(run)
    return register


SEEN = ('helper x; echo "$FROM_PROFILE|$BOTH|$0|$*"; alias; shopt extglob; set -o | grep pipefail; '
        "shopt login_shell expand_aliases; set -o | grep privileged")


@box_case("state")
async def state(b):
    await b.start("none", SEEN, snapshot=ABSENT)
    for n in range(3):
        await b.start(f"{n}", SEEN)
    b.counted("runs")
    await b.start("arguments", "", argv=["/bin/bash", "-lc", SEEN, "zero", "one", "two"])
    await b.start("not a login", "", argv=["/bin/bash", "-c", SEEN])
    await b.start("no script", "", argv=["/bin/bash", "-lc"])
    await b.start("another program", "", argv=["/bin/echo", "-lc", "x"])
    await b.start("another path", SEEN, snapshot={"scopeId": "s", "shell": {
        "name": "bash", "path": "/usr/bin/bash"}})
    b.counted("runs at the end")


@box_case("scripts")
async def scripts(b):
    for n, script in enumerate(("echo 'a'\"b\" $'c\\n'", "cat <<X\nhere $((1+1))\nX", "exit 7",
                                "false", "# comment", "", "echo é\\ü; printf '%s' '${x}'",
                                "return 3", "f() { echo f; }; f", "set -e; false; echo no",
                                "ll() { echo own; }; ll", "exec echo replaced", "echo `echo tick`",
                                "echo a &\nwait", "unset -f helper; helper 2>&1 | grep -c found")):
        await b.start(f"{n}", script)


@box_case("environment")
async def environment(b):
    show = "env | grep -E '^(FROM_PROFILE|BOTH|OWN|PROFILE_TOKEN|KEPT)=' | sort"
    b.t.file("home/.bash_profile", PROFILE + "export PROFILE_TOKEN=secret KEPT=k\n")
    await b.start("no policy", show)
    env = {"HOME": b.home, "PATH": "/usr/bin:/bin", "BOTH": "request", "OWN": "own"}
    await b.start("own", show, env=env)
    for label, policy in (
            ("all", {"inherit": "all"}), ("core", {"inherit": "core"}), ("none", {"inherit": "none"}),
            ("excluded", {"inherit": "all", "exclude": ["KEPT"]}),
            ("tokens", {"inherit": "all", "ignoreDefaultExcludes": True}),
            ("set", {"inherit": "all", "set": {"BOTH": "set"}}),
            ("only", {"inherit": "all", "includeOnly": ["HOME", "PATH", "FROM_*"]})):
        full = {"ignoreDefaultExcludes": False, "exclude": [], "set": {}, "includeOnly": [], **policy}
        await b.start(label, show, env=env, envPolicy=full)
    b.counted("runs")


@box_case("keys")
async def keys(b):
    os.mkdir(b.home + "/other")
    for label, more in (("first", {}), ("again", {}),
                        ("scope", {"snapshot": {**SNAP, "scopeId": "t"}}),
                        ("directory", {"cwd": f"file://{b.home}/other"}),
                        ("environment", {"env": {"HOME": b.home, "PATH": "/bin:/usr/bin", "X": "y"}}),
                        ("terminal", {"tty": True})):
        await b.start(label, "echo $FROM_PROFILE", **more)
        b.counted(f"runs after {label}")


@box_case("params")
async def params(b):
    for label, snapshot in (
            ("null", None), ("5", 5), ("list", []), ("empty", {}), ("no scope", {"shell": BASH}),
            ("no shell", {"scopeId": "s"}), ("shell 5", {"scopeId": "s", "shell": 5}),
            ("no name", {"scopeId": "s", "shell": {"path": "/bin/bash"}}),
            ("no path", {"scopeId": "s", "shell": {"name": "bash"}}),
            ("empty scope", {"scopeId": "", "shell": BASH}),
            ("256", {"scopeId": "x" * 256, "shell": BASH}),
            ("257", {"scopeId": "x" * 257, "shell": BASH}),
            ("257 bytes", {"scopeId": "é" * 128 + "x", "shell": BASH}),
            ("fish", {"scopeId": "s", "shell": {"name": "fish", "path": "/bin/bash"}}),
            ("fish elsewhere", {"scopeId": "s", "shell": {"name": "fish", "path": "/bin/fish"}}),
            ("more", {"scopeId": "s", "shell": {**BASH, "x": 1}, "y": 2})):
        await b.start(label, "echo ok", snapshot=snapshot)
    await b.start("empty scope, no argv", "", argv=[""], snapshot={"scopeId": "", "shell": BASH})
    missing = {"scopeId": "s", "shell": {"name": "bash", "path": "/nope/bash"}}
    await b.start("missing shell", "", argv=["/nope/bash", "-lc", "x"], snapshot=missing)


@box_case("failures")
async def failures(b):
    for label, text in (("exit", "exit 3\n"), ("exit 0", "exit 0\n"), ("error", "if\n"),
                        ("large", "v=$(printf '%0600000d' 0); eval \"f() { echo $v; }\"\n"),
                        ("output", "head -c 5000000 /dev/zero\n"), ("kill", "kill -9 $$\n"),
                        ("errexit", "set -e\nfalse\n")):
        b.t.file("home/.bash_profile", "echo run >> \"$HOME/runs\"\nexport A=a\n" + text)
        scope = {"scopeId": label, "shell": BASH}
        await b.start(label, "echo $A | head -c 100", snapshot=scope)


@box_case("hard-states")
async def hard_states(b):
    for n, text in enumerate((
            "printf() { builtin echo no; }\n", "env() { echo no; }\n", "builtin() { echo no; }\n",
            "command() { echo no; }\n", "alias printf='echo no' env='echo no' unset='echo no'\n",
            "set -u\n", "set -f\n", "set -v\n", "IFS=x\n", "shopt -s expand_aliases\nalias eval=no\n",
            "PATH=\n", "export V=$'a\\nb' W=\"'\\\"$\"\n", "f() { echo \"'\\\"\\$x\"; }\n", "cd /\n",
            "f() { case $1 in @(a|b)) echo hit;; esac; }\nshopt -s extglob\n", "exec >/dev/null\n",
            "readonly R=1\nexport R\n", "trap 'echo bye' EXIT\n", "g() { cat <<X\nhere\nX\n}\n",
            "alias q=\"echo 'x'\"\n", "set -o posix\n", "unset HOME\n")):
        b.t.file("home/.bash_profile", "export A=a\n" + text)
        scope = {"scopeId": f"{n}", "shell": BASH}
        await b.start(f"{n}", 'echo "$A|$V|$W|$R"; pwd; f a; g; alias; echo "a b"; echo *',
                      snapshot=scope)


@case("sh")
async def sh(t):
    b = Box(t, await t.connect())
    t.file("home/.profile", "export A=a\nalias ll='ls -l'\nset -u\n")
    shell = {"scopeId": "s", "shell": {"name": "sh", "path": "/bin/sh"}}
    for n in range(2):
        await b.start(f"{n}", "", argv=["/bin/sh", "-lc", "echo $A $0 $*; alias", "x", "y"],
                      snapshot=shell)

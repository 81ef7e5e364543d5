"""What each kind of profile does to a process, and which roots and directories count."""

from harness.case import case
from harness.peer import ABSENT
from harness.sandbox import (DISABLED, PATH, WORK, Place, context, external, managed, special,
                             unrestricted)

STATE = "grep -E 'NoNew|Seccomp:|CapEff' /proc/self/status; readlink /proc/self/ns/*; id -u"
PROFILES = {
    "read": managed("r :root"),
    "read, network": managed("r :root", network="enabled"),
    "unrestricted": unrestricted("restricted"),
    "unrestricted, network": unrestricted("enabled"),
    "disabled": DISABLED,
    "external": external("restricted"),
    "external, network": external("enabled"),
    "root written": managed("w :root"),
    "root written, network": managed("w :root", network="enabled"),
    "no entries": managed(),
    "minimal": managed("r :minimal", "r @/ws"),
    "minimal and workspace": managed("r :minimal", "w :project_roots"),
    "root written, some denied": managed("w :root", "d @/ws/secret"),
}


def add(name, profile):
    @case(name)
    async def one(t):
        place = await Place.open(t)
        place.make("ws/secret/")
        alone = "root written" in name
        t.see("state", await place.run(STATE, context(profile), alone=alone))
        await place.see("write", "id -u; pwd; (echo hi > x) 2>/dev/null; echo rc=$?; exit 1",
                        context(profile), alone=alone)


for _name, _profile in PROFILES.items():
    add(_name, _profile)


@case("legacy Landlock")
async def legacy_landlock(t):
    place = await Place.open(t)
    place.make()
    for name, profile in (("read", ["r :root"]), ("work", WORK), ("open", unrestricted("enabled"))):
        await place.see(name, "echo ok", context(profile, useLegacyLandlock=True),
                        alone=profile is WORK)


# What of a, b and c may be written, for each pair of working directory and roots.
ROOTS = {
    "cwd only": {"cwd": "file://@/a"},
    "roots only": {"cwd": ABSENT, "roots": ["@/b"]},
    "cwd a, roots b": {"cwd": "file://@/a", "roots": ["@/b"]},
    "cwd a, roots b and c": {"cwd": "file://@/a", "roots": ["@/b", "@/c"]},
    "context b wins": {"cwd": "file://@/a", "roots": ["@/a"], "policyContext": {
        "cwd": "file://@/b", "workspaceRoots": ["file://@/b"]}},
    "context alone": {"cwd": ABSENT, "policyContext": {
        "cwd": "file://@/b", "workspaceRoots": ["file://@/b"]}},
    "empty context": {"cwd": "file://@/a", "roots": ["@/a"], "policyContext": {}},
    "context without cwd": {"cwd": ABSENT, "policyContext": {"workspaceRoots": ["file://@/b"]}},
    "nothing": {"cwd": ABSENT},
}
TOUCH = "for d in a b c t u; do touch @/$d/x 2>/dev/null && echo -n \"$d \"; done; pwd"


@case("roots")
async def roots(t):
    place = await Place.open(t)
    for name, more in ROOTS.items():
        place.make("a/", "b/", "c/")
        await place.see(name, TOUCH, context(["r :root", "w :project_roots"],
                                             **{"roots": [], **more}), at="a")


@case("temporary directories")
async def temporary(t):
    place = await Place.open(t)
    for name, env, more in (
            ("not set", {}, {}), ("set", {"TMPDIR": "@/t"}, {}),
            ("listed", {"TMPDIR": "@/t"}, {"temporaryDirectories": ["file://@/t", "file://@/u"]}),
            ("others listed", {"TMPDIR": "@/t"}, {"temporaryDirectories": ["file://@/u"]}),
            ("none listed", {"TMPDIR": "@/t"}, {"temporaryDirectories": []})):
        place.make("a/", "b/", "c/", "t/", "u/")
        await place.see(name, TOUCH, context(["r :root", "w :tmpdir"], **more), at="a", env=env)
    for name, value in (("relative", "rel"), ("missing", "@/nonexist"), ("empty", "")):
        for kind, profile in (("read", ["r :root"]), ("tmpdir", ["r :root", "w :tmpdir"]),
                              ("work", ["r :root", "w :project_roots"]),
                              ("open", unrestricted("restricted"))):
            place.make()
            await place.see(f"{name}, {kind}", "echo ok", context(profile), env={"TMPDIR": value})
    place.make("t/f")
    await place.see("denied", "ls $TMPDIR", context(["r :root", "d :tmpdir"]),
                    env={"TMPDIR": "@/t"})


# Tokens: name, profile, script. What is written lies outside of the place's workspace.
TOKENS = [
    ("absolute subpath", ["r :root", {"path": special("project_roots", subpath="/srv"),
                                      "access": "write"}], "touch @/sib/zz; ls -a @/sib"),
    ("subpath that climbs", ["r :root", "w :project_roots/../sib"], "touch ../sib/zz && echo W"),
    ("subpath", ["r :root", "w :project_roots/in"], "touch in/zz && echo W; touch zz"),
    ("empty subpath", ["r :root", "w :project_roots/"], "touch zz && echo W; rm -f zz"),
    ("roots denied", ["r :root", "d :project_roots"], "pwd"),
    ("minimal denied", ["r :root", "d :minimal"], "ls /usr | head -2"),
    ("minimal written", ["w :minimal"], "ls /usr | head -2; touch /usr/zzq"),
    ("minimal, one written", ["r :minimal", "w @/sib"], "touch @/sib/zz && echo W; touch /usr/zz"),
    ("home in a pattern", ["r :root", "d glob:~/secret*"], "cat secret1"),
]


@case("tokens")
async def tokens(t):
    place = await Place.open(t)
    for name, profile, script in TOKENS:
        place.make("sib/", "ws/in/", "ws/secret1")
        at = "file:///" if name.startswith("minimal") else "ws"
        await place.see(name, script, context(profile), at=at)


@case("tokens of the host")
async def host_tokens(t):
    """Roots that both sides share."""
    place = await Place.open(t)
    for name, profile, script in (
            ("slash_tmp", ["r :root", "w :slash_tmp"],
             "f=$(mktemp /tmp/conform-XXXXXX) && echo W; rm -f $f; touch zz"),
            ("slash_tmp denied", ["r :root", "d :slash_tmp", "w :project_roots"],
             "ls /tmp; touch zz && echo W; rm zz"),
            ("slash_tmp read, root written", managed("w :root", "r :slash_tmp", network="enabled"),
             "touch /tmp/zzq; touch @/sib/zz && echo W"),
            ("root as a path", ["w file:///"], "touch @/sib/zz && echo W; id -u; "
             "grep Seccomp: /proc/self/status; ls -d /.git"),
            ("root and one read", ["w :root", "r @/ws"],
             "echo x > n; echo y > ../z && echo OK; test -d /.git && test ! -w /.git && echo safe; "
             "ls /dev"),
            ("work", WORK, "touch zz && echo W; touch .git/x; touch @/sib/x")):
        place.make("sib/")
        await place.see(name, script, context(profile), alone=True)


@case("environment and directory")
async def environment(t):
    place = await Place.open(t)
    script = "pwd; echo PWD=$PWD; env | sort"
    for name, profile, env in (
            ("runtime directory", ["r :root"], {"XDG_RUNTIME_DIR": "@/xdg"}),
            ("home", ["r :root"], {"CODEX_HOME": "@/home", "HOME": "@/home"}),
            ("temporary directory", ["r :root"], {"TMPDIR": "@/t"}),
            ("directory not visible", ["r :minimal"], {}),
            ("directory not visible, home", ["r :minimal"], {"HOME": "/usr"}),
            ("pattern, root written", ["w :root", "d glob:@/ws/*.zz"], {})):
        place.make("xdg/", "home/", "t/")
        await place.see(name, script, context(profile), env=env, alone="w :root" in profile)


@case("identity")
async def identity(t):
    """What a process sees of itself and of the host."""
    script = ("id; cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; "
              "ls -ldn / /etc/passwd /tmp /root; "
              "grep -E '^(Cap|NoNew|Secc|Groups)' /proc/self/status; "
              "hostname; ulimit -a; umask; nice; cat /proc/self/oom_score_adj; env | sort")
    writable = ("for f in core_pattern hostname panic randomize_va_space; do "
                "test -w /proc/sys/kernel/$f && echo $f; done; "
                "find / -xdev -writable -type d 2>/dev/null | head; find /dev -writable | sort")
    place = await Place.open(t)
    place.make()
    t.see("is", await place.run(script, context(["r :root"]), env={"HOME": "/x"}))
    t.see("namespaces", await place.run("readlink /proc/self/ns/*", context(["r :root"])))
    t.see("may write", await place.run(writable, context(["r :root"])))


@case("git")
async def git(t):
    place = await Place.open(t)
    place.make("repo/sub/", "home/.bashrc=echo BASHRC-SOURCED\n")
    made = await place.run(["/usr/bin/git", "init", "-q", "@/repo"], at="repo")
    t.see("made", made)
    options = "-c safe.directory='*'"
    for name, at, script in (
            ("below", "repo/sub", f"git {options} rev-parse --show-toplevel; "
             f"git {options} status --short | head -3; ls -la"),
            ("in it", "repo", f"echo x > a; git {options} add a; "
             f"git {options} commit -m x; echo rc=$?")):
        sandbox = context(["r :root", "w :project_roots"], roots=[f"@/{at}"], cwd=f"file://@/{at}")
        t.see(name, await place.run(script, sandbox, at=at, env={"HOME": "/nonexistent"}))
    for name, profile in (("work", ["r :root", "w :project_roots"]), ("read", ["r :root"]),
                          ("network", managed("r :root", network="enabled")), ("none", None)):
        for level in ({}, {"SHLVL": "1"}):
            sandbox = ABSENT if profile is None else context(profile, roots=["@/repo"])
            t.see(f"bash, {name}, {level}", await place.run(
                ["/bin/bash", "-c", "echo hi"], sandbox, at="repo",
                env={"PATH": PATH, "HOME": "@/home", **level}))

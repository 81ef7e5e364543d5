"""What profiles come to on disk: protected names, carve-outs, denials, links, precedence."""

from harness.case import case
from harness.sandbox import Place, context

PR = ["r :root", "w :project_roots"]
NAMES = ("for f in a .git/x .codex/x .agents/x .aws/x; do (mkdir -p $(dirname $f); echo hi > $f) "
         "2>&1 && echo OK $f || echo FAIL $f; done")

# Name, fixture, profile, script.
ROWS = [
    ("no metadata", [], PR, NAMES),
    (".git not empty", ["ws/.git/config"], PR,
     NAMES + "; mv .git g2; rm -rf .git; rmdir .git; ls -la .git"),
    (".git empty", ["ws/.git/"], PR, NAMES),
    (".git file that points out", ["ws/.git=gitdir: ../main/.git/worktrees/w\n",
                                   "main/.git/worktrees/w/HEAD"], [*PR, "w @/main"],
     "echo x > .git; cat .git; echo y > ../main/.git/worktrees/w/x; echo z > ../main/ok && "
     "echo mainok"),
    (".git file that points into a writable root", ["ws/.git=gitdir: ../other/gd\n",
                                                    "other/gd/HEAD"], [*PR, "w @/other"],
     "cat .git; echo y > ../other/gd/x && echo WROTE; echo z > ../other/ok && echo otherok"),
    (".git a link", ["real/", "ws/.git->../real"], PR, "echo y > .git/x; rm .git; ls -la"),
    (".codex a link", ["real/", "ws/.codex->../real"], PR, "echo y > .codex/x; rm .codex; ls -la"),
    (".git granted", ["ws/.git/config"], [*PR, "w @/ws/.git"], NAMES),
    (".git granted, missing", [], [*PR, "w @/ws/.git"], NAMES),
    (".git granted by token", ["ws/.git/config"], [*PR, "w :project_roots/.git"], NAMES),
    (".git further down", [], PR,
     "mkdir -p sub/.git && echo x > sub/.git/c && echo SUBOK; ls -la sub"),
    ("read directory in writable root", ["ws/ro/"], [*PR, "r @/ws/ro"],
     "echo x > ro/f; echo x > f && echo OK; mv ro ro2; ls"),
    ("read file in writable root", ["ws/ro.txt"], [*PR, "r @/ws/ro.txt"],
     "echo x > ro.txt; rm ro.txt; mv ro.txt r2; cat ro.txt; ls"),
    ("read path missing", [], [*PR, "r @/ws/nope/deep"],
     "mkdir -p nope/deep; echo x > nope; ls -la; cat nope; rm nope"),
    ("read path missing, skip", [], [*PR, "r @/ws/nope/deep skip"],
     "mkdir -p nope/deep && echo CREATED; ls -la"),
    ("deny directory", ["ws/sec/a"], ["r :root", "d @/ws/sec"],
     "ls -la; cat sec/a; ls sec; echo x>sec/b"),
    ("deny file", ["ws/sec.txt"], ["r :root", "d @/ws/sec.txt"],
     "cat sec.txt; ls -la sec.txt; stat -c %a sec.txt"),
    ("deny missing in writable root", [], [*PR, "d @/ws/nope/deep"],
     "mkdir -p nope/deep; echo x > nope; ls -la; cat nope"),
    ("deny missing elsewhere", [], ["r :root", "d @/ws/nope/deep"], "ls -la"),
    ("deny through a link", ["ws/sec/a", "ws/link->sec"], ["r :root", "d @/ws/link"],
     "cat link/a; cat sec/a; ls -la"),
    ("deny through a link in writable root", ["ws/sec/a", "ws/link->sec"], [*PR, "d @/ws/link"],
     "cat link/a; cat sec/a"),
    ("read through a link in writable root", ["ws/sec/a", "ws/link->sec"], [*PR, "r @/ws/link"],
     "echo x > link/a"),
    ("write below deny", ["ws/a/s", "ws/a/b/s"], [*PR, "d @/ws/a", "w @/ws/a/b"],
     "ls a; cat a/s; echo x > a/b/n && echo BOK; ls -la a; stat -c %a a"),
    ("write below a denied ancestor", [], ["r :root", "d @", "w :project_roots"],
     "ls ..; echo x > n && echo OK; ls -la ..; stat -c %a .."),
    ("write below read", ["ws/a/b/"], [*PR, "r @/ws/a", "w @/ws/a/b"],
     "echo x > a/n; echo x > a/b/n && echo BOK"),
    ("read below deny", ["ws/a/b/s"], ["r :root", "d @/ws/a", "r @/ws/a/b"],
     "ls a; cat a/b/s; ls -la a"),
    ("read and write of one path", [], ["r :root", "r @/ws", "w @/ws"], "echo x > n && echo OK"),
    ("write and deny of one path", [], ["r :root", "w @/ws", "d @/ws"],
     "echo x > n && echo OK"),
    ("read and deny of one path", ["ws/s/f"], ["r :root", "d @/ws/s", "r @/ws/s"], "cat s/f"),
    ("writable root missing", [], ["r :root", "w @/ws/newdir"], "mkdir newdir; ls -la"),
    ("write to one file", ["ws/only.txt"], ["r :root", "w @/ws/only.txt"],
     "echo x > only.txt && echo OK; echo y > other; mv only.txt z; rm only.txt"),
    ("writable root a link", ["real/", "lnk->real"], ["r :root", "w @/lnk"],
     "echo x > ../real/n && echo OK; echo y > ../lnk/n2 && echo OK2; mkdir ../real/.git"),
    ("unknown token", [], ["r :root", {"path": {"type": "special", "value": {
        "kind": "unknown", "path": ":future"}}, "access": "write"}], "echo x > n"),
    ("deny root, read some", [], ["d :root", "r :minimal", "r @/ws"],
     "ls / | grep -vx root | tr '\\n' ' '; ls -a @"),
    ("minimal, read some", ["ws/x/f"], ["r :minimal", "r @/ws/x"],
     "ls -a @ @/ws; cat @/ws/x/f; ls /home /var 2>&1"),
]


def add(name, fixture, profile, script):
    @case(name)
    async def row(t):
        place = await Place.open(t)
        place.make(*fixture)
        at = "file:///" if name == "minimal, read some" else "ws"
        await place.see("end", script, context(profile), at=at)


for _row in ROWS:
    add(*_row)


@case("cwd a link")
async def linked_cwd(t):
    place = await Place.open(t)
    for name, profile, script in (
            ("full", PR, "pwd; pwd -P; echo x > n && echo OK"),
            ("minimal", ["r :minimal", "w :project_roots"],
             "pwd; pwd -P; echo x > n && echo OK; ls $PWD/..")):
        place.make("real/", "lnk->real")
        await place.see(name, script, context(profile, roots=["@/lnk"], cwd="file://@/lnk"),
                        at="lnk")


@case("kernel file systems")
async def kernel(t):
    place = await Place.open(t)
    place.make()
    for name, profile, script in (
            ("/dev/shm", ["r :root", "w file:///dev/shm"],
             "f=$(mktemp /dev/shm/conform-XXXXXX) && echo x > $f && echo OK; rm -f $f; ls -l /dev"),
            ("/proc denied", ["r :root", "d file:///proc"], "ls /proc | head -1"),
            ("/proc written", ["r :root", "w file:///proc"], "ls /proc | head -3"),
            ("/sys written", ["r :root", "w file:///sys"], "mkdir /sys/fs/cgroup/conform-zz")):
        await place.see(name, script, context(profile))

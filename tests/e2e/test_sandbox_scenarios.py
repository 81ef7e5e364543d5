"""What permission profiles resolve to: protected names, carve-outs, denied paths, tokens, links."""

import contextlib
import os
import socket
import stat
import subprocess

import pytest

from harness.confined import Calls
from harness.files import os_error
from harness.sandbox import (BUSY, DENIED, EXISTS, MISSING, PROTECTED, READ_ONLY, Place, place,
                             servers, uri, user, users)
from harness.waiting import until

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"


# What a plain user has no permission for.
ROOT_ONLY = pytest.mark.parametrize("user", [u for u in users() if u == "root"], indirect=True)
# Protected names in / that the host has itself.
ROOT_HAD = [n for n in PROTECTED if os.path.lexists(f"/{n}")]


# S1 to S7: protected names.

def test_missing_names_are_empty_and_read_only(place):
    got = place.tries(["touch a", *(f"touch {n}/x" for n in PROTECTED),
                       *(f"mkdir {n}" for n in PROTECTED), *(f"rmdir {n}" for n in PROTECTED),
                       *(f"stat -c %a {n}" for n in PROTECTED), "ls -A .git .agents | tr -d '\\n'"],
                      R, PR)
    assert got == ["ok", *[READ_ONLY] * 4, *[EXISTS] * 4, *[BUSY] * 4, *["555"] * 4,
                   ".agents:.git:"]
    assert os.listdir(place.ws) == ["a"]


def test_missing_names_on_the_host_meanwhile(place):
    process = place.start("echo ready; read x", R, PR, pipeStdin=True)
    place.client.wait_output(process, "ready")
    for name in PROTECTED:
        assert stat.S_ISDIR(os.lstat(place.ws / name).st_mode) and not os.listdir(place.ws / name)
    place.client.write(process, "\n", writeId="1")
    place.client.wait_closed(process)
    assert place.left() == []


def test_names_that_exist(place):
    place.put("ws/.git/config", "[core]\n")
    place.put("ws/.agents/a")
    place.put("ws/.aws", "a file\n")
    got = place.tries(["touch .git/x", "mv .git g2", "rm -rf .git", "rmdir .git", "cat .git/config",
                       "touch .agents/a", "echo x >.aws", "rm .aws", "mv .aws b", "ln -f a .aws",
                       "mv -T sub .git", "touch sub/.git/x"], R, PR)
    assert got[:5] == [READ_ONLY, BUSY, READ_ONLY, BUSY, "[core]"]
    assert got[5:9] == [READ_ONLY, READ_ONLY, BUSY, BUSY]
    assert "ok" not in got[9:]
    assert (place.ws / ".git/config").read_text() == "[core]\n"


def test_empty_names_survive(place):
    place.mkdir("ws/.git")
    place.put("ws/.codex", "")
    assert place.tries(["touch .git/x", "echo x >.codex", "cat .codex"], R, PR) == [
        READ_ONLY, READ_ONLY, "ok"]
    assert place.left() == [".codex", ".git"]
    assert (place.ws / ".codex").read_text() == ""


def test_git_file_names_the_directory(place):
    place.put("main/.git/worktrees/w/HEAD")
    place.put("ws/.git", "gitdir: ../main/.git/worktrees/w\n")
    got = place.tries(["echo x >.git", "cat .git", "touch ../main/.git/worktrees/w/x",
                       "touch ../main/ok"], R, PR, "w main")
    assert got == [READ_ONLY, "gitdir: ../main/.git/worktrees/w", READ_ONLY, "ok"]


@pytest.mark.parametrize("absolute", [False, True])
def test_git_file_names_an_ordinary_directory(place, absolute):
    place.put("other/gd/HEAD")
    target = place.path("other/gd") if absolute else "../other/gd"
    place.put("ws/.git", f"gitdir: {target}\n")
    assert place.tries(["touch ../other/gd/x", "touch ../other/ok", "mv ../other/gd ../other/gd2"],
                       R, PR, "w other") == [READ_ONLY, "ok", BUSY]


@pytest.mark.parametrize("name", PROTECTED)
def test_name_that_is_a_link(place, name):
    place.mkdir("real")
    place.link(f"ws/{name}", "../real")
    code, text = place.error(R, PR)
    assert code == -32603
    assert f"{place.ws}/{name}" in text and "symlink" in text
    assert place.left() == [name]


def test_writable_path_that_cannot_be_followed(place):
    place.link("loop", "loop")
    assert place.tries(["touch a"], R, PR, "w loop", "w " + "x" * 4200) == ["ok"]


@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("name", [".git", ".aws"])
def test_name_that_is_something_else(place, kind, name):
    path = place.ws / name
    if kind == "fifo":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    os.chown(path, place.uid, place.uid)
    got = place.tries([f"test -{'p' if kind == 'fifo' else 'S'} {name}",
                       f"rm -f {name}", f"mv {name} x", f"chmod 777 {name}", "touch n"], R, PR)
    assert got == ["ok", BUSY, BUSY, READ_ONLY, "ok"]


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: \n", "gitdir: .\n", "gitdir: /\n",
                                  "gitdir: ../..\n", "gitdir: nope\n", "gitdir: " + "a/" * 3000,
                                  "gitdir: a\0b\n", "gitdir: .git\n", "x" * 100000])
def test_git_file_with_odd_contents(place, text):
    place.put("ws/.git", text)
    got = place.tries(["echo x >.git", "rm -f .git", "echo started"], R, PR)
    assert got == [READ_ONLY, BUSY, "started"]
    assert (place.ws / ".git").read_text() == text


@pytest.mark.parametrize("entry", ["w ws/.git", "w :project_roots/.git"])
@pytest.mark.parametrize("missing", [False, True])
def test_name_that_is_granted(place, entry, missing):
    if not missing:
        place.put("ws/.git/config")
    got = place.tries(["mkdir -p .git", "touch .git/x", "touch .codex/x", "touch .agents/x",
                       "touch .aws/x"], R, PR, entry)
    assert got == ["ok", "ok", *[READ_ONLY] * 3]
    assert (place.ws / ".git/x").exists()
    assert place.left() == [".git"]


def test_grant_below_a_name(place):
    place.put("ws/.git/config")
    place.mkdir("ws/.git/hooks")
    assert place.tries(["touch .git/x", "touch .git/hooks/x", "mv .git/hooks .git/h"],
                       R, PR, "w ws/.git/hooks") == [READ_ONLY, "ok", READ_ONLY]


def test_names_in_subdirectories_are_ordinary(place):
    assert place.tries(["mkdir -p sub/.git", "touch sub/.git/c", "mv sub/.git sub/g"], R, PR) == [
        "ok"] * 3


def test_names_of_every_writable_root(place):
    place.mkdir("one")
    place.mkdir("two/three")
    got = place.tries(["touch ../one/.git/x", "touch ../two/.aws/x", "touch ../two/three/.codex/x",
                       "touch ../one/x", "touch ../two/three/x"],
                      R, "w one", "w two", "w two/three")
    assert got == [READ_ONLY] * 3 + ["ok"] * 2
    assert os.listdir(place.base / "one") == ["x"]
    assert os.listdir(place.base / "two/three") == ["x"]


def test_names_of_the_temporary_directory(place):
    place.mkdir("tmp")
    got = place.tries(["touch ../tmp/x", "touch ../tmp/.git/x"], R, "w :tmpdir",
                      env={"TMPDIR": place.path("tmp")})
    assert got == ["ok", READ_ONLY]
    assert os.listdir(place.base / "tmp") == ["x"]


# S8: read-only carve-outs.

def test_read_only_directory(place):
    place.mkdir("ws/ro")
    assert place.tries(["touch ro/f", "touch f", "mv ro ro2", "rmdir ro"],
                       R, PR, "r ws/ro") == [READ_ONLY, "ok", BUSY, BUSY]


def test_read_only_file(place):
    place.put("ws/ro.txt", "x")
    assert place.tries(["echo x >ro.txt", "rm -f ro.txt", "mv ro.txt r2", "cat ro.txt"],
                       R, PR, "r ws/ro.txt") == [READ_ONLY, BUSY, BUSY, "x"]


def test_parent_of_a_read_only_directory_stays(place):
    """Could it be renamed, another tree could be put in its place."""
    place.put("ws/a/b/ro/f")
    got = place.tries(["mv a a2", "mv a/b a/b2", "touch a/x", "touch a/b/x", "touch a/b/ro/x"],
                      R, PR, "r ws/a/b/ro")
    assert got == [BUSY, BUSY, "ok", "ok", READ_ONLY]


@pytest.mark.parametrize("name", ["ws/a/b/secret", "ws/a/b/secret/f"])
def test_parent_of_a_denied_path_stays(place, name):
    """Could it be renamed, the next command would find the secret under its new name."""
    place.put("ws/a/b/secret/f")
    entries = [R, PR, f"d {name}"]
    assert place.tries(["mv a a2", "mv a/b a/b2", "touch a/b/x"], *entries) == [BUSY, BUSY, "ok"]
    assert place.tries(["cat a/b/secret/f"], *entries) == [DENIED]


@pytest.mark.parametrize("behaviour", [None, "skip"])
@pytest.mark.parametrize("access", ["r", "d"])
def test_missing_carve_out_cannot_be_made(place, access, behaviour):
    entry = {**place.entry(f"{access} ws/nope/deep"), "missing_path_behavior": behaviour}
    got = place.tries(["mkdir -p nope/deep", "echo x >nope", "rm -rf nope", "mv nope n2",
                       "touch ok"], R, PR, entry)
    assert "ok" not in got[:4] and got[4] == "ok"
    assert sorted(os.listdir(place.ws)) == ["ok"]


# S9 to S11: denied paths, and what is granted below or beside them.

def test_denied_directory(place):
    place.put("ws/sec/a")
    got = place.tries(["cat sec/a", "ls sec", "touch sec/b", "ls", "stat -c %a sec"],
                      R, "d ws/sec")
    assert got == [DENIED, DENIED, DENIED, "sec", "0"]


def test_denied_file(place):
    place.put("ws/sec.txt")
    got = place.tries(["cat sec.txt", "stat -c '%a %s' sec.txt", "echo x >sec.txt",
                       "rm -f sec.txt", "mv sec.txt x"], R, PR, "d ws/sec.txt")
    assert got[:2] == [DENIED, "0 0"] and got[2] in (DENIED, READ_ONLY)
    assert got[3:] == [BUSY, BUSY]
    assert (place.ws / "sec.txt").read_text() == "content\n"


def test_denied_and_missing_outside_writable_roots(place):
    assert place.tries(["ls -A"], R, "d ws/nope/deep") == ["ok"]


def test_denied_link_outside_writable_roots(place):
    place.put("ws/sec/a")
    place.link("ws/link", "sec")
    assert place.tries(["cat link/a", "cat sec/a", "readlink link"], R, "d ws/link") == [
        DENIED, DENIED, "sec"]


@pytest.mark.parametrize("access", ["d", "r"])
def test_carve_out_that_is_a_writable_link(place, access):
    place.put("ws/sec/a")
    place.link("ws/link", "sec")
    code, text = place.error(R, PR, f"{access} ws/link")
    assert code == -32603 and "symlink" in text and place.path("ws/link") in text


def test_write_below_a_denied_directory(place):
    place.put("ws/a/s")
    place.mkdir("ws/a/b")
    got = place.tries(["ls a", "cat a/s", "touch a/b/n", "stat -c %a a", "touch a/n"],
                      R, PR, "d ws/a", "w ws/a/b")
    assert got[:4] == [DENIED, MISSING, "ok", "111"] and got[4] != "ok"
    assert (place.ws / "a/b/n").exists()


def test_directory_between_denied_and_granted(place):
    """It shows the way to what is granted, and nothing else: to commands and to file calls."""
    place.put("ws/deny/sub/hidden")
    place.put("ws/deny/sub/deep/f")
    entries = (R, PR, "d ws/deny", "w ws/deny/sub/deep")
    tried = place.tries(["ls deny", "ls deny/sub", "cat deny/sub/hidden", "touch deny/sub/x",
                         "cat deny/sub/deep/f"], *entries)
    assert tried == [DENIED, "deep", MISSING, READ_ONLY, "content"]
    calls = Calls(place, *entries)
    assert list(calls.list(place.ws / "deny/sub")) == ["deep"]
    assert calls.error("readDirectory", place.ws / "deny") == os_error(13)
    assert calls.error("writeFile", place.ws / "deny/sub/x", dataBase64="") == os_error(30)


def test_workspace_below_a_denied_directory(place):
    place.put("other/f")
    got = place.tries(["ls ..", "touch n", "cat ../other/f", "stat -c %a .."],
                      R, "d .", PR)
    assert got == [DENIED, "ok", MISSING, "111"]


def test_write_below_a_read_only_directory(place):
    place.mkdir("ws/a/b")
    assert place.tries(["touch a/n", "touch a/b/n"], R, PR, "r ws/a", "w ws/a/b") == [
        READ_ONLY, "ok"]


def test_read_below_a_denied_directory_is_not_reopened(place):
    place.put("ws/a/b/s")
    assert place.tries(["ls a", "cat a/b/s"], R, "d ws/a", "r ws/a/b") == [DENIED, DENIED]


def test_precedence_on_one_path(place):
    place.put("ws/s/f")
    assert place.tries(["touch n"], R, "r ws", "w ws") == ["ok"]
    assert place.tries(["cat s/f"], R, "d ws/s", "r ws/s") == [DENIED]
    assert place.tries(["ls ws", "touch ws/n2"], R, "w ws", "d ws", at=".") == [DENIED, DENIED]


def test_order_of_entries_does_not_matter(place):
    place.put("ws/a/b/c/f")
    entries = [R, PR, "d ws/a", "w ws/a/b", "r ws/a/b/c"]
    for turned in (entries, entries[::-1], entries[2:] + entries[:2]):
        assert place.tries(["touch a/b/x", "touch a/b/c/x", "ls a", "touch x"], *turned) == [
            "ok", READ_ONLY, DENIED, "ok"]


# S12, S13: missing roots, single files, links.

def test_missing_write_root_is_skipped(place):
    assert place.tries(["mkdir newdir", "touch x"], R, "w ws/newdir") == [READ_ONLY, READ_ONLY]
    assert os.listdir(place.ws) == []


def test_missing_read_root_is_skipped(place):
    assert place.tries(["echo fine"], "r :minimal", "r nope", PR) == ["fine"]


def test_write_grant_of_a_file(place):
    path = place.put("ws/only.txt")
    place.put("ws/other")
    got = place.tries(["echo x >only.txt", "echo y >other", "touch new", "mv only.txt z",
                       "rm -f only.txt", "cat only.txt"], R, "w ws/only.txt")
    assert got == ["ok", READ_ONLY, READ_ONLY, READ_ONLY, READ_ONLY, "x"]
    assert path.read_text() == "x\n"


def test_write_root_that_is_a_link(place):
    place.mkdir("real")
    place.link("lnk", "real")
    got = place.tries(["touch ../real/n", "touch ../lnk/n2", "mkdir ../real/.git", "rm ../lnk"],
                      R, "w lnk")
    assert got == ["ok", "ok", EXISTS, READ_ONLY]


@pytest.mark.parametrize("read", [R, "r :minimal"])
def test_workspace_that_is_a_link(place, read):
    place.mkdir("real")
    place.link("lnk", "real")
    got = place.tries(["pwd", "pwd -P", "touch n", f"touch {place.path('lnk')}/n2",
                       "echo \"$PWD\""], read, PR, roots=["lnk"], at="lnk")
    real = place.path("real")
    assert got == [real, real, "ok", "ok", real]


def test_link_made_inside_is_harmless(place):
    place.put("outside/f")
    assert place.tries(["ln -s ../outside out", "touch out/x", "echo x >out/f", "cat out/f"],
                       R, PR) == ["ok", READ_ONLY, READ_ONLY, "content"]


# Mounts of the host.

@contextlib.contextmanager
def mounted(path, options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


@ROOT_ONLY
@pytest.mark.parametrize("read", [[R], ["r :minimal", "r outer"]], ids=["full", "minimal"])
def test_mounts_below_are_covered(place, read):
    outer, inner = place.mkdir("outer/m"), place.mkdir("ws/m")
    with mounted(outer, "mode=755"), mounted(inner, "mode=755"):
        place.put("outer/m/f")
        place.put("ws/m/f")
        got = place.tries(["touch ../outer/m/x", "echo x >../outer/m/f", "cat ../outer/m/f",
                           "touch m/x", "echo x >m/f", "cp /bin/true m/t; m/t"], *read, PR)
        assert got == [READ_ONLY, READ_ONLY, "content", "ok", "ok", "ok"]
        assert place.tries(["touch m/y", "cat m/f"], *read, PR, "r ws/m") == [READ_ONLY, "x"]
        assert place.tries(["cat m/f"], *read, PR, "d ws/m") == [DENIED]
        assert place.tries(["cat m/f", "touch m/x"], *read, PR, "d ws/m/f") == [
            DENIED, "ok"]


@ROOT_ONLY
def test_mount_options_of_the_host_stay(place):
    inner = place.mkdir("ws/m")
    with mounted(inner, "mode=755,ro"):
        assert place.tries(["touch m/x"], R, PR) == [READ_ONLY]
        assert place.tries(["touch m/x"], R, "w ws/m") == [READ_ONLY]
    with mounted(inner, "mode=755,noexec"):
        got = place.tries(["cp /bin/true m/t; m/t"], R, PR)
        assert got == [DENIED]


def test_workspace_below_tmp(place):
    """In a private /tmp the workspace is there, and is the host's; all else is not."""
    below = Place(place.client, place.uid, parent="/tmp")
    name = f"/tmp/sandbox-{os.getpid()}"
    try:
        below.put("other/f")
        got = below.tries(["touch n", f"touch {name}", f"cat {below.base}/other/f", "touch .git/x",
                           f"ls {below.base}"], "r :minimal", PR)
        assert got == ["ok", "ok", MISSING, READ_ONLY, "ws"]
        assert (below.ws / "n").exists() and not os.path.exists(name)
        assert below.tries(["touch n2", f"touch {name}"], R, PR) == ["ok", READ_ONLY]
        assert below.tries(["touch n3", f"ls {below.base}", "ls /tmp"], R, "d /tmp", PR) == [
            "ok", "ws", DENIED]
    finally:
        below.close()


# S14: the kernel's and shared directories.

def test_shared_memory_is_private(place):
    name = f"sandbox-{os.getpid()}"
    assert place.tries([f"touch /dev/shm/{name}"], R) == ["ok"]
    assert not os.path.exists(f"/dev/shm/{name}")


def test_shared_memory_granted(place):
    name = f"sandbox-{os.getpid()}"
    try:
        assert place.tries([f"touch /dev/shm/{name}", "ls /dev/null", "touch /dev/shm/.git/x"],
                           R, "w /dev/shm") == ["ok", "/dev/null", READ_ONLY]
        assert os.path.exists(f"/dev/shm/{name}")
    finally:
        os.unlink(f"/dev/shm/{name}")
    assert not os.path.lexists("/dev/shm/.git")


@ROOT_ONLY
def test_devices_granted(place):
    name = f"/dev/sandbox-{os.getpid()}"
    try:
        got = place.tries([f"touch {name}", "echo x >/dev/null", "head -c1 /dev/zero | wc -c",
                           "dd if=/dev/kmsg of=/dev/null count=1"], R, "w /dev")
        assert got[:3] == ["ok", "ok", "1"] and "records" not in got[3]
        assert os.path.exists(name)
    finally:
        os.unlink(name)


def test_private_devices(place):
    got = place.tries(["ls /dev | tr '\\n' ' '", "echo x >/dev/null", "head -c3 /dev/zero | wc -c",
                       "head -c1 /dev/zero >/dev/full", "head -c1 /dev/urandom | wc -c"], R)
    assert got == ["core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ",
                   "ok", "3", "No space left on device", "1"]


def test_denied_proc_has_no_effect(place):
    assert place.tries(["ls /proc/self/status"], R, "d /proc") == ["/proc/self/status"]


@pytest.mark.parametrize("path", ["/proc", "/sys", "/proc/sys", "/sys/fs"])
def test_kernel_directories_cannot_be_granted(place, path):
    code, text = place.error(R, f"w {path}")
    assert code == -32603 and path in text
    assert not os.path.lexists(f"{path}/.git")


# S15 to S18: what is visible, and the whole disk.

def test_minimal_shows_the_platform_only(place):
    place.put("ws/x/f", "F\n")
    place.put("ws/y/f")
    got = place.tries(["ls /", f"cat {place.ws}/x/f", f"ls {place.ws}", "ls /home", "ls /root",
                       f"touch {place.ws}/x/n", "touch /n", f"touch {place.base}/n",
                       "touch /usr/n", "mkdir /home", "cat /etc/hostname >/dev/null"],
                      "r :minimal", "r ws/x", at="/")
    shown = set(got[0].split())
    assert {"bin", "dev", "etc", "proc", "tmp", "usr", "var"} <= shown
    assert not shown & {"home", "root", "opt", "srv", "sys", "boot", "run"}
    assert got[1:5] == ["F", "x", MISSING, MISSING]
    assert set(got[5:10]) <= {READ_ONLY, DENIED} and READ_ONLY in got[5:10]


def test_private_tmp_where_the_hosts_is_not_visible(place):
    name = f"/tmp/sandbox-{os.getpid()}"
    got = place.tries([f"touch {name}", "ls /tmp", "stat -c %a /tmp"], "r :minimal", at="/")
    assert got == ["ok", os.path.basename(name), "1777"]
    assert not os.path.exists(name)


def test_tmp_is_read_only_where_it_is_visible(place):
    assert place.tries([f"touch /tmp/sandbox-{os.getpid()}"], R) == [READ_ONLY]


def test_denied_root_with_a_grant(place):
    place.put("ws/f", "F\n")
    got = place.tries(["cat ws/f", "ls", "ls /home", "touch ws/n"],
                      "d :root", "r :minimal", "r ws", at="ws/..")
    assert got[0] == "F" and got[1] == "ws" and got[2] == MISSING and got[3] == READ_ONLY


def test_unknown_token_grants_nothing(place):
    entry = {"path": {"type": "special", "value": {"kind": "unknown", "path": ":future"}},
             "access": "write"}
    assert place.tries(["touch n"], R, entry) == [READ_ONLY]


def added_to_root():
    """Protected names in / that the host had not; another run of the tests may put some there."""
    return [n for n in PROTECTED if n not in ROOT_HAD and os.path.lexists(f"/{n}")]


@ROOT_ONLY
def test_whole_disk_but_one_directory(place):
    got = place.tries(["touch n", "touch ../z", "test -d /.git", "touch /.aws/x", "echo >/dev/null",
                       "ls /dev/kmsg", "ls /dev/shm >/dev/null"], "w :root", "r ws")
    assert got == [READ_ONLY, "ok", "ok", READ_ONLY, "ok", MISSING, "ok"]
    assert (place.base / "z").exists()
    until(lambda: not added_to_root(), "removal of the synthetic directories")


@ROOT_ONLY
def test_whole_disk_but_a_denied_file(place):
    place.put("ws/secret")
    assert place.tries(["cat secret", "touch n", "touch ../n"], "w :root", "d ws/secret") == [
        DENIED, "ok", "ok"]


def test_whole_disk_of_a_plain_user(place):
    """Where the mount point of a protected name cannot be made, nobody else can make the name."""
    got = place.tries(["touch ../n"], "w :root", "r ws")
    assert got == ["ok"]


@ROOT_ONLY
def test_root_as_a_path(place):
    got = place.tries(["touch ../n", "test -d /.git", "grep -c 'Seccomp:.2' /proc/self/status"],
                      "w file:///")
    assert got == ["ok", "ok", "1"]
    until(lambda: not added_to_root(), "removal of the synthetic directories")


# Tokens.

@pytest.mark.parametrize("sub", ["../sib", "/etc", "/"])
def test_subpath_that_leaves_its_root_is_dropped(place, sub):
    place.mkdir("sib")
    entry = {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": sub}},
             "access": "write"}
    assert place.tries(["touch ../sib/x", "touch x"], R, entry) == [READ_ONLY, READ_ONLY]


@pytest.mark.parametrize("sub", ["./in", "in/..", "/etc", "..", ".", "in/../in"])
def test_odd_subpath_takes_from_the_whole_root(place, sub):
    """It denies or stops writing as the reference does, and grants nothing."""
    place.put("ws/in/f")
    odd = f":project_roots/{sub}"
    both = ["cat in/f", "touch in/x"]
    assert place.tries(both, R, f"w {odd}") == ["content", READ_ONLY]
    assert place.tries(both, R, PR, f"r {odd}") == ["content", READ_ONLY]
    assert place.tries(both, R, PR, f"w {odd}") == ["content", "ok"]
    denied = place.tries([f"cat {place.ws}/in/f", f"touch {place.ws}/x"], R, PR, f"d {odd}", at=".")
    assert denied[0] == DENIED and denied[1] in (DENIED, READ_ONLY)


def test_subpath(place):
    place.mkdir("ws/in")
    assert place.tries(["touch in/x", "touch x"], R, "w :project_roots/in") == ["ok", READ_ONLY]
    assert place.tries(["touch x"], R, "w :project_roots/") == ["ok"]


@pytest.mark.parametrize("kind", ["project_roots", "current_working_directory"])
def test_token_covers_every_root(place, kind):
    for name in ("b", "c"):
        place.mkdir(name)
    assert place.tries(["touch ../b/x", "touch ../c/x", "touch x"], R, f"w :{kind}",
                       roots=["b", "c"]) == ["ok", "ok", READ_ONLY]


def test_working_directory_grants_nothing(place):
    assert place.tries(["touch x"], R, PR, roots=None) == [READ_ONLY]
    assert place.tries(["touch x"], R, PR, roots=[]) == [READ_ONLY]
    assert place.tries(["touch x"], R, PR, roots=None, policyContext={}) == [READ_ONLY]


def test_policy_context_replaces_roots(place):
    place.mkdir("b")
    context = {"cwd": uri(place.path("b")), "workspaceRoots": [uri(place.path("b"))]}
    assert place.tries(["touch x", "touch ../b/x"], R, PR, policyContext=context) == [
        READ_ONLY, "ok"]
    assert place.tries(["touch x"], R, PR, policyContext={}) == [READ_ONLY]
    assert place.tries(["touch x"], R, PR, policyContext=None) == ["ok"]


def test_temporary_directory_is_the_commands(place):
    for name in ("tx", "ty"):
        place.mkdir(name)
    listed = [uri(place.path("tx"))]
    for extra in ({}, {"temporaryDirectories": listed}, {"temporaryDirectories": []}):
        assert place.tries(["touch ../tx/n", "touch ../ty/n"], R, "w :tmpdir",
                           env={"TMPDIR": place.path("ty")}, **extra) == [READ_ONLY, "ok"]


@pytest.mark.parametrize("value", ["/nonexistent", "relative", ""])
@pytest.mark.parametrize("entries", [[R], [R, PR], [R, PR, "w :tmpdir", "w :slash_tmp"]])
def test_bad_temporary_directory_is_ignored(place, value, entries):
    assert place.tries(["echo fine"], *entries, env={"TMPDIR": value}) == ["fine"]


@ROOT_ONLY
def test_temporary_directory_root_opens_the_disk(place):
    assert place.tries(["touch ../n"], R, "w :tmpdir", env={"TMPDIR": "/"}) == ["ok"]


def test_slash_tmp(place):
    name = f"/tmp/sandbox-{os.getpid()}"
    try:
        assert place.tries([f"touch {name}", "touch /tmp/.git/x"], R, "w :slash_tmp") == [
            "ok", READ_ONLY]
        assert os.path.exists(name)
    finally:
        os.unlink(name)


def test_denied_slash_tmp(place):
    assert place.tries(["ls /tmp", "touch x"], R, "d :slash_tmp", PR) == [DENIED, "ok"]


def test_minimal_is_only_a_read_grant(place):
    assert place.tries(["ls -d /usr"], R, "d :minimal") == ["/usr"]
    assert place.tries(["ls -d /usr", "touch /usr/x"], "w :minimal", at="/")[0] == "/usr"
    assert place.tries(["touch /usr/x"], "w :minimal", at="/")[0] in (READ_ONLY, DENIED)


@ROOT_ONLY
def test_write_root_in_the_platform(place):
    name = f"/usr/local/sandbox-{os.getpid()}"
    try:
        assert place.tries([f"touch {name}", "touch /usr/x"], "r :minimal", "w /usr/local",
                           at="/") == ["ok", READ_ONLY]
    finally:
        os.unlink(name)


@pytest.mark.parametrize("value", ["noOverride", "escalatedSandboxWithRestrictions",
                                   "bypassSandboxFirstAttempt"])
def test_override_changes_nothing(place, value):
    place.put("secret")
    got = place.tries(["touch n", "touch ../n", "touch .git/x", "cat ../secret",
                       "grep -c 'Seccomp:.2' /proc/self/status"], R, PR, "d secret",
                      sandboxOverride=value)
    assert got == ["ok", READ_ONLY, READ_ONLY, DENIED, "1"]


def test_legacy_landlock_is_the_same_sandbox(place):
    assert place.tries(["touch n", "touch ../n", "touch .git/x"], R, PR,
                       useLegacyLandlock=True) == ["ok", READ_ONLY, READ_ONLY]


def test_profile_of_the_reference_client(place):
    skip = {"missing_path_behavior": "skip"}
    entries = [R, PR, "w :slash_tmp", "w :tmpdir",
               *({**place.entry(f"r :project_roots/{n}"), **skip}
                 for n in (".git", ".agents", ".codex"))]
    got = place.tries(["touch n", "touch ../n", "touch .git/x", "touch .aws/x"], *entries,
                      env={"TMPDIR": "/tmp"})
    assert got == ["ok", READ_ONLY, READ_ONLY, READ_ONLY]
    assert os.listdir(place.ws) == ["n"]


# Moves between mounts.

RENAME = """/usr/bin/python3 -c "import os, sys
try: os.rename(sys.argv[1], sys.argv[2])
except OSError as e: print(e.strerror)" """


def test_moves_between_roots(place):
    place.put("one/f")
    place.mkdir("two")
    got = place.tries([RENAME + "../one/f ../two/f", "mv ../one/f ../two/f", "cat ../two/f"],
                      R, "w one", "w two")
    assert got == ["Invalid cross-device link", "ok", "content"]

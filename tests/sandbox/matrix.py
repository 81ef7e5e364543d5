"""The escape matrix: what each row of the probe tries, and what must come of it.

A result is a word for success ("OK", sometimes with more behind it), the name of an error,
"KILLED by SYS", or a text. What must come of it is one of

    deny      anything but success
    allow     success; where the host itself refuses (an old kernel), the host's own result
    host      a success if and only if a process outside succeeds
    same      the very text that a process outside gets
    any       either; only where success is no way out, and the reason is given
    root      allow for a server of root, deny for a plain user
    =TEXT     exactly that; several are separated by |

for each of the profiles

    RO   everything readable but one denied directory, network restricted
    WW   RO, and the workspace writable
    WN   WW with the network enabled
    MIN  the platform's directories readable, the workspace writable, network restricted

BARS names the usual combinations.
"""

import re
from collections import namedtuple

PROFILES = ("RO", "WW", "WN", "MIN")

BARS = {
    #          RO       WW       WN       MIN
    "deny":   ("deny",  "deny",  "deny",  "deny"),
    "allow":  ("allow", "allow", "allow", "allow"),
    "root":   ("root",  "root",  "root",  "root"),
    "any":    ("any",   "any",   "any",   "any"),
    "write":  ("deny",  "allow", "allow", "allow"),
    "read":   ("allow", "allow", "allow", "deny"),
    "net":    ("deny",  "deny",  "host",  "deny"),
    "debug":  ("deny",  "deny",  "host",  "deny"),
}

Row = namedtuple("Row", "number section name bars why")


def table(section, *rows):
    """Rows of a section: (number, name, bar[, why]); a bar is a name of BARS, a tuple or =TEXT."""
    made = []
    for number, name, bar, *why in rows:
        bars = BARS.get(bar, bar) if isinstance(bar, str) else bar
        if isinstance(bars, str):
            assert bars.startswith("="), bar
            bars = (bars,) * len(PROFILES)
        made.append(Row(number, section, name, dict(zip(PROFILES, bars)), why[0] if why else ""))
    return made


FILES = table(
    "files",
    (1, "create and write a file in the workspace", "write"),
    (2, "create a file in a sibling directory outside the workspace", "deny"),
    (3, "create a file in /etc", "deny"),
    (4, "create a file directly in /", "deny", "an artificial root is read-only"),
    (5, "create a file in root's home", "deny"),
    (6, "create a file in /tmp (not granted)", ("deny", "deny", "deny", "allow"),
     "where the host's /tmp is not visible there is a private one"),
    (7, "append to an existing outside file", "deny"),
    (8, "open /etc/passwd for append", "deny"),
    (9, "unlink an outside file", "deny"),
    (10, "rename a workspace file over an outside file", "deny"),
    (11, "rename an outside file into the workspace", "deny"),
    (12, "hard-link an outside file into the workspace", "deny"),
    (13, "hard-link .git/config to a writable name", "deny"),
    (14, "write through a hard link that was in the workspace before", "write",
     "the inode is in the workspace, wherever its other names are"),
    (15, "make a symlink to an outside file, write through it", "deny"),
    (16, "make a symlink to an outside directory, create beneath it", "deny"),
    (17, "create via workspace/../sibling", "deny"),
    (18, "create a file in .git", "deny"),
    (19, "append to .git/config", "deny"),
    (20, "rename .git away", "deny"),
    (21, "exchange a new directory with .git", "deny"),
    (22, "unlink .git/config", "deny"),
    (23, "rmdir .git", "deny"),
    (24, "mkdir .codex (missing before)", "deny"),
    (25, "create .codex/config.toml", "deny"),
    (26, "symlink named .agents (missing before)", "deny"),
    (27, "create .aws/credentials", "deny"),
    (28, "rename the workspace root itself", "deny"),
    (29, "chmod an outside file", "deny"),
    (30, "chmod .git/config", "deny"),
    (31, "chown a workspace file to another user", "deny"),
    (32, "utimes on an outside file", "deny"),
    (33, "set a user xattr on an outside file", "deny"),
    (34, "set a trusted xattr in the workspace", "deny"),
    (35, "set file capabilities in the workspace", "deny"),
    (36, "truncate an outside file", "deny"),
    (37, "mknod char 1:1 (mem) in the workspace", "deny"),
    (38, "mknod char 1:3 (null) in the workspace", "deny"),
    (39, "mkfifo in the workspace", "write"),
    (40, "write into a FIFO outside", "deny", "a read-only mount does not stop it"),
    (41, "chmod 4755 on a workspace file", ("deny", "any", "any", "any"),
     "the file belongs to the same user, and inside nothing gains by it"),
    (42, "make a workspace file immutable", "deny"),
    (43, "open an outside file for writing by its handle", "deny"),
    (44, "get a file's handle", "deny"),
    (45, "read a file under a denied directory", "deny"),
    (46, "read an outside file", "read"),
    (47, "read /etc/shadow", "root", "the host's own permissions decide"),
    (48, "list another server's directory in /tmp", "deny"),
    (49, "create in another server's directory in /tmp", "deny"),
    (50, "create in another server's registry of mount points", "deny"),
    (231, "reopen an outside file for writing through /proc/self/fd", "deny"),
    (232, "make an unnamed file outside", "deny"),
    (233, "open an outside FIFO for both directions and write", "deny"),
    (234, "reopen an outside FIFO for writing through /proc/self/fd", "deny"),
    (235, "open a guessed handle", "deny"),
    (236, "stat a file under a denied directory", "deny"),
    (237, "execute a program under a denied directory", "deny"),
    (238, "enter a denied directory", "deny"),
    (239, "list a denied directory", "deny"),
    (240, "make an unnamed file in the workspace", "write"),
)

PROC = table(
    "proc and sys",
    (51, "write via /proc/1/root", "deny"),
    (52, "write via /proc/self/root/..", "deny"),
    (53, "write via /proc/self/cwd/..", "deny"),
    (54, "open /proc/HOSTPID/root/...", "deny"),
    (55, "read /proc/HOSTPID/environ", "deny"),
    (56, "read /proc/1/environ", "deny", "as row 58"),
    (57, "read /proc/1/cmdline", "allow"),
    (58, "open /proc/1/mem read-write", "deny", "pid 1 is less confined than the command"),
    (59, "list /proc/1/fd", "deny", "pid 1 holds descriptors that the command has not"),
    (60, "open /proc/1/exe for write", "deny"),
    (61, "open /proc/self/mem read-write", "allow"),
    (62, "open the parent's /proc/PID/mem read-write", "allow"),
    (63, "write /proc/sys/kernel/core_pattern", "deny"),
    (64, "open /proc/sysrq-trigger", "deny"),
    (65, "write /proc/sys/kernel/hostname", "deny"),
    (66, "open /proc/kcore", "deny"),
    (67, "rewrite own uid_map", "deny"),
    (68, "lower own oom_score_adj", "deny"),
    (69, "write /proc/sys/user/max_user_namespaces", "deny"),
    (70, "number of processes visible in /proc", "=3", "pid 1, the probe, the row"),
    (71, "mkdir in the cgroup tree", "deny"),
    (72, "write cgroup release_agent", "deny"),
    (73, "open /sys/power/state for write", "deny"),
    (230, "write outside through what pid 1 has open", "deny"),
    (241, "read /proc/1/maps", "deny", "as row 58"),
    (242, "write /proc/sys/net/ipv4/ip_forward", "deny"),
    (243, "write /proc/sys/kernel/modprobe", "deny"),
    (244, "write /proc/sys/vm/overcommit_memory", "deny"),
    (245, "write /sys/kernel/uevent_helper", "deny"),
)

DEV = table(
    "dev",
    (74, "open /dev/mem", "deny"),
    (75, "open /dev/kmsg", "deny"),
    (76, "open /dev/kvm", "deny"),
    (77, "open /dev/fuse", "deny"),
    (78, "open /dev/loop-control", "deny"),
    (79, "open the root block device", "deny"),
    (80, "open /dev/net/tun", "deny"),
    (81, "open /dev/vsock", "deny"),
    (82, "open /dev/ptmx (private devpts)", "allow"),
    (83, "open /dev/tty without a terminal", "deny", "row 309 has one"),
    (84, "open /dev/console without a terminal", "deny"),
    (85, "write /dev/null", "allow"),
    (86, "read /dev/urandom", "allow"),
    (87, "create a file in /dev (private)", "allow"),
    (88, "create in /dev/shm (private)", "allow"),
    (89, "open a host file in /dev/shm", "deny"),
    (90, "write and execute a script in /dev/shm", "allow"),
)

SPACES = table(
    "mounts and namespaces",
    (91, "mount a tmpfs", "deny"),
    (92, "bind-mount", "deny"),
    (93, "remount / read-write", "deny"),
    (94, "unmount the .git mask", "deny"),
    (95, "unmount /proc", "deny"),
    (96, "fsopen", "deny"),
    (97, "open_tree(CLONE)", "deny"),
    (98, "mount_setattr on /", "deny"),
    (99, "move_mount", "deny"),
    (100, "pivot_root", "deny"),
    (101, "chroot", "deny"),
    (102, "unshare(NEWUSER)", "any", "nothing is gained: rows 103 to 107, 113, 227"),
    (103, "nested user namespace, mount a tmpfs", "deny"),
    (104, "nested user namespace, remount / read-write", "deny"),
    (105, "nested user namespace, unmount the .git mask", "deny"),
    (106, "nested user namespace, unmount the deny mask", "deny"),
    (107, "nested user namespace, bind the workspace to look under the mask", "deny"),
    (108, "unshare(NEWNS)", "deny"),
    (109, "unshare(NEWNET)", "deny"),
    (110, "unshare(NEWPID)", "deny"),
    (111, "unshare(NEWUTS)", "deny"),
    (112, "unshare(NEWCGROUP)", "deny"),
    (113, "nested user and network namespaces, raw socket", ("deny", "deny", "any", "deny"),
     "with the network enabled: a socket of an empty network of its own"),
    (114, "setns to pid 1's user namespace", "deny"),
    (115, "setns to pid 1's mount namespace", "deny"),
    (116, "clone3(NEWUSER)", "any", "as row 102"),
    (227, "nested user and pid namespaces, a fresh /proc, write its core_pattern", "deny"),
)

CREDENTIALS = table(
    "credentials and seccomp",
    (117, "setuid to another user", "deny"),
    (118, "setgroups", "deny"),
    (119, "raise capabilities", "deny"),
    (120, "capabilities held", "=empty"),
    (121, "no_new_privs, seccomp, dumpable", "=nnp=1 sc=2 dump=1"),
    (122, "exec setuid su", "=no gain"),
    (123, "install a further seccomp filter", "allow"),
    (124, "personality(ADDR_NO_RANDOMIZE)", "allow"),
    (125, "socket() through the x32 number", "=KILLED by SYS|EPERM|no such calls",
     "ENOSYS is what a kernel without them says: the filter must have refused it"),
    (126, "socket() through int 0x80", "deny"),
    (127, "getpid() through int 0x80", "deny"),
    (228, "capabilities that could be had (bounding, ambient)", "=empty"),
)

TASKS = table(
    "other processes",
    (128, "PTRACE_TRACEME", "debug"),
    (129, "ptrace attach to own child", "debug"),
    (130, "ptrace seize the parent", "debug"),
    (131, "ptrace seize pid 1", "deny", "as row 58"),
    (132, "ptrace seize a host process", "deny"),
    (133, "process_vm_readv on self", "debug"),
    (134, "process_vm_writev to the parent", "debug"),
    (135, "process_vm_readv on a host process", "deny"),
    (136, "kill(HOSTPID, 0)", "deny"),
    (137, "SIGCONT to a host process", "deny"),
    (138, "SIGUSR1 to pid 1", "any", "it has no effect"),
    (139, "kill(1, 0)", "any", "it has no effect"),
    (140, "kill(parent, 0)", "allow"),
    (141, "pidfd_open(HOSTPID)", "deny"),
    (142, "pidfd_getfd from pid 1", "deny"),
    (143, "pidfd_getfd from the parent", "deny"),
    (144, "F_SETOWN to a host process", "deny"),
    (145, "prlimit on a host process", "deny"),
    (146, "setpriority on a host process", "deny"),
    (147, "sched_setaffinity on a host process", "deny"),
    (148, "raise own priority", "deny"),
    (149, "kcmp with a host process", "deny"),
    (246, "process_vm_readv on pid 1", "deny", "as row 58"),
)

KERNEL = table(
    "keys, kernel, memory",
    (150, "add_key", "deny"),
    (151, "find a host key in the user keyring", "deny"),
    (152, "get the session keyring", "deny"),
    (153, "read a host key", "deny"),
    (154, "get the persistent keyring", "deny"),
    (155, "bpf(PROG_LOAD)", "deny"),
    (156, "bpf(MAP_CREATE)", "deny"),
    (157, "perf_event_open", "deny"),
    (158, "userfaultfd (user mode only)", "deny"),
    (159, "userfaultfd (kernel faults)", "deny"),
    (160, "io_uring_setup", "deny"),
    (161, "io_setup", "allow"),
    (162, "init_module", "deny"),
    (163, "kexec_load", "deny"),
    (164, "reboot (invalid command)", "deny"),
    (165, "swapon", "deny"),
    (166, "acct", "deny"),
    (167, "read the kernel log", "deny"),
    (168, "iopl", "deny"),
    (169, "settimeofday", "deny"),
    (170, "sethostname", "deny"),
    (171, "fanotify_init", "deny"),
    (172, "inotify", "=OK|EMFILE", "the user may have no instances left"),
    (173, "query Landlock", "allow"),
    (174, "execute a memfd", "allow"),
    (175, "memfd_secret", "allow"),
    (176, "copy a program into the workspace and execute it", "write"),
    (177, "mmap writable and executable", "allow"),
    (178, "quotactl(Q_SYNC)", "deny"),
    (179, "vhangup", "deny"),
    (180, "raise the NOFILE hard limit", "deny"),
    (181, "mlockall", "allow"),
    (182, "setsid", "allow"),
    (248, "fanotify_init as a plain user may", "deny"),
)

NET = table(
    "network",
    (183, "socket(AF_INET)", "net"),
    (184, "socket(AF_INET6)", "net"),
    (185, "TCP connect to a host loopback listener", "net"),
    (186, "TCP connect to an address that is not loopback", "net"),
    (187, "UDP sendto host loopback", "net"),
    (188, "UDP sendmsg host loopback", "net"),
    (189, "raw ICMP socket", "net"),
    (190, "unprivileged ICMP socket", "net"),
    (191, "AF_PACKET", "net"),
    (192, "AF_NETLINK route", "net"),
    (193, "AF_NETLINK audit", "net"),
    (194, "AF_NETLINK uevent", "net"),
    (195, "AF_VSOCK", "deny"),
    (196, "AF_ALG", "net"),
    (197, "AF_KEY", "net"),
    (198, "AF_XDP", "net"),
    (199, "AF_BLUETOOTH", "net"),
    (200, "AF_CAN", "net"),
    (201, "socket(AF_UNIX, STREAM), creation only", "allow"),
    (202, "connect to an outside path-named stream socket", "net"),
    (203, "connect to a stream socket in the workspace", "net"),
    (204, "connect to a host abstract stream socket", "net"),
    (205, "a datagram to an outside path-named socket", "net"),
    (206, "a datagram to a host abstract socket", "net"),
    (207, "bind a unix socket in the workspace", "net"),
    (208, "socketpair", "allow"),
    (209, "read and write on a socketpair", "allow"),
    (210, "send() on a socketpair", "allow", "event loops hang without it"),
    (211, "recv() on a socketpair", "allow"),
    (212, "pass a descriptor over a socketpair", "allow"),
    (213, "getsockopt on a socketpair", "allow", "as row 210"),
    (214, "shutdown on a socketpair", "allow", "as row 210"),
    (215, "getpeername on a pipe", "=ENOTSOCK", "anything else makes bash believe in rshd"),
    (216, "bind and listen on 127.0.0.1", "net"),
    (217, "interfaces visible", ("=lo", "=lo", "same", "=lo")),
)

IPC = table(
    "terminal, IPC, descriptors",
    (218, "TIOCSTI on stdin", "deny"),
    (219, "TIOCLINUX on stdin", "deny"),
    (220, "TIOCSCTTY on stdin by force", "deny"),
    (221, "TIOCSCTTY, then TIOCSTI", "deny"),
    (222, "open a host SysV segment by key", "deny"),
    (223, "open a host SysV queue by key", "deny"),
    (224, "open a host SysV semaphore set by key", "deny"),
    (225, "open a host POSIX queue", "deny"),
    (226, "descriptors above 2", "=none"),
)

ROWS = FILES + PROC + DEV + SPACES + CREDENTIALS + TASKS + KERNEL + NET + IPC

TERMINAL = table(
    "on a terminal",
    (301, "TIOCSTI", "=EPERM"),
    (302, "TIOCSTI with high bits set", "=EPERM"),
    (303, "TIOCLINUX", "=EPERM"),
    (304, "TIOCLINUX with high bits set", "=EPERM"),
    (305, "TIOCSCTTY", "deny"),
    (306, "TIOCSCTTY by force", "deny"),
    (307, "TIOCSCTTY, then TIOCSTI", "deny"),
    (308, "TIOCSCTTY, then TIOCSTI with high bits set", "deny"),
    (309, "open /dev/tty", "allow", "job control works inside"),
    (310, "TIOCSTI on /dev/tty", "=EPERM"),
    (311, "TIOCSTI with high bits set on /dev/tty", "=EPERM"),
    (312, "open /dev/console", "any", "if it is there it is the own terminal"),
    (313, "vhangup", "deny"),
    (314, "descriptors above 2", "=none"),
    (315, "open a terminal of the host", "deny"),
    (316, "TIOCCONS", "deny"),
    (317, "open /dev/stderr for writing", "allow"),
    (318, "a job in the foreground and back", "allow"),
    (319, "the terminal is the session's own", "allow"),
    (320, "read and write the terminal's settings", "allow"),
    (321, "open the terminal by its descriptor", "allow"),
)

# Where processes see those of the host (--linux-sandbox-pid-namespace inherit).
INHERIT = {
    57: ("any", "pid 1 is the host's"),
    59: ("any", "as /proc of the host shows it to this user"),
    61: ("deny", "/proc is the host's, read-only"),
    62: ("deny", "as row 61"),
    70: ("any", "the processes of the host"),
    141: ("any", "no signal can be sent through it"),
    144: ("any", "no signal is sent by it"),
    146: ("any", "it is not out of sight"),
    147: ("any", "it is not out of sight"),
}

# Where there are no namespaces: Landlock and seccomp alone, for a read-only profile that hides
# nothing.
LANDLOCK = {
    **INHERIT,
    45: ("allow", "nothing is denied"),
    48: ("any", "it cannot be hidden"),
    61: ("deny", "/proc is the host's, and read-only"),
    77: ("deny", "/dev is the host's, and read-only"),
    82: ("any", "the host's"),
    87: ("deny", "the host's"),
    88: ("deny", "the host's"),
    89: ("deny", "the host's, and read-only"),
    90: ("deny", "the host's"),
    217: ("same", "the host's network, without sockets"),
    228: ("any", "a plain user cannot empty the bounding set"),
    236: ("allow", "nothing is denied"),
    237: ("allow", "nothing is denied"),
    238: ("allow", "nothing is denied"),
    239: ("allow", "nothing is denied"),
    312: ("any", "the host's, with its own permissions"),
}

SECTIONS = tuple(dict.fromkeys(row.section for row in ROWS))


def success(result):
    return result.split(" ")[0] == "OK"


def right(expected, result, baseline, root):
    """Whether a result is what the table asks for; baseline is that of a process outside."""
    if result == "TIMEOUT" or result.startswith(("no result", "no child")):
        return False
    if expected == "root":
        expected = "allow" if root else "deny"
    if expected == "any":
        return True
    if expected == "deny":
        return not success(result)
    if expected == "allow":
        return success(result) or (not success(baseline) and result == baseline)
    if expected == "host":
        return success(result) == success(baseline) and not result.startswith("KILLED")
    if expected == "same":
        return result == baseline
    assert expected.startswith("="), expected
    return result in expected[1:].split("|")


def compare(rows, profile, results, baseline, root, changes=()):
    """Lines about rows that are not as they must be; changes take precedence over the table."""
    wrong = []
    for row in rows:
        result = results.get(row.number, "no result")
        expected, why = row.bars[profile], row.why
        if row.number in changes:
            expected, why = changes[row.number]
        if not right(expected, result, baseline[row.number], root):
            wrong.append(f"row {row.number}, {row.name}: {result}, expected {expected}"
                         + (f" ({why})" if why else ""))
    return wrong


def parse(text):
    """Results by number, of the probe's output; a terminal may add what a row typed into it."""
    found = (re.search(r"(\d+)\t(.*)", line) for line in text.splitlines())
    return {int(match.group(1)): match.group(2) for match in found if match}

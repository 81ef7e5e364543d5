"""What the probe aims at: objects of the host, made for one user, and whether they are whole."""

import contextlib
import ctypes
import os
import pathlib
import secrets
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile

SOURCES = sorted(pathlib.Path(__file__).parent.glob("probe*.c"))
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O1", "-static", "-no-pie", "-Wall", "-Wextra", "-Werror"]

# Pids in a sandbox begin with 1; no row may meet the host process by its number.
PID_ABOVE = 3000

LIBC = ctypes.CDLL(None, use_errno=True)
IPC_NEW = 0o1000 | 0o2000  # IPC_CREAT | IPC_EXCL
IPC_RMID = 0

# Names that the probe would make in places which the whole host shares.
SHARED = ["/sandbox-probe", "/etc/sandbox-probe", "/root/sandbox-probe", "/tmp/sandbox-probe",
          "/dev/sandbox-probe", "/dev/shm/sandbox-probe", "/sys/fs/cgroup/sandbox-probe"]
SETTINGS = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
            "/proc/sys/kernel/modprobe", "/proc/sys/user/max_user_namespaces",
            "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward"]
PROTECTED = [".git", ".agents", ".codex", ".aws"]


def build(directory):
    """Compiles the probe; its path."""
    path = os.path.join(directory, "probe")
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, *FLAGS, "-o", path, *map(str, SOURCES)], check=True, timeout=120)
    os.chmod(path, 0o755)
    return path


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def root_disk():
    """The block device that / is on, or one that is usually there."""
    with open("/proc/self/mounts", encoding="ascii", errors="replace") as f:
        for line in f:
            device, where = line.split()[:2]
            if where == "/" and device.startswith("/dev/") and os.path.exists(device):
                return device
    return "/dev/vda"


def own_address():
    """An IPv4 address of this host that is not loopback; one that nobody has if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return "192.0.2.1"


def describe(path):
    """Everything about one name that a process could change, except the time of reading."""
    st = os.lstat(path)
    content = None
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            content = f.read()
    attributes = os.listxattr(path, follow_symlinks=False)
    return (st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns,
            st.st_ctime_ns, content, attributes)


def snapshot(directory):
    found = {}
    for where, names, files in os.walk(directory):
        for name in [".", *names, *files]:
            path = os.path.normpath(os.path.join(where, name))
            found[path] = describe(path)
    return found


class World:
    """The objects; `arguments` tells the probe about them. Everything belongs to `uid`."""

    def __init__(self, probe, uid, parent="/var/tmp"):
        self.uid = uid
        self.stack = contextlib.ExitStack()
        self.base = tempfile.mkdtemp(prefix="sandbox-matrix-", dir=parent)
        self.stack.callback(shutil.rmtree, self.base)
        os.chmod(self.base, 0o755)
        self.ws, self.outside, self.denied = (
            os.path.join(self.base, name) for name in ("ws", "outside", "denied"))
        self.name = f"sandbox-probe-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            self.make_files(probe)
            self.make_sockets()
            self.make_ipc()
            self.own()
            self.hold()
        except BaseException:
            self.stack.close()
            raise
        self.before = self.state()

    def put(self, directory, name, text="content\n", mode=0o644):
        path = pathlib.Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(mode)

    def directory(self, path):
        """A directory of another server, if there is none; ours to remove then."""
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            return
        os.chown(path, self.uid, self.uid)
        self.stack.callback(os.rmdir, path)

    def make_files(self, probe):
        for name in ("file", "mover"):
            self.put(self.ws, name)
        self.put(self.ws, ".git/config", "[core]\n")
        os.mkdir(os.path.join(self.ws, "mnt"))
        self.probe = shutil.copy(probe, self.ws)
        for name in ("file", "target"):
            self.put(self.outside, name)
        self.put(self.denied, "secret", "secret\n")
        shutil.copy(probe, os.path.join(self.denied, "program"))
        self.put(self.base, "linked/file")
        os.link(os.path.join(self.base, "linked/file"), os.path.join(self.ws, "hardlink"))
        os.mkfifo(os.path.join(self.outside, "fifo"))
        self.fifo = os.open(os.path.join(self.outside, "fifo"), os.O_RDONLY | os.O_NONBLOCK)
        self.stack.callback(os.close, self.fifo)
        path = os.path.join("/dev/shm", self.name)
        with open(path, "w", encoding="ascii") as f:
            f.write("host\n")
        os.chown(path, self.uid, self.uid)
        self.stack.callback(os.unlink, path)
        for name in ("daemon", "bwrap-synthetic-mount-targets"):
            self.directory(f"/tmp/codex-{name}-{self.uid}")
        master, slave = os.openpty()
        self.stack.callback(os.close, master)
        self.stack.callback(os.close, slave)
        self.terminal = os.ttyname(slave)
        os.chown(self.terminal, self.uid, -1)

    def listen(self, family, kind, address):
        made = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        self.stack.callback(made.close)
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen(64)
        return made

    def make_sockets(self):
        unix, inet = socket.AF_UNIX, socket.AF_INET
        stream, dgram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        self.listeners = {
            "outside stream": self.listen(unix, stream, f"{self.outside}/stream.sock"),
            "workspace stream": self.listen(unix, stream, f"{self.ws}/stream.sock"),
            "abstract stream": self.listen(unix, stream, f"\0{self.name}"),
            "tcp": self.listen(inet, stream, ("127.0.0.1", 0)),
        }
        self.mailboxes = {
            "outside datagram": self.listen(unix, dgram, f"{self.outside}/dgram.sock"),
            "abstract datagram": self.listen(unix, dgram, f"\0{self.name}-dgram"),
            "udp": self.listen(inet, dgram, ("127.0.0.1", 0)),
        }

    def make_ipc(self):
        self.key = secrets.randbelow(0x7FFFFFFE) + 1
        shm = check(LIBC.shmget(self.key, 4096, IPC_NEW | 0o666), "shmget")
        self.stack.callback(LIBC.shmctl, shm, IPC_RMID, None)
        queue = check(LIBC.msgget(self.key, IPC_NEW | 0o666), "msgget")
        self.stack.callback(LIBC.msgctl, queue, IPC_RMID, None)
        semaphores = check(LIBC.semget(self.key, 1, IPC_NEW | 0o666), "semget")
        self.stack.callback(LIBC.semctl, semaphores, 0, IPC_RMID)
        self.mqueue = "/" + self.name
        mask = os.umask(0)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        fd = check(LIBC.mq_open(self.mqueue.encode(), flags, 0o666, None), "mq_open")
        os.umask(mask)
        LIBC.mq_close(fd)
        self.stack.callback(LIBC.mq_unlink, self.mqueue.encode())

    def own(self):
        """Permissions of the host must not be what stops a row."""
        for where, names, files in os.walk(self.base):
            for name in [".", *names, *files]:
                os.lchown(os.path.join(where, name), self.uid, self.uid)

    def command(self, *argv):
        """What starts a program as the user outside any sandbox."""
        ids = [f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        return ["setpriv", *ids, "--", *argv] if self.uid != os.geteuid() else list(argv)

    def hold(self):
        """A process of the user that the rows aim at, with a key in the user's keyring."""
        # pylint: disable=consider-using-with
        self.held = subprocess.Popen(
            self.command(self.probe, "hold", str(PID_ABOVE), self.name),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        self.stack.callback(self.release)
        self.pid, self.serial = map(int, self.held.stdout.readline().split())

    def release(self):
        self.held.communicate(timeout=20)

    def arguments(self):
        aims = {"ws": self.ws, "outside": self.outside, "denied": self.denied,
                "disk": root_disk(), "shm": self.name, "mqueue": self.mqueue,
                "abstract": self.name, "key": self.name, "address": own_address(),
                "terminal": self.terminal, "pid": self.pid, "serial": self.serial,
                "ipc": self.key, "tcp": self.listeners["tcp"].getsockname()[1],
                "udp": self.mailboxes["udp"].getsockname()[1]}
        return [f"{name}={value}" for name, value in aims.items()]

    def state(self):
        """What no sandboxed process may have changed."""
        settings = {}
        for path in SETTINGS:
            try:
                settings[path] = pathlib.Path(path).read_bytes()
            except OSError as e:
                settings[path] = e.errno
        return {"outside": snapshot(self.outside), "denied": snapshot(self.denied),
                ".git": snapshot(os.path.join(self.ws, ".git")), "settings": settings,
                "name": socket.gethostname(), "shared": [p for p in SHARED if os.path.lexists(p)],
                "workspace": sorted(os.listdir(self.ws)), "base": sorted(os.listdir(self.base))}

    def heard(self):
        """What came out of a sandbox: {name: bytes} of mailboxes, {name: count} of listeners."""
        found = {}
        try:
            found["fifo"] = os.read(self.fifo, 4096)
        except BlockingIOError:
            found["fifo"] = b""
        for name, box in self.mailboxes.items():
            found[name] = b""
            with contextlib.suppress(BlockingIOError):
                while True:
                    found[name] += box.recv(4096)
        for name, listener in self.listeners.items():
            found[name] = b""
            with contextlib.suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close()
                    found[name] += b"connection"
        return {name: data for name, data in found.items() if data}

    def close(self):
        self.stack.close()

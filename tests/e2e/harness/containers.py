"""Containers as Docker and podman make them, run by runc from bundles of our own."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .rpc import Client
from .settings import BINARY
from .stdio import Stdio

# What Docker leaves to a container's root, and hides of the kernel's files.
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
                "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"]
MASKED = ["/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
          "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
          "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]

NAMESPACE_FLAGS = [0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
                   0x00020000]


def deny(*names, errno=1, flag=None):
    """A rule of a filter: these system calls fail, clone() with a flag, if one is given.

    Without an errno they kill the process."""
    args = [] if flag is None else [{"index": 0, "value": flag, "valueTwo": flag,
                                     "op": "SCMP_CMP_MASKED_EQ"}]
    if errno is None:
        return {"names": list(names), "action": "SCMP_ACT_KILL_PROCESS", "args": args}
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": args}


# The effects of Docker's filter on a container without CAP_SYS_ADMIN that matter here.
DOCKER = [
    deny("mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig",
         "fsmount", "fspick", "mount_setattr", "setns", "unshare", "bpf", "perf_event_open",
         "fanotify_init", "quotactl", "sethostname", "setdomainname", "swapon", "swapoff"),
    deny("keyctl", "add_key", "request_key", "userfaultfd", "open_by_handle_at", "reboot",
         "init_module", "finit_module", "delete_module", "kexec_load", "acct"),
    *(deny("clone", flag=flag) for flag in NAMESPACE_FLAGS), deny("clone3", errno=38)]
NO_USERNS = [deny("clone", flag=0x10000000)]
NO_LANDLOCK = [deny("landlock_create_ruleset", errno=38)]


class Image:
    """A root file system: the host's /usr ("debian"), a static busybox, or nothing else at all."""

    NAMES = ("debian", "busybox", "scratch")

    def __init__(self, name, program, parent):
        self.name, self.program = name, program
        self.root = Path(parent) / f"image-{name}"
        for directory in ("dev", "proc", "sys", "work", "home"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "tmp").mkdir()
        (self.root / "tmp").chmod(0o1777)
        if name != "scratch":
            (self.root / "etc").mkdir()
            (self.root / "etc/passwd").write_text(
                "root:x:0:0::/:/bin/sh\nuser:x:12345:12345::/home:/bin/sh\n")
        self.mounts = []
        getattr(self, f"fill_{name}")()

    def bind(self, source, target, writable=False):
        place = self.root / target.lstrip("/")
        if Path(source).is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        self.mounts.append(bind(source, target, writable))

    def fill_debian(self):
        self.bind("/usr", "/usr")
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.root / name).symlink_to(f"usr/{name}")
        if os.path.isdir("/etc/alternatives"):
            self.bind("/etc/alternatives", "/etc/alternatives")
        for name in ("/etc/ld.so.cache", "/etc/java-17-openjdk"):
            if os.path.exists(name):
                self.bind(name, name)
        self.bind(self.program, "/opt/exec-server")

    def fill_busybox(self):
        (self.root / "bin").mkdir()
        shutil.copy(shutil.which("busybox"), self.root / "bin/busybox")
        for name in ("sh", "cat", "ls", "touch", "true", "mkdir", "readlink", "tee", "head", "tr",
                     "sleep"):
            (self.root / "bin" / name).symlink_to("busybox")
        self.fill_scratch()

    def fill_scratch(self):
        """The program, and what it is linked with."""
        self.bind(self.program, "/opt/exec-server")
        done = subprocess.run(["ldd", self.program], capture_output=True, text=True, check=False)
        for word in done.stdout.split() if done.returncode == 0 else []:
            if word.startswith("/"):
                self.bind(os.path.realpath(word), word)


def bind(source, target, writable=False):
    return {"destination": target, "type": "bind", "source": str(source),
            "options": ["bind", "rprivate", "rw" if writable else "ro"]}


def mount(target, kind, *options):
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


class Container:
    """One container; its options are those a user of Docker would choose."""

    def __init__(self, image, *, uid=0, caps=None, rules=(), masked=True, readonly=False,
                 userns=False, no_new_privs=False, directory=None, more=()):
        self.image = image
        self.dir = Path(tempfile.mkdtemp(prefix="container-", dir=directory))
        self.name = f"exec-server-test-{os.getpid()}-{self.dir.name.rpartition('-')[2]}"
        self.work = self.dir / "work"
        self.work.mkdir()
        os.chown(self.work, uid, uid)
        names = [f"CAP_{c}" for c in (CAPABILITIES if caps is None else caps)]
        mine = names if uid == 0 else []
        sets = {k: names if k == "bounding" else mine
                for k in ("bounding", "effective", "permitted")}
        mounts = [mount("/proc", "proc"),
                  mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
                  mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666",
                        "mode=0620"),
                  mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777"),
                  mount("/dev/mqueue", "mqueue", "nosuid", "noexec", "nodev"),
                  mount("/sys", "sysfs", "nosuid", "noexec", "nodev", "ro"),
                  mount("/tmp", "tmpfs", "nosuid", "nodev", "mode=1777"),
                  *image.mounts, bind(self.work, "/work", True), *more]
        spaces = ["pid", "ipc", "uts", "mount", "network"] + (["user"] if userns else [])
        linux = {"namespaces": [{"type": n} for n in spaces],
                 "maskedPaths": MASKED if masked else [],
                 "readonlyPaths": READ_ONLY if masked else []}
        if rules:
            linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": list(rules)}
        if userns:
            linux["uidMappings"] = linux["gidMappings"] = [
                {"containerID": 0, "hostID": 100000, "size": 65536}]
            os.chown(self.work, 100000 + uid, 100000 + uid)
        self.config = {
            "ociVersion": "1.0.2", "hostname": "container", "mounts": mounts, "linux": linux,
            "root": {"path": str(image.root), "readonly": readonly},
            "process": {"user": {"uid": uid, "gid": uid}, "cwd": "/", "capabilities": sets,
                        "noNewPrivileges": no_new_privs, "args": [],
                        "env": ["PATH=/usr/bin:/bin", "HOME=/home"]}}

    def command(self, *args):
        """What runs a program of the image in the container."""
        self.config["process"]["args"] = list(args)
        (self.dir / "config.json").write_text(json.dumps(self.config))
        return ["runc", "--root", str(self.dir / "state"), "run", "--bundle", str(self.dir),
                self.name]

    def run(self, *args):
        """Runs exec-server with these arguments to its end."""
        return subprocess.run(self.command("/opt/exec-server", *args), capture_output=True,
                              text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)

    def client(self, *args):
        """A client of an exec-server in it."""
        command = self.command("/opt/exec-server", "--listen", "stdio", *args)
        client = Client(Stdio(command=command))
        client.initialize()
        return client

    def close(self):
        subprocess.run(["runc", "--root", str(self.dir / "state"), "delete", "--force", self.name],
                       capture_output=True, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


class Containers:
    """Images that are made when first asked for, and the containers of one test."""

    def __init__(self, program=BINARY):
        self.dir = tempfile.mkdtemp(prefix="containers-", dir="/var/tmp")
        os.chmod(self.dir, 0o755)
        self.program = shutil.copy(program, self.dir)
        os.chmod(self.program, 0o755)
        self.images, self.made = {}, []

    def image(self, name):
        if name not in self.images:
            self.images[name] = Image(name, self.program, self.dir)
        return self.images[name]

    def start(self, image="debian", **options):
        made = Container(self.image(image), directory=self.dir, **options)
        os.chmod(made.dir, 0o755)
        self.made.append(made)
        return made

    def finish(self):
        for container in self.made:
            container.close()
        self.made = []

    def close(self):
        self.finish()
        shutil.rmtree(self.dir, ignore_errors=True)


def why_not():
    """Why no container can be run here; None if one can."""
    if os.geteuid() != 0:
        return "containers need root"
    for program in ("runc", "busybox"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None

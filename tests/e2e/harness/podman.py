"""podman with a storage of its own, as root or as a user without rights."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .settings import PATIENCE, ROOT

NEEDED = ("podman", "runc", "catatonit", "newuidmap", "slirp4netns")
USER = 54321
SUBORDINATE = 1 << 28
# podman's defaults want more open files than a root without CAP_SYS_RESOURCE may allow. The rest is
# what podman chooses itself where systemd does not run.
LOWERED = "[containers]\ndefault_ulimits = []\n"
LIMITS = "error setting rlimit"


class PodmanError(Exception):
    """podman failed; the text is what it said."""


def why_not():
    """Why podman cannot be tried here, or None."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "not root"


class Podman:
    """Calls podman with private storage. `conf` is a containers.conf."""

    def __init__(self, conf=""):
        self.place = Path(tempfile.mkdtemp(prefix="podman-", dir="/var/tmp"))
        self.place.chmod(0o755)
        self.home = self.place / "home"
        for name in ("home", "run"):
            (self.place / name).mkdir(mode=0o700)
        self.uid = 0
        self.write("storage.conf", f'[storage]\ndriver = "vfs"\ngraphroot = "{self.home}/store"\n'
                                   f'runroot = "{self.place}/run/store"\n')
        self.write("containers.conf", conf)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8",
                    "TMPDIR": str(self.home), "XDG_RUNTIME_DIR": f"{self.place}/run",
                    "CONTAINERS_CONF": f"{self.place}/containers.conf",
                    "CONTAINERS_STORAGE_CONF": f"{self.place}/storage.conf"}

    def write(self, name, text):
        (self.place / name).write_text(text)

    def command(self, *args):
        return ["podman", *args]

    def call(self, *args, text=None):
        """The finished process."""
        return subprocess.run(self.command(*args), env=self.env, cwd=self.place, check=False,
                              capture_output=True, text=True, input=text, timeout=900)

    def __call__(self, *args, text=None):
        """Its standard output; its failure is an error with what it said."""
        done = self.call(*args, text=text)
        if done.returncode != 0:
            raise PodmanError(f"podman {' '.join(args)[:300]}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def lower_limits(self):
        """Tries podman's defaults; where the host refuses its limits, goes on without them. Returns
        what podman said."""
        done = self.call("run", "--rm", self.image, "--version")
        if done.returncode == 0:
            return None
        if LIMITS not in done.stderr:
            raise PodmanError(done.stderr)
        self.write("containers.conf", LOWERED)
        return done.stderr.strip()

    def load(self, archive):
        """Loads an image of tools/image; `image` is its name."""
        said = self("load", "-i", str(archive))
        self.image = said.strip().rpartition("Loaded image: ")[2]

    def close(self):
        self.call("system", "reset", "--force")
        shutil.rmtree(self.place, ignore_errors=True)


class Rootless(Podman):
    """podman of a user who exists only in a mount namespace, with subordinate ids."""

    def __init__(self, conf=""):
        super().__init__(conf)
        self.uid = USER
        for name in ("home", "run"):
            os.chown(self.place / name, USER, USER)
        etc = self.place / "etc"
        etc.mkdir()
        entry = f"someone:x:{USER}:{USER}::{self.home}:/bin/sh\n"
        (etc / "passwd").write_text(Path("/etc/passwd").read_text() + entry)
        (etc / "group").write_text(Path("/etc/group").read_text() + f"someone:x:{USER}:\n")
        for name in ("subuid", "subgid"):
            (etc / name).write_text(f"someone:{SUBORDINATE}:65536\n")
        # Everybody may open it where a udev runs.
        self.tun = etc / "tun"
        os.mknod(self.tun, 0o600 | 0o20000, os.makedev(10, 200))
        self.tun.chmod(0o666)

    def command(self, *args):
        binds = " && ".join([f"mount --bind {self.place}/etc/{name} /etc/{name}"
                             for name in ("passwd", "group", "subuid", "subgid")]
                            + [f"mount --bind {self.tun} /dev/net/tun"])
        return ["unshare", "--mount", "sh", "-c",
                f'{binds} && exec setpriv --reuid={USER} --regid={USER} --clear-groups "$@"', "sh",
                "podman", *args]

    def close(self):
        self.call("system", "reset", "--force")
        for path in self.place.rglob("pause.pid"):  # it keeps the user's namespaces
            try:
                os.kill(int(path.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.place, ignore_errors=True)


def debian_image(place):
    """The image of `make image-debian`, from packages that are built if there are none."""
    packages = sorted((ROOT / "dist" / "deb").glob("exec-server*.deb"))
    names = [p for p in packages if p.name.partition("_")[0] in ("exec-server", "exec-server-http")]
    if len(names) != 2:
        subprocess.run([ROOT / "tools" / "deb", place / "deb"], check=True, timeout=3600,
                       stdout=subprocess.DEVNULL)
        names = [next((place / "deb").glob(f"{name}_*.deb"))
                 for name in ("exec-server", "exec-server-http")]
    target = place / "debian.tar"
    subprocess.run([ROOT / "tools" / "image", "--debian", *names, target], check=True, timeout=3600,
                   stdout=subprocess.DEVNULL)
    return target


def inspect(podman, name, field):
    return json.loads(podman("inspect", name))[0][field]


__all__ = ["LOWERED", "PATIENCE", "Podman", "PodmanError", "Rootless", "debian_image", "inspect",
           "why_not"]

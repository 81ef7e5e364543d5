"""File trees: how fixtures are made, and what of a tree is compared."""

import hashlib
import os
import shutil
import socket
import stat

OLD = 1_000_000_000_123_456_789  # modification time of everything in a fixture, nanoseconds
USER = 65534                     # uid and gid of the servers that run as a plain user

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link",
         stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "character device",
         stat.S_IFBLK: "block device"}


def raw(name):
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")


def top(name):
    """The first component of a relative name."""
    return raw(name).partition(b"/")[0]


class Tree:
    """A tree below a directory that is made anew, or of which only the entries whose first
    component is in `only` are made anew. Names are relative, str or bytes. Modes, owners and times
    are set by finish(), so that order does not matter while the tree is built."""

    def __init__(self, root, owner=None, only=None):
        self.root = raw(root)
        self.owner = owner
        self.only = only
        self.modes = {}
        self.times = {}
        self.owners = {}
        if only is None:
            remove(self.root)
            os.mkdir(self.root)
        else:
            for name in only:
                remove(self.path(name))

    def path(self, name):
        return os.path.join(self.root, raw(name)) if name else self.root

    def wanted(self, name):
        return self.only is None or top(name) in self.only

    def _new(self, name, mode=None):
        """The path of an entry that is to be made; None for one that is there already."""
        if mode is not None:
            self.modes[raw(name)] = mode
        return self.path(name) if self.wanted(name) else None

    def file(self, name, content=b"", mode=0o644):
        if path := self._new(name, mode):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, raw(content))
            os.close(fd)

    def directory(self, name, mode=0o755):
        if path := self._new(name, mode):
            os.mkdir(path)

    def link(self, name, target):
        """A symbolic link; a target that begins with / is taken as absolute within the tree."""
        target = raw(target)
        if path := self._new(name):
            os.symlink(self.root + target if target.startswith(b"/") else target, path)

    def link_outside(self, name, target):
        if path := self._new(name):
            os.symlink(target, path)

    def hard(self, name, of):
        if path := self._new(name):
            os.link(self.path(of), path)

    def fifo(self, name, mode=0o644):
        if path := self._new(name, mode):
            os.mkfifo(path)

    def socket(self, name):
        if path := self._new(name, 0o755):
            # Bound under a short name: a path in a socket address has at most 107 bytes.
            parent = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(f"/proc/self/fd/{parent}/.s")
            os.rename(b".s", path, src_dir_fd=parent)
            os.close(parent)

    def device(self, name, kind=stat.S_IFCHR, major=1, minor=3):
        if path := self._new(name, 0o666):
            os.mknod(path, kind | 0o666, os.makedev(major, minor))

    def finish(self):
        names = [b"", *(e.removeprefix(self.root + b"/") for e in entries(self.root))]
        for name in reversed(names):
            if name and not self.wanted(name):
                continue
            path = self.path(name)
            if self.owner is not None:
                uid = self.owners.get(name, self.owner)
                os.chown(path, uid, uid, follow_symlinks=False)
            if name in self.modes:
                os.chmod(path, self.modes[name])
            when = self.times.get(name, OLD)
            os.utime(path, ns=(when, when), follow_symlinks=False)


def entries(root):
    """Paths of everything below a directory, parents before children, sorted."""
    out = []
    for entry in sorted(os.scandir(root), key=lambda e: e.name):
        out.append(entry.path)
        if entry.is_dir(follow_symlinks=False):
            out += entries(entry.path)
    return out


def remove(root):
    """Removes a tree, whatever its modes are; works as root only."""
    if os.path.isdir(root) and not os.path.islink(root):
        shutil.rmtree(root)
    elif os.path.lexists(root):
        os.unlink(root)


def describe(path, root):
    """One line for everything of an entry that two servers must agree on."""
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    words = [KINDS[kind], f"{stat.S_IMODE(st.st_mode):04o}", f"uid {st.st_uid}"]
    if kind == stat.S_IFLNK:
        words.append("to " + shown(os.readlink(path).replace(root, b"<root>")))
    elif kind == stat.S_IFREG:
        words.append(f"{st.st_size} bytes, {st.st_nlink} links")
        if st.st_size <= 1 << 26:
            with open(path, "rb") as f:
                words.append(hashlib.sha256(f.read()).hexdigest()[:16])
    return " ".join(words)


def shown(name):
    return name.decode("utf-8", "surrogateescape")


def snapshot(root):
    """What two servers must agree on, for every entry of a tree."""
    root = raw(root)
    if not os.path.lexists(root):
        return {"": "no tree"}
    return {shown(path[len(root) + 1:]): describe(path, root) for path in entries(root)}


def changes(before, after):
    """What an operation did to a tree, from two snapshots."""
    out = {name: "gone" for name in before if name not in after}
    out.update({name: line for name, line in after.items() if before.get(name) != line})
    return out

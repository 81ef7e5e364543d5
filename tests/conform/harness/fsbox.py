"""Random file calls under random permission profiles.

The profiles speak of a few directories that every tree has, and of files found in it. What the
reference cannot set up, or what the two servers are meant to do differently to their trees, is not
generated (see fits and hazard)."""

import os
import re
import urllib.parse

from . import fsgen
from .fscase import WALK

# Policies name these; below them are random trees.
PLACES = [b"w1", b"w1/x", b"w1/y", b"w2", b"w2/x", b"r1", b"r1/x", b"n", b"n/x"]
PROTECTED = (".git", ".agents", ".codex", ".aws")
PROFILES = 6  # in a stretch
CONFINED = ("readFile", "open", "writeFile", "createDirectory", "getMetadata", "canonicalize",
            "readDirectory", "walk", "remove", "copy")
DENIED = b"b"  # the name that patterns deny


class Place(fsgen.Path):
    """A path in a policy."""

    def __init__(self, name):
        super().__init__(name, 0, 0)

    def uri(self, root):
        return "file://" + urllib.parse.quote(root + b"/" * bool(self.name) + self.name)


class Pattern(fsgen.Path):
    """Everything below a path that has the denied name."""

    def uri(self, root):
        return os.fsdecode(os.path.join(root, self.name, b"**", DENIED))


class Profile:
    """A sandbox object, and what it is about."""

    def __init__(self, rng, files):
        base = rng.choice(([], ["minimal"], ["minimal"], ["root"]))
        entries = [{"path": {"type": "special", "value": {"kind": k}}, "access": "read"}
                   for k in base]
        self.access = {p: rng.choice(("read", "write", "write", "deny")) for p in PLACES
                       if rng.random() < 0.5}
        if rng.random() < 0.2:
            self.access[b""] = rng.choice(("read", "write"))
        if files and rng.random() < 0.3:
            self.access[rng.choice(files)] = rng.choice(("read", "deny"))
        for path in [p for p in self.access if self.is_odd(p, base)]:
            del self.access[path]
        entries += [{"path": {"type": "path", "path": Place(p)}, "access": a}
                    for p, a in self.access.items()]
        self.pattern = rng.choice(PLACES) if rng.random() < 0.2 else None
        if self.pattern is not None and self.reach(self.pattern) == "deny":
            self.pattern = None
        if self.pattern is not None:
            entries.append({"path": {"type": "glob_pattern",
                                     "pattern": Pattern(self.pattern, 0, 0)}, "access": "deny"})
        rng.shuffle(entries)
        self.sandbox = {
            "permissions": {"type": "managed", "network": "restricted",
                            "file_system": {"type": "restricted", "entries": entries}},
            "cwd": Place(b""), "windowsSandboxLevel": "disabled"}

    def reach(self, path):
        """What the policy says of a path by its own entry or the nearest above; None: nothing."""
        above = [p for p in self.access if p in (b"", path) or path.startswith(p + b"/")]
        return self.access[max(above, key=len)] if above else None

    def is_odd(self, path, base):
        """Whether an entry is about what is hidden anyway: the reference cannot deny what it has
        denied before, and shows the way to what is denied where nothing else is to be seen."""
        access, above = self.access[path], path and self.reach(os.path.dirname(path))
        if access == "deny" and above is None and base != ["root"]:
            return True
        return path != b"" and access != "write" and above == "deny"

    def fits(self, root):
        """Whether the reference can set it up: it knows no writable files, and no links."""
        for path, access in self.access.items():
            at = os.path.join(root, path)
            whole = os.path.realpath(at)
            if whole != os.path.realpath(root) + b"/" * bool(path) + path:
                return False
            if os.path.lexists(at) and access == "write" and not os.path.isdir(at):
                return False
            if access == "write" and any(os.path.lexists(os.path.join(at, p.encode()))
                                         for p in PROTECTED):
                return False
        return self.pattern is None or (
            self.can_expand(os.path.join(root, self.pattern)) and self.can_mask(root))

    def can_mask(self, root):
        """The reference cannot deny by a pattern what lies in a denied directory."""
        return all(self.reach(os.path.relpath(found, root)) != "deny"
                   for found in matches(os.path.join(root, self.pattern)))

    @staticmethod
    def can_expand(top):
        """The reference fails at directories it cannot read, and at links that match."""
        readable = all(os.stat(path).st_mode & 0o555 == 0o555 for path, _, _ in os.walk(top))
        return readable and not any(os.path.islink(p) for p in matches(top))

    def concerns(self, root, at):
        """Whether a path, or something below it, has a rule of its own."""
        named = [os.path.join(root, p) for p in self.access]
        return any(p == at or p.startswith(at + b"/") for p in named) or (
            self.pattern is not None and any(True for _ in matches(at)))


def matches(directory):
    """What the denied name leads to below a directory."""
    for path, directories, files in os.walk(directory):
        if DENIED in directories + files:
            yield os.path.join(path, DENIED)


def build(root, rng, names, user):
    """A random tree in each of the places."""
    fsgen.build(root, rng, names, user, 20)
    for place in PLACES:
        at = os.path.join(root, place)
        fsgen.build(at, rng, names[:8], user, 12)
        os.chmod(at, 0o755)


class Generator(fsgen.Generator):
    """Calls that are made under one of a few profiles."""

    def __init__(self, rng, names, root):
        super().__init__(rng, names, root)
        self.weights = {m: w for m, w in self.weights.items() if m != "watchMissing"}
        self.scan()
        # Odd bytes in a policy make the reference fall silent.
        plain = [n for n in self.files if re.fullmatch(rb"[a-z0-9/]+", n)
                 and not os.path.islink(os.path.join(root, n))]
        self.profiles = [Profile(rng, plain) for _ in range(PROFILES)]

    def call(self):
        while True:
            method, params = super().call()
            if method not in CONFINED:
                return method, params
            profile = self.rng.choice(self.profiles)
            if isinstance(params, dict) and profile.fits(self.root) and \
                    not self.unlike(method, params, profile):
                return method, {**params, "sandbox": profile.sandbox}

    def walk(self):
        """Without limits that names count towards which only the reference shows."""
        made = super().walk()
        made["options"].update(maxEntries=WALK["maxEntries"],
                               maxDirectories=WALK["maxDirectories"])
        return made

    def spoil(self, method, params):
        return method, params

    def unlike(self, method, params, profile):
        """Trees are changed in parts where something in them may not be: in which order is
        nobody's business."""
        if method == "remove" and params.get("recursive") is not False:
            return profile.concerns(self.root, self.native(params["path"]))
        if method == "copy" and params["recursive"]:
            return any(profile.concerns(self.root, self.native(params[k]))
                       for k in ("sourcePath", "destinationPath"))
        return False

    def native(self, path):
        at = os.path.join(self.root, path.name)
        return os.path.join(os.path.realpath(os.path.dirname(at)), os.path.basename(at))


def visible(answer):
    """An answer without what only one of the servers shows: names that are not there, times of
    what stands in for a denied file."""
    if not isinstance(answer, dict):
        return answer
    if "entries" in answer:
        answer["entries"] = [e for e in answer["entries"]
                             if os.path.basename(e.get("fileName", e.get("path", "")))
                             not in PROTECTED]
    if "modifiedAtMs" in answer and (answer["isDirectory"] or answer.get("size") == 0):
        answer = {k: v for k, v in answer.items() if not k.endswith("AtMs")}
    return answer



"""Random calls of the file methods, over trees of few but odd names.

Everything follows from the seed and from what the calls did to the first tree: the same seed gives
the same calls. What would hang the reference, or what the two servers are meant to do differently
to their trees, is not generated (see hazards)."""

import base64
import os
import re
import stat
import urllib.parse

from .fscase import WALK
from .fstree import USER, Tree, entries
from .values import BASE64, NUMBERS, WRONG, Literal

NAMES = [b"a", b"b", b"c", b"d", b".hid", b"sp ace", b"per%41cent", b"%", b"h#x", b"q?x",
         b"back\\slash", b'quo"te', b"C:", b"c|", b"semi;colon&=+", b"L" * 255, b"~", b"[x]{y}^`",
         b"\x01\x7f", b"...", b"-rf", b"%2e%2e", b" lead", b"trail ", b"x" * 100]
# The reference cannot cope with the former in fs/walk, and any change of the latter sets off every
# fs/watchMissing around it: where they are used, these methods are not.
UNWALKABLE = [b"new\nline", b"tab\tx", b"\r"]
UNWATCHABLE = ["ünï".encode(), "☃\U0001f600".encode(), b"n\xff", b"\xfe\xff", b"\xc3"]
TOO_LONG = b"M" * 256
FILE_MODES = [0o644, 0o644, 0o644, 0o644, 0o600, 0o755, 0o444, 0, 0o4755, 0o2755, 0o666, 0o111,
              0o222, 0o640]
DIRECTORY_MODES = [0o755] * 24 + [0o700, 0o555, 0o111, 0o444, 0, 0o1777, 0o2775, 0o333]
HANDLES = ["", "h", "H", "é" * 16, "x" * 32, "1", "2", "3", "4", "5", "6", "7"]
SYSTEM = ["/", "/proc/version", "/proc/self/mem/x", "/dev/null", "/dev/tty", "/nonexistent/x",
          "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/status/x", "/etc/passwd"]
READS = ("readFile", "getMetadata", "canonicalize", "readDirectory", "walk")
WEIGHTS = {"readFile": 11, "open": 10, "readBlock": 12, "writeBlock": 10, "close": 4,
           "writeFile": 12, "createDirectory": 9, "getMetadata": 10, "canonicalize": 6,
           "readDirectory": 6, "walk": 5, "remove": 5, "copy": 14, "watchMissing": 2}
LONGEST = 2500       # bytes of a path below the tree that is made on purpose
MANY = 400           # entries, at which the tree is cut back
COPIED = 120         # entries that one copy may make


class Path:
    """A path below the tree and the way its URI is written."""

    def __init__(self, name, style, salt):
        self.name = name
        self.style = style
        self.salt = salt

    def uri(self, root):
        return STYLES[self.style](root, self.name, self.salt)


def plain(root, name, _):
    return "file://" + urllib.parse.quote(root + b"/" + name)


def hexadecimal(root, name, salt):
    digits = "%{:02x}" if salt % 2 else "%{:02X}"
    return plain(root, b"", 0) + "".join(chr(b) if b == 47 else digits.format(b) for b in name)


def slashes(root, name, salt):
    joint = ("//", "/./", "/%2e/", "/zz/../", "/zz/%2E%2e/", "/zz/yy/../.%2E/")[salt % 6]
    parts = [urllib.parse.quote(p) for p in name.split(b"/")]
    return "file://" + urllib.parse.quote(root) + joint + joint.join(parts)


def trailing(root, name, salt):
    return plain(root, name, 0) + ("/", "//", "/.", "/zz/..")[salt % 4]


def scheme(root, name, salt):
    start = ("file:", "FILE://", "file://localhost", "file:////", "  file://", "fi\tle:")[salt % 6]
    return start + plain(root, name, 0)[len("file://"):]


def escaped_slashes(root, name, _):
    return plain(root, b"", 0) + urllib.parse.quote(name, safe="")


def backslashes(root, name, _):
    return plain(root, name, 0).replace("/", "\\")


def unescaped(root, name, _):
    """As little escaped as the form allows."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return plain(root, name, 0)
    return "file://" + root.decode() + "/" + re.sub(
        r"[\x00-\x20\x7f?#%\\]", lambda m: urllib.parse.quote(m[0]), text)


STYLES = [plain, hexadecimal, slashes, trailing, scheme, escaped_slashes, backslashes, unescaped]


def native(uri):
    """What a URI of ours means, worked out apart from STYLES: guards every call that writes."""
    text = re.sub(r"[\t\n\r]", "", uri.strip("".join(map(chr, range(33))))).replace("\\", "/")
    if text[:5].lower() != "file:":
        raise ValueError(f"not a file: {uri!r}")
    text = text[5:]
    if text.startswith("//") and not text.startswith("///"):
        host, _, text = text[2:].partition("/")
        if host.lower() != "localhost":
            raise ValueError(f"with a host: {uri!r}")
    out = []
    for part in urllib.parse.unquote_to_bytes(text).split(b"/"):
        if part == b"..":
            del out[-1:]
        elif part not in (b"", b"."):
            out.append(part)
    return b"/" + b"/".join(out)


def names_of(number):
    """The names for a stretch of the test."""
    return NAMES + UNWALKABLE * (number % 4 == 3) + UNWATCHABLE * (number % 2)


def build(root, rng, names, user, count=70):
    """A random tree, the same for the same state of rng."""
    t = Tree(root, USER if user else None)
    directories, files = [b""], []

    def fresh():
        for _ in range(100):
            name = os.path.join(rng.choice(directories), rng.choice(names))
            if len(name) < LONGEST and not os.path.lexists(t.path(name)):
                return name
        return None

    for _ in range(count):
        kind = rng.choices("dflhpsc", (14, 22, 18, 4, 2, 2, 1))[0]
        name = fresh()
        mode = rng.randrange(1 << 16)
        if name is None:
            continue
        if kind == "d" and name.count(b"/") < 4:
            t.directory(name, DIRECTORY_MODES[mode % len(DIRECTORY_MODES)])
            directories.append(name)
        elif kind == "l":
            t.link(name, link_target(rng, names, directories, files))
        elif kind == "h" and files:
            t.hard(name, rng.choice(files))
        elif kind == "p":
            t.fifo(name)
        elif kind == "s":
            t.socket(name)
        elif kind == "c":
            t.device(name)
        else:
            t.file(name, rng.randbytes(rng.choice((0, 1, 2, 3, 10, 100, 4096, 5000, 70000))),
                   FILE_MODES[mode % len(FILE_MODES)])
            files.append(name)
        if rng.random() < 0.1:
            t.owners[name] = 0
        if rng.random() < 0.1:
            t.times[name] = rng.choice((0, -1, -1_500_000_000, 1_794_724_835_166_999_999))
    t.finish()


def link_target(rng, names, directories, files):
    """Always within the tree, so that nothing outside is ever written through a link."""
    target = rng.choice(directories + files + [b"nowhere", b"no/where"])
    kind = rng.random()
    if kind < 0.4:
        return b"/" + target
    if kind < 0.8:
        return rng.choice(names)
    return rng.choice([b".", b"./" + rng.choice(names), b"/".join(rng.choices(names, k=2))])


class Generator:
    """Calls for one stretch of the test. `root` is the first of the two trees."""

    def __init__(self, rng, names, root):
        self.rng = rng
        self.names = names
        self.root = root
        unfit = [m for m, odd in (("walk", UNWALKABLE), ("watchMissing", UNWATCHABLE))
                 if set(names) & set(odd)]
        self.weights = {m: w for m, w in WEIGHTS.items() if m not in unfit}
        self.known = []
        self.files = []
        self.directories = []
        self.age = 0
        self.watch = 0
        self.handles = {}  # open ones, with their mode

    def scan(self):
        """Looks at the tree anew, now and then."""
        self.age -= 1
        if self.age < 0:
            self.age = 20
            paths = entries(self.root)
            self.known = [p[len(self.root) + 1:] for p in paths]
            self.directories = [b""] + [n for n, p in zip(self.known, paths) if os.path.isdir(p)]
            self.files = [n for n, p in zip(self.known, paths) if os.path.isfile(p)]

    def name(self, likely=()):
        """A name below the tree: often a likely one, or one that exists."""
        rng = self.rng
        kind = rng.random()
        if likely and kind < 0.5:
            return rng.choice(likely)
        if self.known and kind < 0.7:
            return rng.choice(self.known)
        parent = rng.choice(self.directories) if kind < 0.95 or not self.known \
            else rng.choice(self.known)
        parts = [parent] if parent else []
        parts += rng.choices(self.names, k=1 if rng.random() < 0.8 else rng.randrange(2, 4))
        if rng.random() < 0.01:
            parts.append(TOO_LONG)
        name = b"/".join(parts)
        return name if len(name) < LONGEST else rng.choice(self.names)

    def path(self, likely=()):
        style = 0 if self.rng.random() < 0.6 else self.rng.randrange(len(STYLES))
        return Path(self.name(likely), style, self.rng.randrange(1 << 16))

    def fresh(self):
        """Names that may be made: in a directory that exists."""
        return [os.path.join(self.rng.choice(self.directories), self.rng.choice(self.names))
                for _ in range(3)]

    def follow(self):
        return self.rng.choice(({}, {"followSymlinks": True}, {"followSymlinks": False},
                                {"followSymlinks": False}))

    def data(self, largest):
        size = self.rng.choice((0, 1, 2, 3, 5, 10, 100, 1000, largest))
        return base64.b64encode(self.rng.randbytes(size)).decode()

    def call(self):
        """The next call as (method, params); params may hold Path and Literal."""
        while True:
            self.scan()
            if len(self.known) > MANY:
                name = self.rng.choice([n for n in self.known if b"/" not in n])
                self.age = 0
                return "remove", {"path": Path(name, 0, 0)}
            method = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
            params = getattr(self, method)()
            if self.rng.random() < 0.04:
                method, params = self.spoil(method, params)
            if not self.hazard(method, params):
                return method, params

    def readFile(self):
        return {"path": self.path(self.files), **self.follow()}

    def getMetadata(self):
        return {"path": self.path(), **self.follow()}

    def canonicalize(self):
        return {"path": self.path()}

    def readDirectory(self):
        return {"path": self.path(self.directories)}

    def walk(self):
        rng = self.rng
        options = {**WALK, "followDirectorySymlinks": rng.random() < 0.5}
        if rng.random() < 0.5:
            options["maxDepth"] = rng.choice((0, 1, 2, 3, 64))
        if rng.random() < 0.3:
            options["maxEntries"] = rng.choice((1, 2, 5, 10, 20, 30, 50))
        if rng.random() < 0.3:
            options["maxDirectories"] = rng.choice((1, 2, 3, 5, 8))
        if rng.random() < 0.3:
            options["pruneHiddenDirectories"] = rng.random() < 0.7
        return {**self.readDirectory(), "options": options}

    def open(self):
        free = [h for h in HANDLES if h not in self.handles]
        handle = self.rng.choice(free if free and self.rng.random() < 0.95 else HANDLES)
        return {"handleId": handle, "path": self.path(self.files),
                **self.rng.choice(({}, {"mode": "read"}, {"mode": "replace"}, {"mode": "replace"}))}

    def handle(self, mode):
        """Mostly one that is open in the right mode."""
        likely = [h for h, m in self.handles.items() if m == mode]
        return self.rng.choice(likely if likely and self.rng.random() < 0.9 else HANDLES)

    def learn(self, method, params, good):
        """Keeps account of the handles: what the reference did with a call."""
        if method == "open" and good:
            self.handles[params["handleId"]] = params.get("mode", "read")
        if isinstance(params, dict) and (method == "close" or method == "readBlock" and not good):
            self.handles.pop(str(params.get("handleId")), None)

    def readBlock(self):
        return {"handleId": self.handle("read"), "offset": self.offset(),
                "len": self.rng.choice((1, 2, 3, 7, 100, 4096, 65537, 1048576)) if
                self.rng.random() < 0.98 else self.rng.choice((0, 1048577))}

    def writeBlock(self):
        return {"handleId": self.handle("replace"), "offset": self.offset(),
                "chunk": self.data(70001)}

    def offset(self):
        """Few are far away, and those are too far to write at."""
        if self.rng.random() < 0.02:
            return self.rng.choice((2**63 - 1, 2**63, 2**64 - 1))
        return self.rng.choice((0, 0, 0, 1, 3, 10, 99, 4095, 4097, 65536, 123457))

    def close(self):
        return {"handleId": self.rng.choice(HANDLES)}

    def writeFile(self):
        return {"path": self.path(self.files), "dataBase64": self.data(80000), **self.follow()}

    def createDirectory(self):
        return {"path": self.path(self.fresh()), **self.follow(),
                **self.rng.choice(({}, {"recursive": True}, {"recursive": False}))}

    def remove(self):
        return {"path": self.path(),
                **self.rng.choice(({}, {"recursive": True}, {"recursive": False},
                                   {"recursive": False})),
                **self.rng.choice(({}, {"force": True}, {"force": False})), **self.follow()}

    def copy(self):
        directory = self.rng.random() < 0.5
        return {"sourcePath": self.path(self.directories[1:] if directory else self.files),
                "destinationPath": self.path(self.rng.choice((self.fresh(), self.files))),
                "recursive": directory or self.rng.random() < 0.3}

    def watchMissing(self):
        self.watch += self.rng.choice((0, 1, 1, 1, 1, 5))
        return {"watchId": self.watch,
                "missing": [self.path(self.fresh()) for _ in range(self.rng.choice((0, 1, 1, 1, 2,
                                                                                    3)))],
                **({"present": self.path()} if self.rng.random() < 0.3 else {})}

    def spoil(self, method, params):
        """Makes something of a call wrong, or takes a path of the system to look at."""
        rng = self.rng
        kind = rng.random()
        if method in READS and kind < 0.4:
            return method, {**params, "path": "file://" + rng.choice(SYSTEM)}
        if method in READS and kind < 0.5:
            # Native paths and lists are for methods that change nothing: ours takes the former,
            # the reference the latter.
            return method, rng.choice(({**params, "path": "/etc/passwd"}, list(params.values())))
        key = rng.choice(list(params))
        if kind < 0.6:
            return method, {k: v for k, v in params.items() if k != key}
        if kind < 0.7:
            return method, {**params, "unknown": rng.choice(WRONG)}
        if kind < 0.8 and key in ("offset", "len", "watchId"):
            return method, {**params, key: Literal(rng.choice(NUMBERS))}
        if kind < 0.9 and key in ("chunk", "dataBase64"):
            return method, {**params, key: rng.choice(BASE64[:-1])}
        return method, {**params, key: rng.choice(WRONG)}

    def hazard(self, method, params):
        """Whether a call must not be sent: it would wait for the reader of a FIFO, or it copies a
        file onto itself, which ours refuses."""
        if not isinstance(params, dict):
            return False
        if method == "writeFile":
            return params.get("followSymlinks") is not False and self.is_fifo(params.get("path"))
        source, target = params.get("sourcePath"), params.get("destinationPath")
        if method == "copy" and isinstance(source, Path) and isinstance(target, Path):
            source, target = (os.path.join(self.root, p.name) for p in (source, target))
            return self.copy_hazard(source, target, os.path.realpath(source), [COPIED])
        return False

    def is_fifo(self, path):
        try:
            return isinstance(path, Path) and \
                stat.S_ISFIFO(os.stat(os.path.join(self.root, path.name)).st_mode)
        except OSError:
            return False

    def copy_hazard(self, source, target, top, budget):
        budget[0] -= 1
        if budget[0] < 0 or len(target) - len(self.root) > LONGEST:
            return True
        try:
            what = os.lstat(source)
        except OSError:
            return False
        if stat.S_ISDIR(what.st_mode):
            return any(self.copy_hazard(e.path, os.path.join(target, e.name), top, budget)
                       for e in os.scandir(source))
        if not stat.S_ISREG(what.st_mode):
            return False
        try:
            there = os.stat(target)
        except OSError:
            # A link that dangles into the source makes a file where the copy is still reading.
            return os.path.realpath(target).startswith(top + b"/")
        return stat.S_ISFIFO(there.st_mode) or os.path.samestat(what, there)


def rendered(value, root):
    """Params for one tree."""
    if isinstance(value, Path):
        return value.uri(root)
    if isinstance(value, dict):
        return {k: rendered(v, root) for k, v in value.items()}
    if isinstance(value, list):
        return [rendered(v, root) for v in value]
    return value


def guard(method, params, root):
    """Raises unless everything a call may change lies below the tree."""
    fields = {"writeFile": ["path"], "createDirectory": ["path"], "remove": ["path"],
              "copy": ["sourcePath", "destinationPath"],
              "open": ["path"] if isinstance(params,
                                             dict) and params.get("mode") == "replace" else []}
    if method not in fields:
        return
    for field in fields[method]:
        uri = params.get(field)
        if isinstance(uri, str) and ":" in uri and not native(uri).startswith(root + b"/"):
            raise AssertionError(f"{method} outside of the tree: {uri!r}")
        if isinstance(uri, str) and uri.startswith("/"):
            raise AssertionError(f"{method} of a native path: {uri!r}")

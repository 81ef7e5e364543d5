"""The fs methods of one connection, and what they are pointed at."""

import itertools
import os

from .rpc import RpcError, b64, unb64

MIB = 1 << 20
METADATA = {"isDirectory": bool, "isFile": bool, "isSymlink": bool, "size": int,
            "createdAtMs": int, "modifiedAtMs": int, "mode": int}
# Bytes that stay as they are in the URIs that the server emits.
LITERAL = frozenset(b"!$&'()*+,-./:;=@[]^_|~" + bytes(range(0x30, 0x3A)) +
                    bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B)))

TEXTS = {
    1: "Operation not permitted", 2: "No such file or directory", 5: "I/O error",
    6: "No such device or address", 9: "Bad file descriptor",
    11: "Resource temporarily unavailable", 12: "Out of memory", 13: "Permission denied",
    16: "Resource busy", 17: "File exists", 18: "Cross-device link", 20: "Not a directory",
    21: "Is a directory", 22: "Invalid argument", 24: "No file descriptors available",
    25: "Not a tty", 26: "Text file busy", 27: "File too large", 28: "No space left on device",
    29: "Invalid seek", 30: "Read-only file system", 31: "Too many links",
    35: "Resource deadlock would occur", 36: "Filename too long", 39: "Directory not empty",
    40: "Symbolic link loop", 62: "Device timeout", 75: "Value too large for data type",
    84: "Illegal byte sequence", 88: "Not a socket", 95: "Not supported",
    101: "Network unreachable", 103: "Connection aborted", 107: "Socket not connected",
    108: "Cannot send after socket shutdown", 110: "Operation timed out",
    113: "Host is unreachable", 116: "Stale file handle", 122: "Quota exceeded"}


def os_error(number):
    """Code and text of the error for an errno."""
    code = {1: -32600, 2: -32004, 13: -32600, 22: -32600}.get(number, -32603)
    return code, f"{TEXTS[number]} (os error {number})"


def uri(path):
    """The file: URI of an absolute path as the server writes it."""
    data = os.fsencode(path)
    assert data.startswith(b"/"), path
    return "file://" + "".join(chr(b) if b in LITERAL else f"%{b:02X}" for b in data)


class Files:
    """Calls with paths (str, bytes or Path) and bytes; every result is checked for its shape."""

    def __init__(self, client):
        self.client = client
        self.handles = itertools.count(1)

    @staticmethod
    def params(path, params):
        """Params with the URI of path; None leaves it out."""
        return params if path is None else {"path": uri(path), **params}

    def send(self, method, path=None, **params):
        """Sends a request and returns its id."""
        return self.client.send(f"fs/{method}", self.params(path, params))

    def call(self, method, path=None, *, seconds=None, **params):
        return self.client.call(f"fs/{method}", self.params(path, params), seconds)

    def error(self, method, path=None, **params):
        """Code and text of the error that a call must give."""
        return self.client.error(f"fs/{method}", self.params(path, params))

    def outcome(self, method, path=None, **params):
        """The result of a call, or code and text of its error."""
        try:
            return self.call(method, path, **params)
        except RpcError as e:
            return e.code, e.message

    def _done(self, method, path, params):
        assert self.call(method, path, **params) == {}

    def read(self, path, **params):
        result = self.call("readFile", path, **params)
        assert set(result) == {"dataBase64"}
        return unb64(result["dataBase64"])

    def write(self, path, data, **params):
        self._done("writeFile", path, {"dataBase64": b64(data), **params})

    def mkdir(self, path, **params):
        self._done("createDirectory", path, params)

    def remove(self, path, **params):
        self._done("remove", path, params)

    def copy(self, source, destination, recursive=False, **params):
        self._done("copy", None, {"sourcePath": uri(source), "destinationPath": uri(destination),
                                  "recursive": recursive, **params})

    def copy_error(self, source, destination, recursive=False, **params):
        return self.error("copy", None, sourcePath=uri(source), destinationPath=uri(destination),
                          recursive=recursive, **params)

    def rename(self, source, destination, **params):
        self._done("rename", None, {"sourcePath": uri(source), "destinationPath": uri(destination),
                                    **params})

    def rename_error(self, source, destination, **params):
        return self.error("rename", None, sourcePath=uri(source), destinationPath=uri(destination),
                          **params)

    def chmod(self, path, mode, **params):
        self._done("setPermissions", path, {"mode": mode, **params})

    def set_times(self, path, modified, **params):
        self._done("setTimes", path, {"modifiedAtMs": modified, **params})

    def read_link(self, path, **params):
        """The target's bytes."""
        result = self.call("readLink", path, **params)
        assert set(result) in ({"target"}, {"target", "targetBase64"}), result
        return self.target(result)

    @staticmethod
    def target(members):
        """The bytes of a target, whatever its members."""
        if "targetBase64" not in members:
            return members["target"].encode()
        data = unb64(members["targetBase64"])
        assert members["target"] == data.decode(errors="replace") and "\ufffd" in members["target"]
        return data

    def symlink(self, path, target, **params):
        member = {"targetBase64": b64(target)} if isinstance(target, bytes) else {"target": target}
        self._done("symlink", path, {**member, **params})

    def metadata(self, path, **params):
        result = self.call("getMetadata", path, **params)
        assert {k: type(v) for k, v in result.items()} == METADATA, result
        return result

    def canonicalize(self, path, **params):
        result = self.call("canonicalize", path, **params)
        assert set(result) == {"path"}
        return result["path"]

    def list(self, path, **params):
        """Entries of a directory: name -> (isDirectory, isFile)."""
        result = self.call("readDirectory", path, **params)
        assert set(result) == {"entries"}
        found = {}
        for entry in result["entries"]:
            assert set(entry) == {"fileName", "isDirectory", "isFile"}, entry
            assert entry["fileName"] not in found or "\ufffd" in entry["fileName"], entry
            found[entry["fileName"]] = entry["isDirectory"], entry["isFile"]
        return found

    def walk(self, path, *, depth=64, directories=10000, entries=50000, follow=False, **options):
        result = self.call("walk", path, options={
            "maxDepth": depth, "maxDirectories": directories, "maxEntries": entries,
            "followDirectorySymlinks": follow, **options})
        assert set(result) == {"entries", "errors", "truncated"}
        assert isinstance(result["truncated"], bool)
        more = {"target", "targetBase64"} if options.get("links") else set()
        assert all(set(e) - (more if e["kind"] == "symlink" else set()) == {"path", "kind"}
                   for e in result["entries"])
        assert all(set(e) == {"path", "message"} for e in result["errors"])
        return result

    # Handles.

    def open(self, path, handle=None, **params):
        handle = f"h{next(self.handles)}" if handle is None else handle
        assert self.call("open", path, handleId=handle, **params) == {"handleId": handle}
        return handle

    def read_block(self, handle, offset, length):
        result = self.call("readBlock", handleId=handle, offset=offset, len=length)
        assert set(result) == {"chunk", "eof"} and isinstance(result["eof"], bool)
        return unb64(result["chunk"]), result["eof"]

    def write_block(self, handle, offset, data):
        self._done("writeBlock", None, {"handleId": handle, "offset": offset, "chunk": b64(data)})

    def close(self, handle):
        self._done("close", None, {"handleId": handle})

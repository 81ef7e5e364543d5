"""Access lists of files, as the kernel takes and gives them."""

import os
import struct

import pytest

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NOBODY_ELSE = 0xFFFFFFFF


def guarded(user=4321, other=0):
    """One more user may read and write, the group nothing: the mode's group bits are the mask."""
    entries = [(0x01, 6, NOBODY_ELSE), (0x02, 6, user), (0x04, 0, NOBODY_ELSE),
               (0x10, 6, NOBODY_ELSE), (0x20, other, NOBODY_ELSE)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def guard(path, value=None):
    """Gives a file such a list and an attribute; skips where the file system has none."""
    try:
        os.setxattr(path, ACCESS, value or guarded())
        os.setxattr(path, "user.note", b"kept")
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")


def kept(path):
    """List, attribute and mode of a file that guard() was called for, None for what is gone."""
    names = os.listxattr(path)
    return tuple(os.getxattr(path, name) if name in names else None
                 for name in (ACCESS, "user.note")) + (os.stat(path).st_mode & 0o7777,)


KEPT = (guarded(), b"kept", 0o660)

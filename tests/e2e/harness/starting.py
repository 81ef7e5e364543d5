"""A start whose exec is not decided until the test says so."""

import fcntl
import os
import shutil
import signal


class Undecided:
    """A program that nobody can execute while it is held: exec waits for the lease to be broken.

    The kernel breaks a lease by itself after /proc/sys/fs/lease-break-time seconds (45).
    """

    def __init__(self, directory, program="/bin/sh"):
        self.path = os.path.join(directory, "undecided")
        shutil.copy(program, self.path)
        self.fd = os.open(self.path, os.O_RDONLY)
        # The notice that somebody wants the file.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def decide(self):
        """Lets exec go on."""
        if self.fd >= 0:
            fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os.close(self.fd)
            self.fd = -1

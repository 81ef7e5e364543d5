"""The files that the file groups work on: made once, in a directory of their own."""

import contextlib
import os
import shutil
import subprocess

MB = 1000 * 1000
LARGE = 64 * MB
WRITTEN = 6 * MB
HUGE = 954 * 1024 * 1024  # 1 GB in whole blocks of 1 MiB
QUARTER = 239 * 1024 * 1024  # of 1 GB, in whole blocks
SMALL = 1000
TREE_DIRECTORIES = 200
TREE_FILES = 99  # in each of them: 20,000 entries in all
LIST_ENTRIES = 10000


class FileSet:
    """Makes what is asked for, on first use; everything goes with the directory."""

    def __init__(self, driver_path, directory):
        self.driver_path = driver_path
        self.directory = directory

    def path(self, name):
        os.makedirs(self.directory, exist_ok=True)
        return os.path.join(self.directory, name)

    def file(self, name, size):
        """A file of real data, the test pattern, on the disk and in the page cache."""
        path = self.path(name)
        if not os.path.exists(path):
            with open(path, "wb") as f:
                subprocess.run([self.driver_path, "generate", "--bytes", str(size)], stdout=f,
                               check=True)
                os.fsync(f.fileno())
        with open(path, "rb") as f:
            while f.read(MB):
                pass
        return path

    def large(self):
        return self.file("large", LARGE)

    def huge(self):
        return self.file("huge", HUGE)

    def small(self):
        return self.file("small", SMALL)

    def workspace(self):
        """An empty directory but for what its users put there."""
        top = self.path("workspace")
        os.makedirs(os.path.join(top, "secret"), exist_ok=True)
        return top

    def login(self, seconds):
        """A home whose login shells take so long."""
        home = self.path("home")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, ".bash_profile"), "w", encoding="ascii") as f:
            f.write(f"sleep {seconds}\n")
        return home

    def tree(self):
        top = self.path("tree")
        if not os.path.exists(top):
            for i in range(TREE_DIRECTORIES):
                make_empty_files(os.path.join(top, f"directory-{i:03}"), TREE_FILES)
        return top

    def directory_of(self, count):
        top = self.path(f"list-{count}")
        if not os.path.exists(top):
            make_empty_files(top, count)
        return top

    def listing(self):
        return self.directory_of(LIST_ENTRIES)

    def drop(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def make_empty_files(directory, count):
    os.makedirs(directory)
    for i in range(count):
        with open(os.path.join(directory, f"file-{i:05}.txt"), "wb"):
            pass

"""The list of scenarios, and what several of them need."""

import asyncio
import errno
import os
import signal

ALL = []


class Scenario:
    """One entry of the list.

    slow     left out of the fast share
    since    (version, reason): older clients cannot do it
    differs  {key of the outcome: reason} where the reference behaves otherwise on purpose
    """

    def __init__(self, function, name, text, slow, since, differs):
        self.function = function
        self.name = name
        self.text = text
        self.group = function.__module__.rpartition(".")[2]
        self.slow = slow
        self.since = since
        self.differs = differs


def add(function, name=None, text=None, slow=False, since=None, differs=()):
    name = name or function.__name__.replace("_", "-")
    text = text or function.__doc__
    ALL.append(Scenario(function, name, text, slow, since, dict(differs)))
    return function


def scenario(function=None, **options):
    """Decorator: lists a function `async def name(bench)`."""
    return add(function) if function else lambda f: add(f, **options)


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def within(needle, text):
    check(needle in text, f"{needle!r} is not in {text[-600:]!r}")


def without(needle, text):
    check(needle not in text, f"{needle!r} is in {text[-600:]!r}")


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def get(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def exists(*names):
    return os.path.lexists(os.path.join(*names))


async def gone(pid, seconds=60):
    """Waits for the end of a process."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except asyncio.TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"process {pid} is still alive") from None
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def pid_in(b, name):
    return int(get(os.path.join(b.work, f"{name}.pid")))


def make_fifo(b, name="fifo"):
    path = os.path.join(b.work, name)
    os.mkfifo(path)
    return path


async def release(fifo, text="go\n", seconds=120):
    """Lets a command go on that reads from the FIFO, as soon as it does."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            check(error.errno == errno.ENXIO, str(error))
            check(asyncio.get_running_loop().time() < deadline, "nobody reads the FIFO")
            await asyncio.sleep(0.02)
    os.write(fd, text.encode())
    os.close(fd)


def resumed(b):
    """The last connection took up the session of the first one."""
    sessions = b.proxy.calls("initialize")
    check(len(sessions) > 1, "there was no second connection")
    equal(sessions[-1]["params"]["resumeSessionId"], sessions[0]["result"]["sessionId"],
          "resumed session")


def environments_file(entry):
    return f'default = "box"\ninclude_local = false\n[[environments]]\nid = "box"\n{entry}\n'

"""A sandboxed command changes what names mean while file calls and starts look at them."""

import os

from harness.confined import Calls
from harness.rpc import b64
from harness.sandbox import place, servers, uri, user

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"
RACES = int(os.environ.get("RACES", "1"))  # times as many: tests/verify/policy
CALLS = 1500 * RACES  # each kind of call lost its race well before that
STARTS = 12 * RACES  # more than half of them read the file once

# The program says that it runs, and goes on until it is terminated.
LOOP = "import ctypes, os\nprint('runs', flush=True)\n"
MKDIR = LOOP + "while True:\n    os.mkdir('a')\n    os.rmdir('a')\n"
SWAP = LOOP + """swap = ctypes.CDLL(None).renameat2
while True:
    swap(-100, b'name', -100, b'other', 2)
"""
# Takes all inotify instances of the user first.
WITHOUT_WATCHES = """import ctypes, os
libc = ctypes.CDLL(None)
while libc.inotify_init() >= 0:
    pass
"""
MOVE = LOOP + "while True:\n    os.rename('one', 'two')\n    os.rename('two', 'one')\n"


# Gives a directory a new name all the time, and no name again for long.
WANDER = LOOP + """names = ['n%d' % i for i in range(512)]
os.rename('one', names[-1])
while True:
    for i in range(512):
        os.rename(names[i - 1], names[i])
"""
# When a start has looked at `a`, and is busy with `m`, a directory that it knows leaves, and tells
# of moves all the time, while another one comes to `a` that the start has not seen.
STRAY = """import ctypes, os, signal
libc = ctypes.CDLL(None)
if os.fork() == 0:
    while True:
        libc.rename(b'out/w', b'out/v')
        libc.rename(b'out/v', b'out/w')
looks = libc.inotify_init()
libc.inotify_add_watch(looks, b'm', 1)
print('runs', flush=True)
os.read(looks, 4096)
os.rename('a/w', 'out/w')
while not os.path.exists('out/v'):
    pass
os.rename('z/u', 'a/u')
signal.pause()
"""


class Attack:
    """A command that runs beside the calls of a test."""

    def __init__(self, place, program, *entries):
        self.place = place
        self.process = place.start(["/usr/bin/python3", "-c", program], *entries)
        place.client.wait_output(self.process, b"runs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.client.terminate(self.process)
        self.place.client.wait_closed(self.process)


def planted(place):
    return [name for name in (".git", "secret") if os.path.lexists(place.ws / name / "config")]


def test_plant(place):
    """A link to `a/..` leads to the workspace, or nowhere: never past what is protected there."""
    entries = (R, PR, "d ws/secret")
    place.put("ws/evil/config", "[core]\n")
    place.link("ws/link", "a/..")
    calls = Calls(place, *entries)
    with Attack(place, MKDIR, *entries):
        for i in range(CALLS):
            name = (".git", "secret")[i % 2]
            target = place.ws / "link" / name
            calls.outcome("copy", None, sourcePath=uri(place.ws / "evil"),
                          destinationPath=uri(target), recursive=True)
            if i % 8 == 0:
                calls.outcome("createDirectory", target / "config", recursive=True)
                calls.outcome("writeFile", target, dataBase64=b64("x"))
            assert not planted(place), f"after {i} calls"


def test_remove_swapped(place):
    """The call removes the file that it decided on, even if a parent has changed meanwhile."""
    entries = (R, PR, f"d glob:{place.ws}/secret/**")
    secret = place.put("ws/secret/key", "S")
    place.put("ws/name/key", "")
    place.link("ws/other", "secret")
    calls = Calls(place, *entries)
    with Attack(place, SWAP, *entries):
        for i in range(CALLS):
            calls.outcome("remove", place.ws / "name" / "key", recursive=i % 2 == 0, force=True)
            assert secret.read_text() == "S", f"after {i} calls"


def test_read_swapped(place):
    """The call reads, and tells the size of, the file that it decided on."""
    entries = (R, PR, f"d glob:{place.ws}/secret/**")
    place.put("ws/secret/key", "S" * 77)
    place.put("ws/name/key", "")
    place.link("ws/other", "secret")
    calls = Calls(place, *entries)
    with Attack(place, SWAP, *entries):
        for _ in range(CALLS // 4):
            for method in ("readFile", "getMetadata"):
                got = calls.outcome(method, place.ws / "name" / "key")
                assert not isinstance(got, dict) or (
                    got.get("dataBase64", "") == "" and got.get("size", 0) == 0), got


def test_denied_file_moves(place):
    """A directory with a denied file changes its name all the time: no later start reads the file."""
    entries = (R, PR, f"d glob:{place.ws}/**/*.env")
    place.put("ws/one/x.env", "SECRET\n")
    place.put("ws/one/more/y.env", "SECRET\n")
    script = "cat one/x.env two/x.env one/more/y.env two/more/y.env one/x.env two/x.env 2>&1; true"
    refused = 0
    with Attack(place, MOVE, *entries):
        for _ in range(STARTS):
            code, text, out = start(place, script, entries)
            assert "SECRET" not in out, out
            refused += code is not None
            assert code in (None, -32603), text
            assert code is None or "kept changing" in text, text
    assert refused < STARTS


def test_denied_link_moves(place):
    """A link with a denied name is in a directory that moves: what it leads to stays denied."""
    entries = (R, PR, f"d glob:{place.ws}/**/*.env")
    place.put("ws/plain", "SECRET\n")
    deep = place.mkdir("ws/one/" + "d/" * 100)
    place.link(deep / "x.env", "../" * 101 + "plain")
    with Attack(place, WANDER, *entries):
        for _ in range(STARTS):
            _, text, out = start(place, "cat plain 2>&1; true", entries)
            assert "SECRET" not in out, out
            assert text is None or "kept changing" in text, text


def test_denied_file_comes_beside_a_stray(place):
    """What a directory that has left tells of itself does not stand for one that came."""
    entries = (R, PR, *(f"d glob:{place.ws}/{name}/**/*.env" for name in "amz"))
    place.put("ws/z/u/x.env", "SECRET\n")
    for name in ("a/w", "m", "out"):
        place.mkdir(f"ws/{name}")
    for i in range(2000):
        (place.ws / "m" / str(i)).mkdir()
    with Attack(place, STRAY, *entries):
        _, text, out = start(place, "cat z/u/x.env a/u/x.env 2>&1; true", entries)
        assert "SECRET" not in out, out
        assert text is None or "kept changing" in text, text


def test_no_watches_left(place):
    """Without inotify a start looks until nothing changes, or is refused where that never is."""
    entries = (R, PR, f"d glob:{place.ws}/**/*.env")
    place.put("ws/one/x.env", "SECRET\n")
    script = "cat one/x.env two/x.env 2>&1; true"
    with Attack(place, WITHOUT_WATCHES + LOOP + "import signal; signal.pause()", *entries):
        code, text, out = start(place, script, entries)
        assert code is None and "SECRET" not in out, text
    for _ in range(RACES - 1):
        with Attack(place, WITHOUT_WATCHES + MOVE, *entries):
            code, text, out = start(place, script, entries)
            assert "SECRET" not in out and (code is None or "kept changing" in text)


def start(place, script, entries):
    """Code and text of an error, or the output of a command."""
    params = place.params(script, entries)
    answer = place.client.answer(place.client.send("process/start", params))
    if "error" in answer:
        return answer["error"]["code"], answer["error"]["message"], ""
    process = place.client.wait_closed(place.client.processes[params["processId"]])
    return None, None, process.output().decode()

"""The server decodes long Base64 in WebSocket messages as it arrives, and no client can tell.

It does not do so on stdio, whose answers to equal texts are therefore the expected ones.
"""

import fcntl
import json
import random
import re
import shutil
import struct
import tempfile
import termios

import pytest

from harness.files import MIB, Files, uri
from harness.fleet import Fleet
from harness.rpc import b64
from harness.waiting import until
from harness.ws import CONT, PING, PONG, TEXT, frame, head

LIMIT = 64 * MIB
# Makes a B a C, so that letters stay letters when the mask is out of step.
KEY = b"\0\0\1\1"
NOISE = random.Random(1).randbytes(6_000_001)
DATA = NOISE[:21_000] + b"\x04\x10\x41" * 8000 + NOISE[45_000:]  # "BBBB" in between
RUN = b64(DATA[:75_000])  # 100,000 letters
PREFIX = re.compile(r"failed to parse .{,20}message from exec-server (stdio|websocket \S+): ")


def masked(opcode, payload=b"", **options):
    """A frame that is the same in every run."""
    return frame(opcode, payload, **{"key": KEY, **options})


def in_frames(parts):
    """A message of several frames."""
    return [masked(CONT if i else TEXT, part, fin=i == len(parts) - 1)
            for i, part in enumerate(parts)]


def cut(data, start, sizes):
    """Pieces of data: the first `start` bytes, then the sizes over and over."""
    parts, at, i = [data[:start]], start, 0
    while at < len(data):
        parts.append(data[at:at + sizes[i % len(sizes)]])
        at, i = at + len(parts[-1]), i + 1
    return parts


def whole(text):
    """The bytes of a message of one frame."""
    return masked(TEXT, text.encode())


def open_ended(text):
    """The bytes of a message whose end is a frame of its own: even a short one is collected."""
    return b"".join(in_frames([text.encode(), b""]))


@pytest.fixture(scope="module")
def lines(nothing_left):  # pylint: disable=unused-argument
    """A client of a server on stdio."""
    made = Fleet()
    client = made.stdio()
    yield client
    client.transport.close_stdin()
    assert client.transport.wait() == 0
    made.finish()


@pytest.fixture(scope="module")
def local(nothing_left):  # pylint: disable=unused-argument
    """A server on a Unix socket, where a sender sees what was read."""
    made = Fleet()
    directory = tempfile.mkdtemp()
    yield made.start(listen=f"unix://{directory}/socket")
    made.finish()
    shutil.rmtree(directory)


# A WebSocket gives the answers that stdio gives.

def ask(client, data, path):
    """The answer to a message, without the transport's own words, and what is in the file then."""
    client.transport.send_bytes(data)
    answer = json.loads(client.transport.receive())
    if "error" in answer:
        answer["error"]["message"] = PREFIX.sub("", answer["error"]["message"], 1)
    client.sync()
    content = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    return answer, content


def compare(client, lines, text, path, forms=(whole, open_ended)):
    """Says it both ways; what came of it."""
    expected = ask(lines, text.encode() + b"\n", path)
    for form in forms:
        assert ask(client, form(text), path) == expected
    return expected


def call(method, params, ident="7"):
    return f'{{"id":{ident},"method":"{method}","params":{params}}}'


def write(*members):
    return call("fs/writeFile", "{" + ",".join(members) + "}")


def data_of(text):
    return f'"dataBase64":"{text}"'


PATH = '"path":"PATH"'
SMALL = data_of("QUJD")
STATUS = '{"id":7,"method":"environment/status"'

# Texts, with their result or the beginning of their error. RUN stands for the letters, PATH for the
# URI of a file.
WRITTEN, READY = {}, {"status": "ready"}
CASES = {
    "id": ('{"id":"RUN","method":"environment/status"}', READY),
    "id, unknown method": (call("none", "{}", '"RUN"'), ""),
    "id with more": ('{"id":"RUN é\\n","method":"environment/status"}', READY),
    "id, data": (call("fs/writeFile", "{" + PATH + "," + data_of("RUN") + "}", '"RUN"'),
                 WRITTEN),
    "method": ('{"id":7,"method":"' + RUN[:20_000] + '"}', ""),
    "method, data": (write(PATH, data_of("RUN")).replace("File", "Fil"), ""),
    "stray notification": ('{"method":"RUN"}', ""),
    "stray answer": ('{"id":"RUN","result":"RUN"}', ""),
    "stray error": ('{"id":7,"error":{"code":1,"message":"RUN"}}', ""),
    "trace": (STATUS + ',"trace":"RUN"}', "invalid type: string"),
    "trace of bytes that begin characters": (STATUS + ',"trace":"' + "/" * 40_000 + '"}',
                                             "invalid type: string"),
    "error": ('{"id":7,"error":"' + "/" * 40_000 + '"}', ""),
    "key": ('{"RUN":1,' + STATUS[1:] + "}", READY),
    "key twice": ('{"RUN":1,"RUN":2,' + STATUS[1:] + "}", "duplicate"),
    "key of params": (write('"RUN":1', PATH, data_of("RUN")), WRITTEN),
    "key that is like the data's": (write(PATH, SMALL, '"dataBase64RUN":1'), WRITTEN),
    "unknown member": (STATUS + ',"zzz":"RUN"}', READY),
    "unknown member of params": (write('"zzz":"RUN"', PATH, data_of("RUN")), WRITTEN),
    "unknown member behind": (write(PATH, data_of("RUN"), '"zzz":"RUN"'), WRITTEN),
    "data outside params": ('{' + data_of("RUN") + ',' + write(PATH, SMALL)[1:], WRITTEN),
    "data deeper": (write(PATH, SMALL, '"zzz":{' + data_of("RUN") + '}'), WRITTEN),
    "path": (write('"path":"RUN"', SMALL), ""),
    "path, data": (write('"path":"RUN"', data_of("RUN")), ""),
    "data, path": (write(data_of("RUN"), '"path":"RUN"'), ""),
    "no path": (write(data_of("RUN")), "missing field"),
    "path of another method": (call("fs/readFile", '{"path":"RUN"}'), ""),
    "process": (call("process/read", '{"processId":"RUN"}'), "unknown process id "),
    "writeId": (call("process/write", '{"writeId":"RUN","processId":"no","chunk":"RUN"}'),
                {"status": "unknownProcess"}),
    "handle": (call("fs/writeBlock", '{"handleId":"RUN","offset":0,"chunk":"RUN"}'),
               "file handle ID"),
    "behind a string": (STATUS + '"RUN"}', "expected"),
    "behind a string, data": (write(PATH, '"dataBase64":""RUN"'), "expected"),
    "behind a string, bare": (write(PATH, '"dataBase64":"QUJD"RUN'), "expected"),
    "bare": (write(PATH, '"dataBase64":RUN'), "expected"),
    "bare number": (write(PATH, SMALL, '"zzz":' + "8" * 100_000), WRITTEN),
    "behind a blank": (write(PATH, data_of(" RUN")), "fs/writeFile requires valid"),
    "newline before": (write(PATH, data_of(r"\nRUN")), "fs/writeFile requires valid"),
    "newline inside": (write(PATH, data_of(r"RUN\nRUN")), "fs/writeFile requires"),
    "newline after": (write(PATH, data_of(r"RUN\n")), "fs/writeFile requires valid"),
    "slash before": (write(PATH, data_of(r"\/AAARUN")), WRITTEN),
    "slash inside": (write(PATH, data_of(r"RUNAA\/ARUN")), WRITTEN),
    "slash after": (write(PATH, data_of(r"RUNAAA\/")), WRITTEN),
    "code before": (write(PATH, data_of(r"\u0041AAARUN")), WRITTEN),
    "code inside": (write(PATH, data_of(r"RUNA\u0041AARUN")), WRITTEN),
    "code after": (write(PATH, data_of(r"RUN\u0041A=\u003d")), WRITTEN),
    "escape in another string": (write(r'"\u0070ath":"PATH"', data_of("RUN")), WRITTEN),
    "bad escape": (write(PATH, data_of(r"RUN\x")), "invalid escape"),
    "duplicate key behind": (write(PATH, data_of("RUN"), PATH), "duplicate"),
    "duplicate data": (write(PATH, data_of("RUN"), data_of("RUN")), "duplicate"),
    "duplicate data, small": (write(PATH, SMALL, data_of("RUN")), "duplicate"),
    "truncated in the string": (write(PATH, data_of("RUN"))[:-3], "EOF"),
    "truncated in params": (write(PATH, data_of("RUN"))[:-2], "EOF"),
    "truncated behind": (write(PATH, data_of("RUN"))[:-1], "EOF"),
    "more behind": (write(PATH, data_of("RUN")) + " x", "trailing characters"),
    "control character": (write(PATH, data_of("RUN\x01")), "control character"),
    "tab": (write(PATH, data_of("RUN\tRUN")), "control character"),
    "control character behind": (write(PATH, data_of("RUN"), '"\x1f"'), "control"),
    "params an array": (call("fs/writeFile", '["RUN"]'), ""),
    "params a string": (call("fs/writeFile", '"RUN"'), ""),
    "data a number": (write(PATH, '"dataBase64":7', '"zzz":"RUN"'), "invalid type"),
    "data an array": (write(PATH, '"dataBase64":["RUN"]'), "invalid type"),
    "follow a string": (write(PATH, data_of("RUN"), '"followSymlinks":"RUN"'),
                        "invalid type"),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_of_stdio(client, lines, place, name):
    path = place / "f"
    text, expected = CASES[name]
    text = text.replace("RUN", RUN).replace("PATH", uri(path))
    answer, content = compare(client, lines, text, path)
    if isinstance(expected, str):
        assert answer["error"]["message"].startswith(expected)
    else:
        assert answer["result"] == expected
    assert (content is not None) == (expected == WRITTEN)


# What is wrong behind valid letters, in JSON.
FAULTS = ["*", "A*", "AA*", "AAA*", "AAAA*", "*" + RUN[:5000], "A*" + RUN[:5000], "-AAA", "AAA_",
          "=", "==", "===", "====", "=AAA", "A=", "A=AA", "A==", "A===", "AA=", "AA=A", "AA==A",
          "AA==" + RUN[:5000], "AAA==", "AAA=AAAA", "A", "AA", "AAA", "AB==", "AAB=", "A/==",
          r"\n", r"A\n", r"AA==\n", r"\r\n", "é", "Aé", " ", "AAA "]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: ascii(f[:8]))
def test_wrong_base64(client, lines, place, fault):
    """The text of the error is about all characters, in whatever group the letters end."""
    for made in (client, lines):
        Files(made).open(place / "block", "block", mode="replace")
    outcomes = set()
    for letters in (10_000, 10_001, 10_002, 10_003, 10_059):
        text = RUN[:letters] + fault
        for method, params in [
                ("fs/writeFile", {"path": uri(place / "f"), "dataBase64": "T"}),
                ("fs/writeBlock", {"handleId": "block", "offset": 0, "chunk": "T"}),
                ("process/write", {"processId": "none", "chunk": "T"})]:
            message = call(method, json.dumps(params).replace('"T"', f'"{text}"'))
            answer, content = compare(client, lines, message, place / "f", [open_ended])
            assert (content is not None) == (method == "fs/writeFile" and "result" in answer)
            outcomes.add("error" in answer)
    assert True in outcomes
    for made in (client, lines):
        Files(made).close("block")


# The file has the bytes that were sent, however they are cut into frames.

SIZES = [letters // 4 * 3 + more for letters in (4096, 65536, 262144) for more in range(4)]


class Target:
    """Where a method takes bytes to: the params beside them, and what arrived."""

    def __init__(self, client, method, place):
        self.client, self.method, self.path = client, method, place / client.new_name()
        self.member, self.process = "chunk", None
        if method == "fs/writeFile":
            self.member, self.params = "dataBase64", {"path": uri(self.path)}
        elif method == "fs/writeBlock":
            handle = Files(client).open(self.path, self.path.name[-32:], mode="replace")
            self.params = {"handleId": handle, "offset": 0}
        else:
            self.process = client.start(["/bin/cat"], pipeStdin=True)
            self.params = {"processId": self.process.name}
        self.answer = {"status": "accepted"} if self.process else {}

    def encode(self, data, before=True):
        """Id and text of a request; before: the other params come before the data."""
        own = {self.member: b64(data)}
        ident, text = self.client.encode(
            self.method, {**self.params, **own} if before else {**own, **self.params})
        return ident, text.encode()

    def arrived(self):
        if self.process:
            self.client.ask("closeStdin", self.process)
            return self.client.wait_closed(self.process).output("stdout")
        if self.method == "fs/writeBlock":
            Files(self.client).close(self.params["handleId"])
        return self.path.read_bytes()


def sizes_of(method):
    """A block has at most 1 MiB."""
    return [0, *SIZES, len(DATA)] if method != "fs/writeBlock" else [*SIZES, MIB]


def deliver(client, method, place, before, send):
    """Data of each size arrives. send(text, start) sends a message with data from start on."""
    for size in sizes_of(method):
        target = Target(client, method, place)
        ident, text = target.encode(DATA[:size], before)
        send(text, text.index(f'"{target.member}":"'.encode()) + len(target.member) + 4)
        assert client.result(ident) == target.answer
        client.sync()
        assert target.arrived() == DATA[:size], size


@pytest.fixture(params=["fs/writeFile", "fs/writeBlock", "process/write"])
def method(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["last", "first"])
def before(request):
    """Whether the other params come before the data."""
    return request.param


@pytest.mark.parametrize("key, shift", [(bytes(4), 0), (b"\x9c\x00\xff\x35", 0), (KEY, 3)],
                         ids=["plain", "masked", "shifted"])
def test_one_frame(client, place, method, before, key, shift):
    """With blanks in front, so that the letters begin where the server begins to look, or later."""
    def send(text, start):
        blanks = b" " * ((shift - start) % 4096)
        client.transport.send_bytes(frame(TEXT, blanks + text + b" " * 70_000, key=key))
    deliver(client, method, place, before, send)


@pytest.mark.parametrize("sizes", [
    [4096], [4097, 1, 7, 65549], [5003, 2, 61, 64, 67, 40_001], [99_999]],
    ids=lambda sizes: str(sizes[0]))
def test_frames(client, place, method, before, sizes):
    """The first ends at the quote; there is a ping behind the second."""
    def send(text, start):
        frames = in_frames(cut(text, start, sizes))
        client.transport.send_bytes(b"".join([*frames[:2], masked(PING, b"p"), *frames[2:]]))
        while (got := client.transport.receive_frame()).opcode != PONG:
            assert len(frames) == 2, "answer to half a message"
            client.file(got.payload)
        assert got.payload == b"p"
    deliver(client, method, place, before, send)


def unread(sock):
    """What the other end of a Unix socket has not read yet."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


@pytest.mark.parametrize("sizes", [
    [1, 7, 4097, 65549], [4099, 4096, 70_001], [9000, 1, 1, 2, 3, 61, 64, 67], [65536, 1, 65535]],
    ids=lambda sizes: str(sizes[0]))
def test_pieces_of_the_stream(local, place, method, before, sizes):
    """Each is read by itself, the rest at once."""
    client = local.client()

    def send(text, _start):
        rest = whole(text.decode())
        for size in sizes:
            client.transport.send_bytes(rest[:size])
            rest = rest[size:]
            until(lambda: not unread(client.transport.sock), "reading of a piece")
        client.transport.send_bytes(rest)
    deliver(client, method, place, before, send)
    client.close()


# What waits, what is too large, what is no text.

@pytest.mark.parametrize("lanes", ["1", "4"])
@pytest.mark.parametrize("form", [whole, open_ended], ids=["whole", "open-ended"])
def test_pipelined(fleet, place, lanes, form):
    """Messages that wait for others are what they were."""
    client = fleet.start("--concurrent-requests", lanes).client()
    first = Target(client, "fs/writeFile", place)
    targets = [Target(client, method, place)
               for method in ("fs/writeFile", "process/write", "fs/writeBlock")]
    ident, text = first.encode(DATA)
    expected, stream = {ident: first.answer}, form(text.decode())
    for i in range(12):
        if i % 4 == 3:
            ident, text = client.encode("environment/status", zzz=RUN * 3)
            answer = {"status": "ready"}
        else:
            # Those for a file say the same twice, those for a process are added up.
            target = targets[i % 4]
            data = DATA[i:i + 225_000] if target.process else DATA[:225_000]
            ident, text = target.encode(data, before=i % 2 == 0)
            text, answer = text.decode(), target.answer
        expected[ident] = answer
        stream += form(text)
    stream += form('{"id":"' + RUN * 3 + '","method":"none"}') + form(f'{{"id":"{RUN * 3}"')
    client.transport.send_while_reading(stream)
    for ident, answer in expected.items():
        assert client.result(ident) == answer
    assert "none" in client.answer(RUN * 3)["error"]["message"]
    assert "EOF" in client.answer(-1)["error"]["message"]
    client.sync()
    assert first.arrived() == DATA
    assert targets[0].arrived() == targets[2].arrived() == DATA[:225_000]
    assert targets[1].arrived() == b"".join(DATA[i:i + 225_000] for i in (1, 5, 9))


def test_largest_message(client):
    """Restored, it is as large as a message may be."""
    begin, end = b'{"id":7,"method":"environment/status","zzz":"', b'"}'
    letters = (RUN * 672).encode()[:LIMIT - len(begin + end)]
    client.transport.send_bytes(frame(TEXT, begin + letters + end, key=bytes(4)))
    assert client.answer(7) == {"id": 7, "result": {"status": "ready"}}


@pytest.mark.parametrize("more", [0, 1])
def test_frames_over_the_limit(client, more):
    """The limit counts the bytes sent, not the memory that they take."""
    begin, end = b'{"id":7,"method":"environment/status","zzz":"', b'"}'
    letters = (RUN * 400).encode()
    client.transport.send_bytes(frame(TEXT, begin + letters, fin=False, key=bytes(4)))
    rest = LIMIT - len(begin + letters)
    client.transport.send_bytes(head(CONT, rest + more))
    if more:
        assert client.transport.receive_close() == 1009
    else:
        client.transport.send_bytes(letters[:rest - len(end)] + end)
        assert client.answer(7)["result"] == {"status": "ready"}


@pytest.mark.parametrize("letters", ["/" * 8192, "4OHi" * 2048, "w8PD" * 2048, "AAAA" * 2048],
                         ids=lambda letters: letters[:4])
@pytest.mark.parametrize("parts", [
    [b"\x80"], [b"\x80\x80"], [b"\x80", b"\x80"], [b"\xbf\xbf\xbf"], [b"\xff"], [b"\xc3"],
    [b"\xe2\x82"], [b"\xe2", b"\x82"], [b"\x80" + b"A" * 100]],
    ids=lambda parts: b"-".join(parts).hex()[:8])
def test_invalid_utf8_behind(fleet, letters, parts):
    """Whatever the letters are decoded to is no part of a character."""
    server = fleet.start()
    client = server.client()
    for end in (b"", b'"}'):
        ws = server.websocket()
        ws.send_bytes(b"".join(in_frames([b'{"id":"', letters.encode(), *parts, end])))
        assert ws.receive_close() == 1007
    client.sync()


@pytest.mark.parametrize("letters", ["/" * 8192, "w8PD" * 2048], ids=lambda letters: letters[:4])
def test_split_utf8_behind(fleet, letters):
    client = fleet.start().client()
    for cuts in ([b"\xc3", b"\xa9"], [b"\xf0", b"\x9f", b"\x98\x80"], [b"\xe2\x82", b"\xac"]):
        parts = [b'{"id":"', letters.encode(), *cuts, b'","method":"environment/status"}']
        client.transport.send_bytes(b"".join(in_frames(parts)))
        ident = letters + b"".join(cuts).decode()
        assert client.answer(ident)["result"] == {"status": "ready"}

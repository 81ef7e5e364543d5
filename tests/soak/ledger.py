"""What a process must give, checked byte by byte and number by number."""

import base64


class Lost(AssertionError):
    """A byte, a number or an end is missing, doubled or wrong."""


class Source:
    """The bytes that a stream must carry: a slice of generated data."""

    def __init__(self, data, start=0, length=None):
        self.data = data
        self.start = start
        self.length = len(data) - start if length is None else length

    def part(self, offset, size):
        begin = self.start + offset
        return bytes(self.data[begin:min(begin + size, self.start + self.length)])

    def total(self):
        return self.length


class Grown(Source):
    """The bytes of a stream that echoes what is written to it, as far as it was written."""

    def __init__(self, first=b""):
        super().__init__(bytearray(first))

    def add(self, data):
        self.data += data

    def total(self):
        return len(self.data)

    def part(self, offset, size):
        return bytes(self.data[offset:offset + size])


class Ledger:
    """Events of one process, from notifications and from reads after a resume.

    Every number counts once. One that is told again must say the same.
    """

    def __init__(self, name, sources):
        self.name = name
        self.sources = sources
        self.got = dict.fromkeys(sources, 0)
        self.next_seq = 1
        self.pending = {}
        self.places = {}
        self.exited = None
        self.closed = False

    def fail(self, what):
        raise Lost(f"{self.name}: {what}")

    def total(self):
        return sum(self.got.values())

    def offer(self, seq, kind, payload):
        """Takes an event; those that come too early wait for the ones before them."""
        if seq < self.next_seq:
            self.again(seq, kind, payload)
            return
        self.pending[seq] = (kind, payload)
        while self.next_seq in self.pending:
            kind, payload = self.pending.pop(self.next_seq)
            self.take(self.next_seq, kind, payload)
            self.next_seq += 1

    def again(self, seq, kind, payload):
        told, offset = self.places[seq]
        if told != kind:
            self.fail(f"seq {seq} was {told}, now {kind}")
        if kind in self.sources and payload != self.sources[kind].part(offset, len(payload)):
            self.fail(f"seq {seq} is told again with other bytes")

    def take(self, seq, kind, payload):
        if self.closed:
            self.fail(f"{kind} after closed")
        self.places[seq] = (kind, self.got.get(kind))
        if kind == "exited":
            if self.exited is not None:
                self.fail("exited twice")
            self.exited = payload
        elif kind == "closed":
            if self.exited is None:
                self.fail("closed before exited")
            self.closed = True
        elif kind not in self.sources:
            self.fail(f"bytes on {kind}")
        else:
            start = self.got[kind]
            if payload != self.sources[kind].part(start, len(payload)):
                self.fail(f"wrong bytes on {kind} after {start}")
            self.got[kind] = start + len(payload)

    def catch_up(self, result):
        """Events told by process/read, which names exited and closed without their numbers."""
        seqs = set(self.pending)
        for chunk in result["chunks"]:
            seqs.add(chunk["seq"])
            self.offer(chunk["seq"], chunk["stream"], base64.b64decode(chunk["chunk"]))
        if result["closed"]:
            seqs.add(result["nextSeq"] - 1)
            self.offer(result["nextSeq"] - 1, "closed", None)
        if result["exited"] and self.exited is None and "exited" not in dict(self.pending.values()):
            holes = [s for s in range(self.next_seq, result["nextSeq"]) if s not in seqs]
            if len(holes) != 1:
                self.fail(f"read leaves out {holes}, failure {result.get('failure')!r}")
            self.offer(holes[0], "exited", result["exitCode"])

    def check(self, codes, whole=True):
        """Checks the end: an exit code of `codes`, and that no byte is missing if `whole`."""
        if not self.closed or self.pending:
            self.fail(f"not at its end: waiting for {self.next_seq}, held {sorted(self.pending)}")
        if self.exited not in codes:
            self.fail(f"exit code {self.exited}, not one of {codes}")
        for kind, source in self.sources.items():
            if self.got[kind] != source.total() and whole:
                self.fail(f"{self.got[kind]} of {source.total()} bytes on {kind}")

"""Viewers that are slow, many or greedy: the watched command and its client do not notice."""

import pytest

from harness.console import Console
from harness.settings import SANITIZED
from harness.waiting import until

MIB = 1 << 20
FLOOD = 50 * MIB if not SANITIZED else 10 * MIB


class Counter:
    """Takes output without keeping it."""

    def __init__(self):
        self.bytes = 0

    def __call__(self, _seq, _stream, data):
        self.bytes += len(data)


def flood(owner, amount):
    """A command that waits for a line, then floods."""
    sink = Counter()
    process = owner.start(f"read x; head -c {amount} /dev/zero; echo; echo the end",
                          sink=sink, pipeStdin=True)
    return process, sink


def test_a_viewer_that_never_reads(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    owner, page = console.server.client(), console.page(rcvbuf=4096)
    process, sink = flood(owner, FLOOD)
    where = page.of(process)
    page.call("process/attach", where)
    page.call("console/audit")
    before = console.server.rss()
    owner.write(process, "go\n")
    owner.wait_closed(process)
    assert sink.bytes == FLOOD + 9
    if not SANITIZED:
        assert console.server.rss() - before < 24 * MIB
    # It still gets what is retained, once it reads.
    view = next(iter(page.views.values()))
    page.wait(lambda: view.closed, "the end")
    assert view.gaps and view.output().endswith(b"\nthe end\n")


def test_a_viewer_that_reads(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    owner, page = console.server.client(), console.page()
    process, sink = flood(owner, 20 * MIB)
    view = page.watch(process)
    owner.write(process, "go\n")
    owner.wait_closed(process)
    assert sink.bytes == 20 * MIB + 9
    page.wait(lambda: view.closed, "the end")
    assert view.output().endswith(b"\nthe end\n")
    # What is drawn anew after a gap is the end of the output.
    again = page.call("console/snapshot", {**page.of(process), "maxBytes": 4096})
    assert again["streams"]["stdout"]["totalBytes"] == 20 * MIB + 9


def test_sixteen_views_of_one_process(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    owner, first = console.server.client(), console.page()
    process, sink = flood(owner, 4 * MIB)
    where = first.of(process)
    pages = [first] + [console.page(first.call("console/link")["token"]) for _ in range(16)]
    for page in pages[:-1]:
        page.watch(process)
    assert pages[-1].error("process/attach", where) == (
        -32600, "too many viewers (limit 16 per process, 64 per connection)")
    owner.write(process, "go\n")
    owner.wait_closed(process)
    assert sink.bytes == 4 * MIB + 9
    for page in pages[:-1]:
        view = next(iter(page.views.values()))
        page.wait(lambda v=view: v.closed, "the end")


def test_a_viewer_hears_at_once(fleet, tmp_path):
    """Turns delay a flood, not a word: nothing waits for another event to come."""
    console = Console(fleet, tmp_path)
    owner, page = console.server.client(), console.page()
    process = owner.start("while read x; do echo $x; done", pipeStdin=True)
    view = page.watch(process)
    for number in range(30):
        owner.write(process, f"{number}\n")
        page.wait(lambda n=number: f"{n}\n".encode() in view.output(), f"line {number}")
    assert not view.gaps


def test_a_page_that_asks_too_much(fleet, tmp_path):
    """Requests without a reader: the page is not read any more, the client is served."""
    console = Console(fleet, tmp_path)
    owner, page = console.server.client(), console.page(rcvbuf=4096)
    for _ in range(200):
        owner.start("exec sleep 1000")
    rest = b""
    for _ in range(3000):
        _, text = page.encode("console/list")
        rest = page.transport.try_send(_frame(text))
        if rest:
            break
    owner.sync()
    assert owner.run("exit 5").exit_code == 5
    if not SANITIZED:
        assert console.server.rss() < 120 * MIB
    page.transport.reset()
    until(lambda: owner.run("true").exit_code == 0, "service")


def _frame(text):
    from harness.ws import TEXT, frame  # pylint: disable=import-outside-toplevel
    return frame(TEXT, text.encode(), key=b"\0\0\0\0")


@pytest.mark.parametrize("attempts", [300])
def test_attach_and_detach_in_a_flood(fleet, tmp_path, attempts):
    console = Console(fleet, tmp_path)
    owner, page = console.server.client(), console.page()
    sink = Counter()
    process = owner.start("exec cat /dev/zero", sink=sink)
    where = page.of(process)
    for _ in range(attempts):
        ident = page.call("process/attach", where)["attachId"]
        page.call("process/detach", {"attachId": ident})
        owner.pump(0)
    before = sink.bytes
    owner.wait(lambda: sink.bytes > before + MIB, "more output")
    owner.terminate(process)
    owner.wait_closed(process)


def test_a_session_that_goes_while_it_is_watched(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--session-ttl", "0")
    page = console.page()
    owner = console.server.client()
    process = owner.start("exec cat /dev/zero", sink=Counter())
    view = page.watch(process)
    owner.transport.reset()
    page.wait(lambda: view.detached or view.closed, "the end of the view")
    until(lambda: not page.list()["processes"], "an empty list")

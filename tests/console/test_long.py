"""Floods, thousands of processes, silent networks. CONSOLE_LONG=1, which `make verify` sets, runs them
in full; else a share of each."""

import json
import os
import pathlib

import pytest

from viewer import ready, show_process
from cutter import Cutter
from harness.rpc import Client
from harness.waiting import Deadline

LONG = os.environ.get("CONSOLE_LONG") == "1"
FLOOD = (200 if LONG else 30) * 1_000_000
PROCESSES = 2000 if LONG else 300
HANG = 1200 if LONG else 300  # seconds; only ends a hang


def start_flood(console, directory, tty):
    """A process that prints a flood once the file `go` is there, and ends with a known screen. Its
    client has left: a client that reads slowly would hold it."""
    client = console.client()
    script = (
    f"while [ ! -e {directory}/go ]; do sleep 0.05; done; "
    "yes 'a line of the flood \033[32mwith colour\033[0m, and no more than that' | head -c "
    f"{FLOOD}; echo; seq -f 'row %g' 1 100; printf THE-END; sleep 1000")
    client.start(["/bin/sh", "-c", script], tty=tty, pipeStdin=False)
    client.close()


@pytest.mark.parametrize("tty", [True, False], ids=["terminal", "pipe"])
def test_flood(consoles, pages, tmp_path, tty):
    console = consoles("--session-ttl", "36000")
    start_flood(console, tmp_path, tty)
    page = pages(console)
    show_process(page, "flood")
    pathlib.Path(tmp_path, "go").touch()
    deadline, answered = Deadline(HANG), 0
    while True:  # the page answers its user all the while
        page.press("?")
        page.wait("document.querySelector('dialog.keys')", "the keys, during a flood")
        page.press("Escape")
        page.wait("!document.querySelector('dialog')", "the keys are gone")
        answered += 1
        if any("THE-END" in row for row in page.rows()):
            break
        assert not deadline.passed(), "the flood does not end: " + "\n".join(page.rows())
    assert answered > 0
    rows = [row for row in page.rows() if row]
    assert rows == [*(f"row {i}" for i in range(102 - len(rows), 101)), "THE-END"], rows
    # All of it went through the server, which the list says a second later.
    page.wait("Number(/output\\s*([\\d.]+) MB/.exec(document.querySelector('.facts').innerText)?.[1]) >= "
              f"{FLOOD // 1_000_000}", "the number of bytes")
    heap = page.call("Runtime.getHeapUsage")["usedSize"]
    assert heap < 256 << 20, heap  # what the page keeps has a maximum


def test_thousands_of_processes(console, pages):
    Client.sampler, sampler = None, Client.sampler
    clients = [console.client() for _ in range(8)]
    for number in range(PROCESSES):
        client = clients[number % 8]
        client.start(["/bin/sleep", f"{100000 + number}"])
    Client.sampler = sampler
    page = pages(console)
    page.wait(
    f"document.querySelector('.count').textContent === '{PROCESSES} ({PROCESSES} running)'",
     seconds=HANG)
    assert page.evaluate("document.querySelectorAll('.processes .row').length") < 100
    assert page.text(
        ".processes .row[aria-rowindex='2'] .command") == f"/bin/sleep {99999 + PROCESSES}"
    page.press("End")
    page.wait("document.querySelector('.processes .active .command')?.textContent === '/bin/sleep 100000'")
    page.press("/")
    page.type("100123")
    page.wait("document.querySelectorAll('.processes .row').length === 1")
    assert page.text(".processes .row .command") == "/bin/sleep 100123"
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('.process .command')?.textContent === '/bin/sleep 100123'")
    # A second in which nothing happens costs a few bytes, not the whole list.
    page.events["Network.webSocketFrameReceived"].clear()

    def quiet():
        frames = [json.loads(f["response"]["payloadData"])
                             for f in page.events["Network.webSocketFrameReceived"]]
        page.evaluate("1")
        return [f for f in frames if "revision" in f.get("result", {})]
    deadline = Deadline(HANG)
    while len(quiet()) < 3:
        assert not deadline.passed()
    assert all(len(json.dumps(answer)) < 1000 for answer in quiet()), quiet()
    for client in clients:
        client.close()


@pytest.mark.skipif(not LONG, reason="waits for 20 s and more")
def test_silent_network(consoles, pages):
    """A network that is cut without a word: the page notices, and comes back."""
    console = consoles("--console-host", "127.0.0.1")
    cutter = Cutter(console.port)
    page = pages()
    page.origin = f"http://127.0.0.1:{cutter.port}"
    page.go(f"{page.origin}/#{console.token}")
    ready(page)
    cutter.hold()
    page.wait("document.getElementById('status').textContent.includes('connection lost')", seconds=180)
    cutter.open()
    ready(page)
    cutter.close()

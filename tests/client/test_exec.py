"""Unified exec: exec_command and write_stdin as the reference's client tells them its model."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from execserver import aio, blocking, errors
from harness import procfs
from harness.exec_cases import CASES, masked
from harness.settings import PATIENCE
from harness.waiting import until

TEXTS = {entry["case"]: entry["texts"] for entry in map(
    json.loads, (Path(__file__).parent / "exec_texts.jsonl").read_text().splitlines())}
STDIN_FAILED = "write_stdin failed: "
ATTEMPTS = 4  # of a case whose command needs a CPU within its window

AGENT = {"NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8",
         "LC_ALL": "C.UTF-8", "COLORTERM": "", "PAGER": "cat", "GIT_PAGER": "cat",
         "GH_PAGER": "cat"}


@pytest.fixture(name="c")
def connected(server):
    with blocking.connect(server.url) as client:
        yield client


class Recorder:
    """The events of one Exec."""

    def __init__(self, tools):
        self.seen = []
        tools.events.begin = lambda i: self.seen.append(("begin", i))
        tools.events.delta = lambda i, s, d: self.seen.append(("delta", i, s, d))
        tools.events.interaction = lambda i, d: self.seen.append(("interaction", i, d))
        tools.events.end = lambda i, e, t: self.seen.append(("end", i, e, t))

    def kinds(self):
        """Without repetitions of deltas."""
        kinds = [event[0] for event in self.seen]
        return [k for n, k in enumerate(kinds) if k != "delta" or kinds[n - 1:n] != ["delta"]]

    def of(self, kind):
        return [event for event in self.seen if event[0] == kind]


def milliseconds(step):
    return {"yield_time": step["yield_time_ms"] / 1000} if "yield_time_ms" in step else {}


def play(c, steps):
    """The texts of one case, as the reference's client words them."""
    session, texts = 4, []
    for step in steps:
        budget = {"max_tokens": step["max_output_tokens"]} if "max_output_tokens" in step else {}
        try:
            if "cmd" in step:
                result = c.exec.command([c.info.shell, "-lc", step["cmd"]], tty=step.get("tty"),
                                        **milliseconds(step), **budget)
            else:
                result = c.exec.write_stdin(session, step["chars"].encode(), **milliseconds(step))
        except errors.InvalidArgument as error:
            texts.append(masked(STDIN_FAILED + str(error)))
            continue
        session = result.session or session
        texts.append(masked(result.text))
        assert result.text.endswith(result.output.decode())
        assert f"Chunk ID: {result.chunk_id}\nWall time: {result.wall_s:.4f} seconds\n" in result.text
    return texts


@pytest.mark.parametrize("case", CASES)
def test_s27_texts_are_those_of_the_reference(c, case):
    for _ in range(ATTEMPTS):
        found = play(c, CASES[case])
        if found == TEXTS[case]:
            return
    assert found == TEXTS[case]


def test_s27_every_case_was_recorded():
    assert list(TEXTS) == list(CASES)


def test_s28_short_windows_are_lengthened(c):
    first = c.exec.command(["sleep", "1000"], yield_time=0)
    assert first.session in range(1000, 100000) and first.exit is None
    assert first.wall_s >= 0.25
    written = c.exec.command(["cat"], tty=True, yield_time=0)
    assert c.exec.write_stdin(written.session, b"x", yield_time=0).wall_s >= 0.25
    assert c.exec.write_stdin(first.session, yield_time=0).wall_s >= 5


def test_s28_a_poll_has_a_ceiling(c):
    """Else this would take a day."""
    first = c.exec.command(["sleep", "100000"], yield_time=0)
    polled = c.exec.write_stdin(first.session, yield_time=86400, poll_max=5)
    assert polled.session == first.session and polled.wall_s >= 5


def test_s28_long_windows_are_shortened(server):
    """A window of a day, of a command and of input, is one of 30 seconds."""
    async def both():
        async with await aio.connect(server.url) as c:
            cat = await c.exec.command(["cat"], tty=True, yield_time=0.25)
            results = await asyncio.gather(
                c.exec.command(["sleep", "100000"], yield_time=86400),
                c.exec.write_stdin(cat.session, b"x\n", yield_time=86400))
            assert [r.wall_s >= 30 and r.session != 0 for r in results] == [True, True]
    asyncio.run(both())


def test_events_of_a_command(c):
    seen = Recorder(c.exec)
    result = c.exec.command(["sh", "-c", "echo out; exit 3"], tool_call_id="call_7", cwd="/tmp")
    assert (result.session, result.exit.code, result.output) == (0, 3, b"out\n")
    assert seen.kinds() == ["begin", "delta", "end"]
    info = seen.seen[0][1]
    assert (info.argv, info.cwd, info.call_id) == (("sh", "-c", "echo out; exit 3"), "/tmp", "call_7")
    assert info.id.startswith(f"{info.session}-") and len(info.id) == len(str(info.session)) + 37
    _, _, ended, transcript = seen.seen[-1]
    assert (ended.code, transcript.head, transcript.tail, transcript.omitted) == (3, b"out\n", b"", 0)


def test_events_of_a_session(c):
    seen = Recorder(c.exec)
    first = c.exec.command(["cat"], tty=True, yield_time=0.25)
    c.exec.write_stdin(first.session, b"hello\n")
    last = c.exec.write_stdin(first.session, b"\x04", yield_time=PATIENCE)
    assert (last.session, last.exit.code) == (0, 0)
    assert [event[2] for event in seen.of("interaction")] == [b"hello\n", b"\x04"]
    assert {event[1].session for event in seen.seen} == {first.session}
    assert len(seen.of("begin")) == len(seen.of("end")) == 1
    assert b"hello\r\nhello\r\n" in seen.of("end")[0][3].head
    assert b"".join(event[3] for event in seen.of("delta")) == seen.of("end")[0][3].head


def test_a_poll_is_an_interaction_while_it_runs(c):
    seen = Recorder(c.exec)
    first = c.exec.command(["sh", "-c", "sleep 7"], yield_time=0.25)
    assert c.exec.write_stdin(first.session).exit is None
    assert c.exec.write_stdin(first.session, yield_time=PATIENCE).exit.code == 0
    assert [event[2] for event in seen.of("interaction")] == [b""]


def test_deltas_are_bounded_and_split_no_character(c):
    seen = Recorder(c.exec)
    script = "i=0; while [ $i -lt 3000 ]; do printf 'x\\342\\202\\254\\360\\237\\230\\200'; i=$((i+1)); done"
    c.exec.command(["sh", "-c", script], yield_time=PATIENCE)
    deltas = [event[3] for event in seen.of("delta")]
    assert b"".join(deltas) == "x€😀".encode() * 3000
    assert max(map(len, deltas)) <= 8192
    for delta in deltas:
        delta.decode()


def test_a_flood_keeps_both_ends(c):
    seen = Recorder(c.exec)
    result = c.exec.command(["sh", "-c", "seq 1 1000000; echo END"], yield_time=PATIENCE)
    assert result.original_tokens == (6888896 + 4 + 3) // 4
    assert b"bytes omitted ..." in result.output and result.output.endswith(b"\nEND\n")
    transcript = seen.of("end")[0][3]
    assert (len(transcript.head), len(transcript.tail)) == (524288, 524288)
    assert transcript.total == 6888900 == transcript.omitted + 2 * 524288


def test_environment_for_agents(c):
    result = c.exec.command(["env", "-0"], env_preset="agent", env={"PAGER": "more"})
    found = dict(entry.split("=", 1) for entry in result.output.decode().split("\0") if entry)
    assert {name: found.get(name) for name in AGENT} == {**AGENT, "PAGER": "more"}
    assert not [name for name in found if name.startswith("CODEX_")]


def test_a_start_that_fails(c):
    seen = Recorder(c.exec)
    with pytest.raises(errors.RemoteError) as caught:
        c.exec.command(["true"], cwd="/nonexistent-dir")
    assert "No such file or directory (os error 2)" in str(caught.value)
    assert seen.seen == []
    assert c.exec.command(["true"]).exit.code == 0


def test_calls_of_one_session_take_turns(server):
    async def calls():
        async with await aio.connect(server.url) as c:
            first = await c.exec.command(["cat"], tty=True, yield_time=0.25)
            results = await asyncio.gather(*(
                c.exec.write_stdin(first.session, f"{n}\n".encode()) for n in range(3)))
            text = b"".join(r.output for r in results)
            assert text.count(b"\r\n") == 6
            assert [text.index(b"%d" % n) for n in range(3)] == sorted(
                text.index(b"%d" % n) for n in range(3))
            results = await asyncio.gather(
                *(c.exec.write_stdin(first.session, b"\x04", yield_time=PATIENCE)
                  for _ in range(3)), return_exceptions=True)
            assert [getattr(r, "session", str(r)) for r in results] == [
                0, *[f"Unknown process id {first.session}"] * 2]
    asyncio.run(calls())


def test_a_cancelled_command_ends(server):
    async def calls():
        async with await aio.connect(server.url) as c:
            seen = Recorder(c.exec)
            task = asyncio.create_task(c.exec.command(["sleep", "1000"]))
            while not seen.of("begin"):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not seen.of("end"):
                await asyncio.sleep(0.01)
    asyncio.run(asyncio.wait_for(calls(), PATIENCE))


def test_the_least_recently_used_makes_room(server):
    async def calls():
        async with await aio.connect(server.url) as c:
            seen = Recorder(c.exec)
            first = await c.exec.command(["sleep", "1000"], yield_time=0.25)
            ended = await c.exec.command(["sleep", "0.6"], yield_time=0.25)
            rest = await asyncio.gather(*(c.exec.command(["sleep", "1000"], yield_time=0.25)
                                          for _ in range(62)))
            assert len({r.session for r in rest}) == 62
            while len(seen.of("end")) < 1:
                await asyncio.sleep(0.01)
            one_more = await c.exec.command(["sleep", "1000"], yield_time=0.25)
            with pytest.raises(errors.InvalidArgument, match="Unknown process id"):
                await c.exec.write_stdin(ended.session)
            await c.exec.command(["sleep", "1000"], yield_time=0.25)
            with pytest.raises(errors.InvalidArgument, match="Unknown process id"):
                await c.exec.write_stdin(first.session)
            while len(seen.of("end")) < 2:
                await asyncio.sleep(0.01)
            assert {e[1].session for e in seen.of("end")} == {ended.session, first.session}
            assert (await c.exec.write_stdin(one_more.session, poll_max=5)).session != 0
    asyncio.run(asyncio.wait_for(calls(), 2 * PATIENCE))


def test_free_terminates_what_runs(server, c):
    first = c.exec.command(["sh", "-c", "echo $$; exec sleep 1000"], yield_time=0.25)
    pid = int(first.output)
    assert procfs.alive(pid)
    c.exec.free()
    until(lambda: c.rpc("environment/status") and not procfs.alive(pid), "the command ends")


def test_a_lost_session_ends_its_commands(fleet):
    server = fleet.start()
    with blocking.connect(server.url, resume_time=0.5) as c:
        seen = Recorder(c.exec)
        first = c.exec.command(["sleep", "1000"], yield_time=0.25)
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(errors.Error):
            c.exec.write_stdin(first.session, yield_time=PATIENCE)
        assert [e[2].code for e in seen.of("end")] == [-1]
    server.popen.wait(PATIENCE)


def test_a_callback_may_free_it(c):
    tools = blocking.Exec(c)
    tools.events.delta = lambda *_: tools.free()
    with pytest.raises(errors.Error):
        tools.command(["sh", "-c", "echo x; sleep 1000"], yield_time=PATIENCE)
    assert c.rpc("environment/status") == {"status": "ready"}

"""The asyncio client: processes, cancelling, loops, the garbage collector, callbacks, fork."""

import asyncio
import ctypes
import errno
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

import execserver
from execserver import Closed, Data, Exited, State, Stream, _lib, aio, errors
from harness import procfs
from harness.settings import PATIENCE


def go(main, *args):
    """Runs a test in a loop of its own, for a limited time."""
    async def limited():
        return await asyncio.wait_for(main(*args), PATIENCE)
    return asyncio.run(limited())


async def connected(url):
    return await execserver.connect(url)


# -- processes --

def test_a_command_to_its_end(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            done = await client.run(["sh", "-c", "echo out; echo err >&2; exit 7"])
            assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
            assert done.exit.exited and done.exit.closed and done.exit.signal == 0
    go(main)


def test_a_string_is_for_the_shell(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            assert (await client.run("echo $((6 * 7))")).text == "42\n"
    go(main)


def test_check_raises_with_the_last_line_of_stderr(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            with pytest.raises(execserver.CommandFailed, match="exit status 3: no luck") as e:
                await client.run(["sh", "-c", "echo no luck >&2; exit 3"], check=True)
            assert e.value.completed.code == 3
    go(main)


def test_input_comes_back(shared):
    data = os.urandom(3 << 20)

    async def main():
        async with execserver.connect(shared.url) as client:
            assert (await client.run(["cat"], input=data)).stdout == data
    go(main)


def test_output_beyond_the_limit_is_left_out_in_the_middle(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            done = await client.run(["seq", "100000"], max_output=1000)
            assert done.stdout.head.startswith(b"1\n2\n")
            assert done.stdout.tail.endswith(b"\n100000\n")
            assert done.stdout.omitted == done.stdout.total - 1000
            assert b"bytes omitted" in done.stdout
    go(main)


def test_options_of_a_start(shared, place):
    async def main():
        async with execserver.connect(shared.url) as client:
            done = await client.run(["sh", "-c", "pwd; echo $A; tty; stty size"], cwd=place,
                                    env={"A": "b c"}, tty=True, rows=31, cols=97)
            lines = done.text.replace("\r", "").split("\n")
            assert lines[:2] == [str(place), "b c"]
            assert lines[2].startswith("/dev/") and lines[3] == "31 97"
    go(main)


def test_events_in_order(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["sh", "-c", "echo a; echo b >&2; exit 5"])
            events = [event async for event in process]
            numbers = [event.seq for event in events]
            assert numbers == sorted(set(numbers))
            assert {e.stream: e.data for e in events if isinstance(e, Data)} == {
                Stream.STDOUT: b"a\n", Stream.STDERR: b"b\n"}
            assert [type(e) for e in events[-2:]] == [Exited, Closed]
            assert events[-1].exit.code == 5
            with pytest.raises(StopAsyncIteration):
                await process.__anext__()
    go(main)


def test_a_conversation(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            async with await client.start(["cat"], stdin=True) as process:
                for word in (b"one", b"two"):
                    await process.write(word)
                    got = b""
                    async for event in process:
                        got += event.data
                        if got == word:
                            break
                await process.close_stdin()
                assert (await process.wait(closed=True)).code == 0
    go(main)


def test_a_slow_reader_gets_everything(shared):
    size = 20 << 20

    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["head", "-c", str(size), "/dev/zero"])
            n = 0
            async for event in process:
                n += len(event.data) if isinstance(event, Data) else 0
                assert process._sink.waiting <= (1 << 20) + aio._callbacks.PAUSE_AT
                await asyncio.sleep(0)
            assert n == size
    go(main)


def test_signals_and_ends(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["sleep", "1000"])
            with pytest.raises(errors.TimedOut):
                await process.wait(timeout=0)
            await process.signal(signal.SIGINT)
            assert (await process.wait()).signal == signal.SIGINT
            process = await client.start(["sleep", "1000"])
            await process.terminate()
            assert (await process.wait(closed=True)).code != 0
            done = await client.run(["sleep", "1000"], timeout=0.05)
            assert done.exit.timed_out
    go(main)


def test_snapshot_read_and_list(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["echo", "hello"], process_id="greeting")
            assert process.id == "greeting"
            await process.wait(closed=True)
            assert (await process.snapshot()).stdout == b"hello\n"
            assert (await process.read())["chunks"]
            assert [p["processId"] for p in await client.processes()] == ["greeting"]
    go(main)


def test_leaving_the_block_ends_the_process(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            token = procfs.mark()
            async with await client.start(["sleep", token]):
                procfs.wait_marked(token)
            await asyncio.to_thread(procfs.wait_marked, token, 0)
            with pytest.raises(errors.InvalidArgument):
                async with await client.start(["true"]) as process:
                    pass
                await process.wait()
    go(main)


# -- the connection --

def test_what_is_known_of_the_server(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            assert client.state == State.READY and client.state.name == "READY"
            assert client.info.url.startswith("ws://127.0.0.1")
            assert len(client.info.session) == 36 and client.info.shell.startswith("/")
            assert client.can("processAck") and not client.can("nonsense")
            assert (await client.rpc("environment/status"))
        assert client.state == State.CLOSED
        with pytest.raises(errors.SessionGone):
            await client.run(["true"])
    go(main)


def test_await_connect(shared):
    async def main():
        client = await execserver.connect(shared.url)
        assert (await client.run(["true"])).code == 0
        await client.close()
        await client.close()
    go(main)


def test_nobody_listens():
    async def main():
        with pytest.raises(errors.ConnectError, match="127.0.0.1:1") as e:
            await execserver.connect("ws://127.0.0.1:1", connect_timeout=0.2)
        assert isinstance(e.value, ConnectionError) and e.value.code == execserver.Code.ECONNECT
    go(main)


def test_errors_of_the_server(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            with pytest.raises(errors.RemoteError, match="nosuch") as e:
                await client.run(["nosuch-program"])
            assert e.value.errno == errno.ENOENT and e.value.rpc_code < 0
            with pytest.raises(errors.RemoteError) as e:
                await client.rpc("fs/readFile", {"path": "file:///nosuch"})
            assert e.value.errno == errno.ENOENT
            with pytest.raises(errors.Unsupported):
                await client.rpc("no/such")
    go(main)


def test_wrong_arguments(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            with pytest.raises(errors.InvalidArgument):
                await client.start(["true"], options={"no-such-option": "x"})
            with pytest.raises(ValueError):
                await client.start(["a\0b"])
            with pytest.raises(TypeError):
                await client.start(["true"], options={"argv": "text"})
            assert (await client.run(["true"])).code == 0
    go(main)


def test_detach_and_find_again(fleet):
    server = fleet.start()

    async def main():
        client = await execserver.connect(server.url)
        process = await client.start(["sh", "-c", "read line; echo got $line"], stdin=True)
        session = await client.detach()
        async with execserver.connect(server.url, session_id=session) as again:
            assert again.info.session == session
            async with await again.adopt(process.id) as adopted:
                await adopted.write(b"it\n")
                out = [e.data async for e in adopted if isinstance(e, Data)]
                assert b"".join(out) == b"got it\n"
    go(main)


def test_two_clients_one_views(fleet):
    url = fleet.start("--allow-attach").url

    async def main():
        async with execserver.connect(url) as one, execserver.connect(url) as two:
            process = await one.start(["sh", "-c", "echo seen; read end"], stdin=True)
            async with await two.view(process.id, session=one.info.session) as view:
                async for event in view:
                    if isinstance(event, Data):
                        assert event.data == b"seen\n"
                        break
            await process.close_stdin()
            assert (await process.wait()).exited
    go(main)


# -- statement 24 and 25 --

def test_s24_asyncio_by_fd_and_process_alone(shared):
    """The library needs nothing of the loop but the descriptor: no timer, no thread."""
    c = _lib.load()

    async def main():
        loop = asyncio.get_running_loop()
        options, client, process = c.xs_options_new(), ctypes.c_void_p(), ctypes.c_void_p()
        c.xs_options_str(options, b"url", shared.url.encode())
        for word in (b"sh", b"-c", b"echo by fd; exit 4"):
            c.xs_options_add(options, b"argv", word)
        assert c.xs_client_new(options, ctypes.byref(client)) == 0
        fd = c.xs_client_fd(client)
        loop.add_reader(fd, c.xs_client_process, client)
        keep = []

        async def call(function, *args):
            future = loop.create_future()
            done = _lib.Done(lambda _, result: future.set_result(result))
            raw = _lib.Call(done=done)
            keep.append((done, raw))
            assert function(*args, ctypes.byref(raw)) == 0
            return await future

        assert await call(c.xs_client_connect, client) == 0
        assert await call(c.xs_process_start, client, options, ctypes.byref(process)) == 0
        snapshot = _lib.Snapshot()
        assert await call(c.xs_process_communicate, process, None, 0, 1000,
                          ctypes.byref(snapshot)) == 0
        out = snapshot.out.contents
        assert ctypes.string_at(out.data, out.head + out.tail) == b"by fd\n"
        assert snapshot.exit.contents.code == 4
        c.xs_snapshot_fini(ctypes.byref(snapshot))
        loop.remove_reader(fd)
        c.xs_client_free(client)
        c.xs_options_free(options)
    go(main)


def test_s25_a_blocking_call_in_a_callback_is_refused(shared):
    """The raw library, in a callback of a state."""
    c = _lib.load()
    results = []

    async def main():
        async with execserver.connect(shared.url) as client:
            pointer = client._driver.pointer
            client.on_state = lambda state: results.extend(
                [c.xs_client_close(pointer, None), c.xs_client_process(pointer),
                 c.xs_client_run(pointer, 0)])
            await client.rpc("environment/status")
            await client.close()
    go(main)
    assert results and set(results) == {execserver.Code.EBUSY}


# -- cancelling --

def test_a_cancelled_wait_leaves_the_process_alone(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["cat"], stdin=True)
            task = asyncio.create_task(process.wait())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await client.rpc("environment/status")
            await process.close_stdin()
            assert (await process.wait()).code == 0
    go(main)


def test_a_cancelled_start_leaves_nothing_running(shared):
    """Wherever the start is: not sent, sent, answered."""
    async def main():
        token = procfs.mark()
        async with execserver.connect(shared.url) as client:
            for steps in range(12):
                task = asyncio.create_task(client.start(["sleep", token]))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    (await task).free()
                except asyncio.CancelledError:
                    pass
            await client.run(["true"])
            await asyncio.to_thread(procfs.wait_marked, token, 0)
        assert not client._driver.calls
    go(main)


def test_a_cancelled_iteration_loses_no_event(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            process = await client.start(["sh", "-c", "read x; echo $x"], stdin=True)
            task = asyncio.create_task(process.__anext__())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await process.write(b"kept\n")
            assert (await process.__anext__()).data == b"kept\n"
    go(main)


def test_calls_end_when_the_client_is_freed(shared):
    async def main():
        client = await execserver.connect(shared.url)
        process = await client.start(["sleep", "1000"])
        tasks = [asyncio.create_task(process.wait()), asyncio.create_task(process.__anext__())]
        await asyncio.sleep(0)
        client.free()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(r) for r in results] == [errors.Canceled, StopAsyncIteration]
    go(main)


# -- loops and threads --

def test_two_loops_in_two_threads(shared):
    results = []

    async def main(n):
        async with execserver.connect(shared.url) as client:
            for i in range(20):
                results.append((n, i, (await client.run(["echo", f"{n} {i}"])).text))
    threads = [threading.Thread(target=go, args=(main, n)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, i, f"{n} {i}\n") for n in range(2) for i in range(20)]


def test_another_loop_is_refused(shared):
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(connected(shared.url))

    async def main():
        with pytest.raises(RuntimeError, match="another event loop"):
            await client.run(["true"])
    go(main)
    assert loop.run_until_complete(client.run(["true"])).code == 0
    loop.run_until_complete(client.close())
    loop.close()


def test_many_tasks_share_a_client(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            done = await asyncio.gather(*(client.run(["echo", str(i)]) for i in range(30)))
            assert [d.text for d in done] == [f"{i}\n" for i in range(30)]
    go(main)


# -- the garbage collector --

def test_a_forgotten_process_is_terminated(shared):
    async def main():
        async with execserver.connect(shared.url) as client:
            token = procfs.mark()
            process = await client.start(["sleep", token])
            procfs.wait_marked(token)
            process.itself = process  # a cycle: only the collector finds it
            del process
            await asyncio.to_thread(gc.collect)  # in another thread
            await asyncio.to_thread(procfs.wait_marked, token, 0)
    go(main)


def test_a_forgotten_client_is_freed(shared):
    async def main():
        client = await execserver.connect(shared.url)
        fd = client._driver.fd
        name = os.readlink(f"/proc/self/fd/{fd}")
        assert "eventpoll" in name
        client.itself = client
        del client
        await asyncio.to_thread(gc.collect)
        while os.path.exists(f"/proc/self/fd/{fd}") and "eventpoll" in os.readlink(
                f"/proc/self/fd/{fd}"):
            await asyncio.sleep(0)
    go(main)


def test_a_client_may_outlive_its_loop(shared):
    client = asyncio.run(connected(shared.url))
    fd = client._driver.fd
    assert os.path.exists(f"/proc/self/fd/{fd}")
    del client
    gc.collect()
    assert not os.path.exists(f"/proc/self/fd/{fd}")


# -- callbacks --

def test_an_exception_of_a_listener_goes_to_the_loop(shared):
    seen = []

    def listener(_):
        raise KeyError("mine")

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: seen.append(context["exception"]))
        async with execserver.connect(shared.url) as client:
            client.on_state = listener
            await client.close()
    go(main)
    assert seen and isinstance(seen[0], KeyError)


def test_a_callback_may_free_its_client(shared):
    async def main():
        client = await execserver.connect(shared.url)
        client.on_state = lambda _: client.free()
        try:
            await client.close()
        except errors.Canceled:
            pass
        assert client.state == State.CLOSED
    go(main)


def test_lines_for_a_log(shared):
    lines = []

    async def main():
        async with execserver.connect(shared.url) as client:
            client.on_log = lambda level, line: lines.append((level, line))
            await client.run(["true"])
    go(main)
    assert all(isinstance(line, str) and "\n" not in line for _, line in lines)


# -- fork --

SCRIPT = """
import asyncio, os, sys
import execserver
async def main(url):
    async with execserver.connect(url) as client:
        process = await client.start(["cat"], stdin=True)
        pid = os.fork()
        if pid == 0:
            try:
                client.state
            except RuntimeError as error:
                print(error, flush=True)
            process.free()
            client.free()
            del process, client
            sys.exit(0) if sys.argv[2] == "exit" else os._exit(0)
        os.waitpid(pid, 0)
        await process.close_stdin()
        print("code", (await process.wait()).code)
asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("way", ["exit", "_exit"])
def test_a_child_of_fork_cannot_use_it_and_disturbs_nothing(shared, way):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, shared.url, way], capture_output=True, text=True,
        check=False, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    lines = done.stdout.splitlines()
    assert lines[0] == "a client cannot be used in a child of fork()", done.stderr
    assert lines[-1] == "code 0", done.stderr

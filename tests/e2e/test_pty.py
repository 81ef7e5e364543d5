"""Pseudo-terminals."""

import pytest

from harness import procfs


def run(client, script, **options):
    return client.run(script, tty=True, **options).output().decode()


def test_stream_name(client):
    process = client.run("echo out; echo err >&2", tty=True)
    assert {kind for _, kind, data in process.events if isinstance(data, bytes)} == {"pty"}
    assert process.output("pty") == b"out\r\nerr\r\n"
    assert {c["stream"] for c in client.read(process)["chunks"]} == {"pty"}


def test_pipe_stdin_is_ignored(client):
    for value in (False, True):
        process = client.start("read a; echo got:$a", tty=True, pipeStdin=value)
        assert client.write(process, "x\n") == {"status": "accepted"}
        client.wait_closed(process)
        assert b"got:x\r\n" in process.output()


def test_size(client):
    assert run(client, "stty size") == "24 80\r\n"


def test_terminal_settings(client):
    words = run(client, "stty -a").replace(";", "").split()
    for word in ("icrnl", "ixon", "opost", "onlcr", "isig", "icanon", "iexten", "echo", "echoe",
                 "echok", "echoctl", "echoke", "-iutf8", "38400"):
        assert word in words, word
    text = " ".join(words)
    for key in ("eof = ^D", "intr = ^C", "quit = ^\\", "susp = ^Z", "erase = ^?"):
        assert key in text, key


def test_controlling_terminal(client):
    text = run(client, "tty; ps -o tty= -p $$ | tr -d ' '; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] "
                       "&& echo all; : </dev/tty && echo open")
    first, second, *rest = text.split()
    assert first == f"/dev/{second}" and rest == ["all", "open"]


def test_foreground_group(client):
    # pgrp and tpgid of the leader.
    text = run(client, "cut -d' ' -f5,8 /proc/$$/stat")
    group, foreground = text.split()
    assert group == foreground


def test_echo(client):
    process = client.start("echo ready; read a; echo \"<$a>\"", tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, "hello\n")
    client.wait_closed(process)
    assert process.output() == b"ready\r\nhello\r\n<hello>\r\n"


def test_interactive_exchange(client):
    process = client.start("stty -echo; echo ready; while read a; do echo \"<$a>\"; done", tty=True)
    client.wait_output(process, "ready\r\n")
    for i in range(30):
        client.write(process, f"{i}\n")
        client.wait_output(process, f"<{i}>\r\n")
    client.write(process, "\x04")
    client.wait_closed(process)
    assert process.exit_code is not None


def test_end_of_file(client):
    process = client.start("stty -echo; echo ready; cat; echo done", tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, "text\n\x04")
    client.wait_closed(process)
    assert process.output() == b"ready\r\ntext\r\ndone\r\n"


def test_end_of_file_in_a_line(client):
    process = client.start("stty -echo; echo ready; cat; echo done", tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, "text\x04\x04")
    client.wait_closed(process)
    assert process.output() == b"ready\r\ntextdone\r\n"


@pytest.mark.parametrize("byte, number", [("\x03", 2), ("\x1c", 3)])
def test_control_characters(client, byte, number):
    process = client.start("ulimit -c 0; echo ready; exec sleep 1000", tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, byte)
    client.wait_closed(process)
    assert process.exit_code == 128 + number


JOB = "sh -c 'trap \"echo job; exit 7\" INT; echo ready; while :; do sleep 0.05; done'"


def test_control_c_reaches_the_foreground_group_only(client):
    """The shell that made the job has no trap and would die."""
    process = client.start(["/bin/bash", "-c", f"set -m; {JOB}; echo status:$?"], tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, "\x03")
    client.wait_closed(process)
    assert process.output().endswith(b"job\r\nstatus:7\r\n")


def test_signal_reaches_the_group_of_the_leader_only(client):
    process = client.start(["/bin/bash", "-c", f"trap 'echo shell' INT; set -m; {JOB}"], tty=True)
    client.wait_output(process, "ready\r\n")
    assert client.interrupt(process) == {}
    client.barrier()
    assert b"job" not in process.output()
    client.write(process, "\x03")
    client.wait_closed(process)
    assert b"job\r\n" in process.output()


def test_leader_exit_is_not_the_close(client, tmp_path):
    gate = tmp_path / "gate"
    process = client.start(
        f"trap '' HUP; (while [ ! -e {gate} ]; do sleep 0.02; done; echo late) & exit 0", tty=True)
    client.wait_exited(process)
    assert process.closed is None
    gate.touch()
    client.wait_closed(process)
    assert process.output().endswith(b"late\r\n")


def test_leader_exit_hangs_up_the_others(client):
    token = procfs.mark()
    process = client.start(f"sleep {token} & exit 0", tty=True)
    client.wait_closed(process)
    assert process.exit_code == 0
    assert procfs.wait_marked(token, 0) == []


def test_output_before_exit_is_complete(client):
    for size in (1, 4095, 4096, 4097, 100000, 300000):
        process = client.run(f"head -c {size} /dev/zero | tr '\\0' x", tty=True)
        assert process.output() == b"x" * size
        assert [kind for _, kind, _ in process.events[-2:]] == ["exited", "closed"]


def test_large_paste(client):
    """More than the line discipline takes at once arrives in order."""
    total = 200000
    process = client.start(f"stty raw -echo; echo ready; head -c {total} | cksum", tty=True)
    client.wait_output(process, "ready")
    data = bytes(32 + i % 90 for i in range(total))
    for start in range(0, total, 10000):
        assert client.write(process, data[start:start + 10000]) == {"status": "accepted"}
    client.wait_closed(process)
    check = client.start(f"head -c {total} | cksum", pipeStdin=True)
    client.write(check, data)
    client.wait_closed(check)
    assert process.output().split()[-2:] == check.output().split()[:2]


def test_unread_input_does_not_block_others(client):
    process = client.start("stty raw -echo; echo ready; sleep 1000", tty=True)
    client.wait_output(process, "ready")
    for _ in range(300):
        client.send("process/write", {"processId": process.name, "chunk": "eHh4" * 2000})
    client.sync()
    assert client.run("echo free").output() == b"free\n"
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)


def test_canonical_line_is_cut_by_the_kernel(client):
    process = client.start("stty -echo; echo ready; read a; echo ${#a}", tty=True)
    client.wait_output(process, "ready\r\n")
    client.write(process, "x" * 5000 + "\n")
    client.wait_closed(process)
    assert process.output().split()[-1] == b"4095"


def test_server_keeps_no_slave(server):
    client = server.client()
    before = server.fds()
    process = client.start("sleep 1000", tty=True)
    client.sync()
    assert not any("/dev/pts/" in target for target in server.fd_targets())
    client.terminate(process)
    client.wait_closed(process)
    server.wait_fds(before + 1)


def test_input_after_the_master_side_hangs_up(client):
    process = client.start("sleep 1000", tty=True)
    client.terminate(process)
    client.wait_closed(process)
    assert client.error("process/write", {"processId": process.name, "chunk": "eA=="}) == (
        -32603, "failed to write to process stdin")


def test_many_terminals(client):
    processes = [client.start("read a; echo $a", tty=True) for _ in range(40)]
    for i, process in enumerate(processes):
        client.write(process, f"n{i}\n")
    for i, process in enumerate(processes):
        client.wait_closed(process)
        assert process.output().endswith(b"n%d\r\n" % i)


def test_a_flood_is_passed_on_in_small_chunks(client):
    """Nobody waits until a large chunk is complete, neither its reader nor the command."""
    chunks = []
    client.wait_closed(client.start(
        "stty raw; head -c 1000000 /dev/zero", tty=True,
        sink=lambda _seq, _stream, data: chunks.append(len(data))))
    assert sum(chunks) == 1000000
    assert sum(chunks) / len(chunks) < 32768


def test_a_large_piece_is_passed_on_while_nothing_follows(client):
    process = client.start("stty raw -echo; head -c 3000 /dev/zero | tr '\\0' x; read a; echo $a",
                           tty=True)
    client.wait_output(process, "x" * 3000)
    assert client.run("echo free").output() == b"free\n"
    client.write(process, "end\n")
    client.wait_closed(process)
    assert process.output() == b"x" * 3000 + b"end\n"


def test_a_flood_is_terminated(client):
    process = client.start("stty raw; exec cat /dev/zero", tty=True, sink=lambda *_: None)
    client.wait(lambda: process.next_seq > 200, "a flood")
    assert client.run("echo free").output() == b"free\n"
    assert client.terminate(process) == {"running": True}
    client.wait_closed(process)
    assert process.exit_code == 137

"""The example session of the published interface of April 2026, as it stands."""

import json

from harness.rpc import unb64

START = {
    "processId": "proc-1",
    "argv": ["bash", "-lc",
             "printf 'ready\\n'; while IFS= read -r line; do printf 'echo:%s\\n' \"$line\"; done"],
    "cwd": "/tmp",
    "env": {"PATH": "/usr/bin:/bin"},
    "tty": True,
    "pipeStdin": False,
    "arg0": None,
}


def test_example_session(server):
    client = server.connect()
    result = client.call("initialize", {"clientName": "example-client"})
    assert isinstance(result["sessionId"], str)
    client.notify("initialized", {})
    started = client.call("process/start", START)
    assert started["processId"] == "proc-1"
    process = client.processes["proc-1"]
    client.wait_output(process, "ready\r\n")
    assert client.call("process/write", {"processId": "proc-1", "chunk": "aGVsbG8K"}) == {
        "status": "accepted"}
    client.wait_output(process, "echo:hello\r\n")
    read = client.call("process/read",
                       {"processId": "proc-1", "afterSeq": None, "maxBytes": 65536, "waitMs": 1000})
    assert b"ready" in b"".join(unb64(c["chunk"]) for c in read["chunks"])
    assert all(c["stream"] == "pty" for c in read["chunks"])
    assert client.call("process/terminate", {"processId": "proc-1"}) == {"running": True}
    client.wait_closed(process)
    assert process.exit_code == 137
    assert process.closed["seq"] == process.exited["seq"] + 1


def test_jsonrpc_member_is_ignored_on_input(server):
    client = server.connect()
    client.send_raw(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                                "params": {"clientName": "example-client"}}))
    answer = client.answer(1)
    assert "sessionId" in answer["result"]
    assert "jsonrpc" not in answer

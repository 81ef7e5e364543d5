"""Lines, the handshake, the revision without one, and the methods."""

import json

import pytest

from peer import META, MODERN

TOOLS = ("shell", "write_stdin")


@pytest.fixture
def server(start):
    return start("--intercept", "off")


@pytest.mark.parametrize("asked, answered", [
    ("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
    ("2025-11-25", "2025-11-25"), ("2024-10-07", "2025-11-25"), ("", "2025-11-25"),
    ("9999-01-01", "2025-11-25")])
def test_revisions(server, asked, answered):
    result = server.hello(asked)
    assert result["protocolVersion"] == answered
    assert result["serverInfo"]["name"] == "exec-server"
    assert set(result["capabilities"]["experimental"]) == {"codex/sandbox-state",
                                                           "codex/sandbox-state-meta"}


def test_requests_before_the_handshake(server):
    assert server.request("ping")["result"] == {}
    assert server.request("tools/list")["error"]["code"] == -32600
    assert server.request("initialize", {})["error"]["code"] == -32602
    server.hello()
    assert [tool["name"] for tool in server.request("tools/list")["result"]["tools"]] == [*TOOLS]
    server.hello()  # again


def test_tools_are_small_and_plain(server):
    server.hello()
    tools = server.request("tools/list")["result"]["tools"]
    assert len(json.dumps(tools, separators=(",", ":"))) < 4096
    for tool in tools:
        assert tool["annotations"]["destructiveHint"] is True
        assert "nullable" not in json.dumps(tool) and "format" not in json.dumps(tool)
        assert tool["outputSchema"]["required"] == ["exit_code", "output", "duration", "timed_out"]


@pytest.mark.parametrize("line, code", [
    ("not json", -32700), ('{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', -32700), ("[" * 200 + "]" * 200, -32700),
    ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), ("5", -32600), ("{}", -32600),
    ('{"id":1,"method":"ping"}', -32600), ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1}', -32600), ('{"jsonrpc":"2.0","id":1,"method":5}', -32600)])
def test_bad_lines_are_answered_and_survived(server, line, code):
    server.line(line)
    error = server.other()
    assert (error["id"], error["error"]["code"]) == (None, code)
    assert server.request("ping")["result"] == {}


def test_what_is_ignored(server):
    server.hello()
    for line in ("", "  ", '{"jsonrpc":"2.0","id":906,"result":{}}',
                 '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}',
                 '{"jsonrpc":"2.0","method":"notifications/bogus"}',
                 '{"jsonrpc":"2.0","id":null,"method":"ping"}',
                 '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
                 '{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}'):
        server.line(line)
    assert server.request("ping")["result"] == {}
    assert server.others.empty()


def test_ids_keep_their_type(server):
    for number in ("text", "1", 1, -5, 9223372036854775807, 'quote" \\ \u20ac'):
        server.send("ping", id=number)
        assert server.answer(number)["id"] == number


def test_a_line_may_end_with_a_carriage_return(server):
    server.line('{"jsonrpc":"2.0","id":1,"method":"ping"}\r')
    assert server.answer(1)["result"] == {}


def test_a_last_line_without_a_newline(server):
    server.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert server.close() == 0
    assert server.answer(1)["result"] == {}


def test_a_burst_of_lines(server):
    server.hello()
    count = 5000
    server.line(b"".join(b'{"jsonrpc":"2.0","id":"b%d","method":"ping"}\n' % i
                         for i in range(count)))
    for i in range(count):
        assert server.answer(f"b{i}")["result"] == {}


def test_parallel_calls(server):
    server.hello(full=True)
    numbers = [server.call(f"echo {i}") for i in range(100)]
    assert [server.result(n)["output"] for n in numbers] == [f"{i}\n" for i in range(100)]


def test_more_calls_than_there_is_room_for(server):
    server.hello(full=True)
    numbers = [server.call("sleep 1000", timeout_ms=1000000) for _ in range(256)]
    refused = server.answer(server.call("echo no"))["result"]
    assert refused["isError"] and "256" in refused["content"][0]["text"]
    for number in numbers:
        server.send("notifications/cancelled", {"requestId": number})
    for _ in range(1000):
        answer = server.answer(server.call("echo yes"))["result"]
        if not answer["isError"]:
            break
    assert answer["structuredContent"]["output"] == "yes\n"


def test_other_methods(server):
    server.hello()
    for method, result in (("resources/list", {"resources": []}), ("prompts/list", {"prompts": []}),
                           ("resources/templates/list", {"resourceTemplates": []}),
                           ("completion/complete", {"completion": {"values": []}})):
        assert server.request(method)["result"] == result
    for method in ("foo/bar", "resources/read", "logging/setLevel", "tasks/list"):
        error = server.request(method)["error"]
        assert (error["code"], error["message"]) == (-32601, method)


@pytest.mark.parametrize("params, text", [
    (None, "tools/call needs params with a name"), ({}, "tools/call needs params with a name"),
    ({"name": "nope"}, "tool not found"), ({"name": "shell", "arguments": "x"},
                                           "arguments must be an object")])
def test_calls_without_shape(server, params, text):
    server.hello()
    error = server.request("tools/call", params)["error"]
    assert (error["code"], error["message"]) == (-32602, text)


@pytest.mark.parametrize("arguments, text", [
    ({}, "missing field `command`"), ({"command": 5}, "invalid type: integer `5`, expected a string"),
    ({"command": "", "timeout_ms": -1}, "invalid value: integer `-1`, expected u64"),
    ({"command": "", "timeout_ms": 1.5}, "invalid type: floating point `1.5`, expected u64"),
    ({"command": "", "timeout_ms": "5"}, 'invalid type: string "5", expected u64'),
    ({"command": "", "login": "no"}, 'invalid type: string "no", expected a boolean'),
    ({"command": "", "max_output_bytes": 0}, "max_output_bytes must be between 1 and 1048576")])
def test_bad_arguments_are_for_the_model(server, arguments, text):
    server.hello()
    result = server.request("tools/call", {"name": "shell", "arguments": arguments})["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == "failed to deserialize parameters: " + text


# -- 2026-07-28 --

def test_discover(server):
    result = server.answer(server.modern("server/discover"))["result"]
    assert result["resultType"] == "complete" and result["supportedVersions"] == [MODERN]
    assert result["_meta"][META + "serverInfo"]["name"] == "exec-server"
    assert result["ttlMs"] > 0 and result["cacheScope"] == "private"
    assert server.request("server/discover")["error"]["code"] == -32602


def test_modern_requests_beside_the_handshake(server):
    listed = server.answer(server.modern("tools/list"))["result"]
    assert listed["resultType"] == "complete" and listed["ttlMs"] > 0
    server.hello()
    assert "resultType" not in server.request("tools/list")["result"]
    done = server.answer(server.modern("tools/call", {
        "name": "shell", "arguments": {"command": "echo hi", "login": False}}))["result"]
    assert done["resultType"] == "complete"
    assert done["structuredContent"]["output"] == "hi\n"


def test_modern_metadata(server):
    version, capabilities = META + "protocolVersion", META + "clientCapabilities"
    error = server.request("tools/list", {"_meta": {version: MODERN}})["error"]
    assert error["code"] == -32602
    error = server.request("tools/list", {"_meta": {version: "2030-01-01", capabilities: {}}})
    assert error["error"] == {"code": -32022, "message": "Unsupported protocol version",
                              "data": {"supported": [MODERN], "requested": "2030-01-01"}}
    for method in ("initialize", "ping", "resources/list", "logging/setLevel"):
        assert server.answer(server.modern(method))["error"]["code"] == -32601


def test_subscriptions(server):
    number = server.modern("subscriptions/listen")
    told = server.other()
    assert told["method"] == "notifications/subscriptions/acknowledged"
    assert told["params"] == {"_meta": {META + "subscriptionId": number}, "notifications": {}}
    server.send("notifications/cancelled", {"requestId": number})
    assert server.request("ping")["result"] == {}

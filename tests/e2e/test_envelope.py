"""The JSON-RPC envelope: classification, fields, limits, malformed messages."""

import json

import pytest

PREFIX = "failed to parse websocket JSON-RPC message from exec-server websocket "
READY = {"status": "ready"}


def exchange(client, text):
    """All answers to a raw message; the connection must survive it."""
    client.send_raw(text)
    answers = []
    sentinel = client.send("process/read", {"processId": "sentinel"})
    while True:
        message = client.pump()
        assert message is not None, "no answer"
        if message.get("id") == sentinel:
            return answers
        answers.append(message)


@pytest.fixture
def counter(client):
    """A client whose own ids are far from those of the cases."""
    for _ in range(100):
        next(client.ids)
    return client


def one(client, text):
    answers = exchange(client, text)
    assert len(answers) == 1, answers
    return answers[0]


def malformed(client, text):
    answer = one(client, text)
    assert answer["id"] == -1 and answer["error"]["code"] == -32600
    host, port = client.transport.sock.getsockname()
    assert answer["error"]["message"].startswith(f"{PREFIX}{host}:{port}: ")


def status(tail="", ident="1"):
    return f'{{"id":{ident},"method":"environment/status"{tail}}}'


@pytest.mark.parametrize("text", [
    status(),
    '{"jsonrpc":"2.0",' + status()[1:],
    '{"jsonrpc":"1.0",' + status()[1:],
    '{"jsonrpc":2,' + status()[1:],
    '{"jsonrpc":null,' + status()[1:],
    status(',"params":null'),
    status(',"params":{}'),
    status(',"zzz":{"a":[1,2]}'),
    status(',"trace":null'),
    status(',"trace":{}'),
    status(',"trace":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",'
           '"tracestate":"a=b"}'),
    status(',"trace":{"traceparent":"junk"}'),
    status(',"trace":{"traceparent":null,"x":1}'),
    status(',"result":1'),
    status(',"error":{}'),
    status(',"x":18446744073709551616'),
    status(',"x":-9223372036854775809'),
    status(',"x":1' + "0" * 40),
    status(',"x":1e400'),
    status(',"x":1.5E+5'),
    status(',"x":-0.0'),
    status(',"x":{"$serde_json::private::Number":"12"}'),
    ' \t\r\n' + status() + ' \n',
    '{"method":"environment/status","id":1}',
    r'{"\u0069d":1,"method":"environment\/status"}',
    status(r',"x":"\u0000\ud83d\ude00\b\f\n\r\t\"\\\/"'),
])
def test_answered(counter, text):
    assert one(counter, text) == {"id": 1, "result": READY}


@pytest.mark.parametrize("ident, echoed", [
    ('"abc"', '"abc"'), ('""', '""'), (r'"é😀\n"', r'"é😀\n"'),
    (r'"\u00e9\ud83d\ude00\u0001\/"', '"é😀\\u0001/"'), (r'"a\u0000b"', r'"a\u0000b"'),
    (r'"\"\\"', r'"\"\\"'), ("-1", "-1"), ("0", "0"), ("-0", "0"), ("7", "7"),
    ("9223372036854775807", "9223372036854775807"),
    ("-9223372036854775808", "-9223372036854775808"),
])
def test_id_is_echoed(counter, ident, echoed):
    counter.send_raw(status(ident=ident))
    text = counter.transport.receive().decode()
    assert text == f'{{"id":{echoed},"result":{{"status":"ready"}}}}'


@pytest.mark.parametrize("ident", [
    "null", "1.5", "1.0", "1e0", "true", "[1]", "{}", "9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "123456789012345678901234567890",
])
def test_bad_id(counter, ident):
    malformed(counter, status(ident=ident))


@pytest.mark.parametrize("text", [
    "", " ", "not json", '{"id":1,', "{", "[", '"', "}", "5", '"x"', "null", "true", "[]",
    "[" + status() + "]", "{}", '{"foo":1}', '{"id":1}', '{"id":1,"params":{}}',
    status()[:-1] + ",}", "{'id':1}", '{"id":NaN,"method":"x"}', "\ufeff" + status(),
    status(" /*c*/"), status(',"x":01'), status(',"x":-'), status(',"x":.5'), status(',"x":1.'),
    status(',"x":1e'), status(',"x":+1'), status(',"x":0x1'), status(',"x":tru'),
    status(',"x":Infinity'), status(',"x":[1,]'), status(',"x":[1 2]'), status(',"x" 1'),
    status() + status(), status() + "x",
    '{"id":1,"method":5}', '{"id":1,"method":null}', '{"id":1,"method":["x"]}',
    status(',"trace":"x"'), status(',"trace":5'), status(',"trace":{"traceparent":5}'),
    status(r',"x":"\ud800"'), status(r',"x":"\ud800\u0041"'), status(r',"x":"\udc00"'),
    status(r',"x":"\x"'), status(r',"x":"\u12"'), status(',"x":"\x01"'), status(',"x":"\n"'),
    '{"id":1,"id":2,"method":"environment/status"}',
    '{"id":1,"method":"environment/status","method":"environment/status"}',
    status(',"x":1,"x":2'), status(',"x":{"a":1,"a":1}'), status(',"x":[[{"a":1,"a":1}]]'),
    status(r',"x":{"a":1,"\u0061":1}'),
    '{"id":1,"method":"process/terminate","params":{"processId":"a","processId":"b"}}',
    '{"id":1,"method":"x","params":{"env":{"A":"1","A":"2"}}}',
    '{"result":{}}', '{"error":{"code":-1,"message":"x"}}', '{"id":5,"error":{"code":-1}}',
    '{"id":5,"error":{"message":"x"}}', '{"id":5,"error":5}',
    '{"id":5,"error":{"code":"x","message":"x"}}', '{"id":5,"error":{"code":1.5,"message":"x"}}',
    '{"id":5,"error":{"code":1,"message":5}}', '{"id":null,"error":{"code":-1,"message":"x"}}',
    '{"id":null,"result":1}', '{"id":true,"result":1}',
])
def test_malformed(counter, text):
    malformed(counter, text)


def nested(depth):
    return status(',"x":' + "[" * depth + "]" * depth)


def test_depth(counter):
    assert one(counter, nested(126))["result"] == READY
    malformed(counter, nested(127))
    malformed(counter, nested(128))
    malformed(counter, nested(100000))
    malformed(counter, '{"a":' * 100000)
    malformed(counter, "[" * 1000000)


def test_depth_of_objects(counter):
    assert one(counter, status(',"x":' + '{"a":' * 126 + "1" + "}" * 126))["result"] == READY
    malformed(counter, status(',"x":' + '{"a":' * 127 + "1" + "}" * 127))


def with_values(count):
    """A request with exactly count JSON values: the root, id, method, x and its elements."""
    return status(',"x":[' + ",".join("1" * (count - 4)) + "]")


def test_number_of_values(counter):
    assert one(counter, with_values(262144))["result"] == READY
    malformed(counter, with_values(262145))
    malformed(counter, with_values(400000))
    members = ",".join(f'"k{i}":0' for i in range(262144 - 3))
    assert one(counter, status("," + members))["result"] == READY
    malformed(counter, status("," + members + ',"last":0'))


def test_many_distinct_keys_then_a_duplicate(counter):
    members = ",".join(f'"k{i}":0' for i in range(100000))
    assert one(counter, status("," + members))["result"] == READY
    malformed(counter, status("," + members + ',"k50000":0'))


@pytest.mark.parametrize("text", [
    '{"method":"foo"}', '{"method":"environment/status"}', '{"method":""}',
    '{"method":"$/cancelRequest","params":{"id":1}}',
    '{"method":"initialize","params":{"clientName":"x"}}',
    '{"method":"process/terminate","params":{"processId":"x"}}',
    '{"id":5,"result":{}}', '{"id":5,"result":null}', '{"id":"abc","result":{}}',
    '{"id":0,"result":{}}', '{"id":-1,"result":{}}',
    '{"id":5,"error":{"code":-1,"message":"x"}}',
    '{"id":5,"error":{"code":-1,"message":"x","data":[1]}}',
])
def test_stray_message(counter, text):
    answer = one(counter, text)
    assert answer["id"] == -1 and answer["error"]["code"] == -32600


@pytest.mark.parametrize("text", [
    '{"method":"initialized"}', '{"method":"initialized","params":null}',
    '{"method":"initialized","params":[1]}', '{"method":"initialized","params":"x"}',
    '{"method":"initialized","trace":5}',
])
def test_repeated_initialized(counter, text):
    assert exchange(counter, text) == []


@pytest.mark.parametrize("method", [
    "", "foo/bar", "a`b\n", "initialized", "Environment/status", "environment/status ", "é",
    "a\0b", "process/output", "x" * 200])
def test_unknown_method(counter, method):
    answer = one(counter, json.dumps({"id": 1, "method": method}))
    assert answer == {"error": {
        "code": -32601, "message": f"exec-server stub does not implement `{method}` yet"}, "id": 1}


@pytest.mark.parametrize("method", [
    "process/lists", "process/kill", "process/info", "process/close", "process/remove",
    "process/prewarm", "process/spawn", "process/writeStdin", "process/resizePty",
    "capabilities/loadDiscoveries", "network/policyRequest"])
def test_methods_that_do_not_exist(counter, method):
    assert counter.error(method, {"processId": "x"})[0] == -32601


@pytest.mark.parametrize("params, text", [
    ("[]", "invalid type: sequence, expected unit"),
    ('{"x":1}', "invalid type: map, expected unit"),
    ('"x"', 'invalid type: string "x", expected unit'),
    ("5", "invalid type: number, expected unit"),
    ("false", "invalid type: boolean `false`, expected unit"),
])
@pytest.mark.parametrize("method", ["environment/status", "environment/info"])
def test_params_of_a_method_without(counter, method, params, text):
    answer = one(counter, f'{{"id":1,"method":"{method}","params":{params}}}')
    assert answer == {"error": {"code": -32602, "message": text}, "id": 1}


@pytest.mark.parametrize("params, text", [
    ("null", "invalid type: null, expected struct TerminateParams"),
    ("{}", "missing field `processId`"),
    ('{"process_id":"p"}', "missing field `processId`"),
    ('{"processId":5}', "invalid type: number, expected a string"),
    ('{"processId":null}', "invalid type: null, expected a string"),
    ('{"processId":true}', "invalid type: boolean `true`, expected a string"),
    ('{"processId":[]}', "invalid type: sequence, expected a string"),
    ('{"processId":{}}', "invalid type: map, expected a string"),
    ('"p"', 'invalid type: string "p", expected struct TerminateParams'),
])
def test_params_that_do_not_decode(counter, params, text):
    answer = one(counter, f'{{"id":1,"method":"process/terminate","params":{params}}}')
    assert answer == {"error": {"code": -32602, "message": text}, "id": 1}


def test_missing_params(counter):
    answer = one(counter, '{"id":1,"method":"process/terminate"}')
    assert answer["error"] == {"code": -32602,
                               "message": "invalid type: null, expected struct TerminateParams"}


@pytest.mark.parametrize("params", ['[]', '["p"]', '["p",1]'])
def test_array_params_are_refused(counter, params):
    answer = one(counter, f'{{"id":1,"method":"process/terminate","params":{params}}}')
    assert answer["error"]["code"] == -32602


def test_unknown_members_are_ignored(counter):
    answer = one(counter, '{"id":1,"method":"process/terminate",'
                          '"params":{"processId":"p","zz":1,"modes":"x"}}')
    assert answer == {"id": 1, "result": {"running": False}}


def test_reused_ids_are_each_answered(counter):
    for _ in range(5):
        counter.send_raw(status())
    for _ in range(5):
        assert counter.answer(1) == {"id": 1, "result": READY}


def test_answers_are_compact_utf8(counter):
    counter.send_raw('{"id":1,"method":"é\\u0001\\"\\\\/\\u007f"}')
    text = counter.transport.receive().decode()
    assert text == ('{"error":{"code":-32601,"message":"exec-server stub does not implement '
                    '`é\\u0001\\"\\\\/\x7f` yet"},"id":1}')


def test_malformed_before_initialize(shared):
    client = shared.connect()
    client.send_raw("nonsense")
    answer = client.answer(-1)
    assert answer["error"]["message"].startswith(PREFIX)
    client.initialize()
    client.sync()
    client.close()

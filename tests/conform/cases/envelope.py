"""The JSON and JSON-RPC envelope: one message each on a connection of its own."""

from harness.case import case

S = '"method":"environment/status"'


def nested(depth):
    return '{"id":1,' + S + ',"x":' + "[" * depth + "]" * depth + "}"


def values(count):
    """A message of exactly `count` JSON values: the root, id, method, x and its elements."""
    return '{"id":1,' + S + ',"x":[' + ",".join("0" * (count - 4)) + "]}"


IDS = {
    "string": '"abc"', "empty": '""', "unicode": '"\\u00e9\\ud83d\\ude00\\n"', "raw": '"é😀"',
    "minus-one": "-1", "zero": "0", "minus-zero": "-0", "null": "null", "fraction": "1.5",
    "one-point-zero": "1.0", "exponent": "1e0", "i64-max": "9223372036854775807",
    "i64-max-plus-1": "9223372036854775808", "i64-min": "-9223372036854775808",
    "i64-min-minus-1": "-9223372036854775809", "u64-max": "18446744073709551615",
    "huge": "123456789012345678901234567890", "bool": "true", "array": "[1]", "object": "{}",
    "nul": '"a\\u0000b"', "lone-surrogate": '"\\ud800"', "raw-control": '"a\x01b"',
    "escapes": '"\\"\\\\\\/\\b\\f\\r\\t\\u007f\\u2028"', "low-surrogate-first": '"\\udc00\\ud800"',
}

MESSAGES = {
    # members beside the known ones
    "jsonrpc-2.0": '{"jsonrpc":"2.0","id":1,' + S + "}",
    "jsonrpc-1.0": '{"jsonrpc":"1.0","id":1,' + S + "}",
    "jsonrpc-number": '{"jsonrpc":2,"id":1,' + S + "}",
    "unknown-member": '{"id":1,' + S + ',"zzz":{"a":[1,2]}}',
    "method-and-result": '{"id":1,' + S + ',"result":1}',
    "method-and-error": '{"id":1,' + S + ',"error":{}}',
    "escaped-member-name": '{"\\u0069d":1,' + S + "}",
    # not a message
    "no-members": "{}", "unknown-members-only": '{"foo":1}', "array": "[]",
    "batch": '[{"id":1,' + S + "}]", "number": "5", "string": '"x"', "null": "null",
    "true": "true", "garbage": "not json", "truncated": '{"id":1,', "empty": "", "blanks": " \n ",
    "trailing-comma": '{"id":1,' + S + ",}", "single-quotes": "{'id':1}",
    "nan": '{"id":NaN,"method":"x"}', "comment": '{"id":1 /*c*/,' + S + "}",
    "byte-order-mark": '\ufeff{"id":1,' + S + "}", "two-documents": '{"id":1,' + S + "}" * 2,
    "padded": ' \n\t{"id":1,' + S + "}\r\n ",
    # method
    "method-number": '{"id":1,"method":5}', "method-null": '{"id":1,"method":null}',
    "method-empty": '{"id":1,"method":""}', "method-unknown": '{"id":1,"method":"foo/bar"}',
    "method-odd-characters": '{"id":1,"method":"a`b\\n\\u0000é"}',
    "method-case": '{"id":1,"method":"Environment/Status"}',
    # params of a method without params
    "params-null": '{"id":1,' + S + ',"params":null}',
    "params-{}": '{"id":1,' + S + ',"params":{}}',
    "params-[]": '{"id":1,' + S + ',"params":[]}',
    "params-{x}": '{"id":1,' + S + ',"params":{"x":1}}',
    "params-string": '{"id":1,' + S + ',"params":"x"}',
    "params-number": '{"id":1,' + S + ',"params":5}',
    "params-false": '{"id":1,' + S + ',"params":false}',
    # duplicate members
    "duplicate-id": '{"id":1,"id":2,' + S + "}",
    "duplicate-unknown": '{"id":1,' + S + ',"x":1,"x":2}',
    "duplicate-escaped": '{"id":1,' + S + ',"x":1,"\\u0078":2}',
    "duplicate-deep": '{"id":1,' + S + ',"x":[{"y":{"z":1,"z":1}}]}',
    "duplicate-in-params": '{"id":1,"method":"process/terminate",'
                           '"params":{"processId":"a","processId":"b"}}',
    "same-name-in-siblings": '{"id":1,' + S + ',"x":[{"y":1},{"y":1}]}',
    # trace
    "trace": '{"id":1,' + S + ',"trace":{"traceparent":'
             '"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b"}}',
    "trace-null": '{"id":1,' + S + ',"trace":null}', "trace-{}": '{"id":1,' + S + ',"trace":{}}',
    "trace-string": '{"id":1,' + S + ',"trace":"x"}',
    "trace-array": '{"id":1,' + S + ',"trace":[]}',
    "trace-false": '{"id":1,' + S + ',"trace":false}',
    "trace-bad-parent": '{"id":1,' + S + ',"trace":{"traceparent":"junk"}}',
    "trace-null-parent": '{"id":1,' + S + ',"trace":{"traceparent":null,"tracestate":null}}',
    "trace-number-parent": '{"id":1,' + S + ',"trace":{"traceparent":5}}',
    "trace-number-state": '{"id":1,' + S + ',"trace":{"tracestate":5}}',
    "trace-unknown-member": '{"id":1,' + S + ',"trace":{"x":1}}',
    # limits
    "depth-127": nested(126), "depth-128": nested(127), "depth-129": nested(128),
    "depth-5001": nested(5000), "values-262144": values(262144), "values-262145": values(262145),
    # numbers in ignored places
    "number-1e400": '{"id":1,' + S + ',"x":1e400}',
    "number-2^64": '{"id":1,' + S + ',"x":18446744073709551616}',
    "number-10^40": '{"id":1,' + S + ',"x":1' + "0" * 40 + "}",
    "number-1E+5": '{"id":1,' + S + ',"x":1E+5}', "number-01": '{"id":1,' + S + ',"x":01}',
    "number-minus": '{"id":1,' + S + ',"x":-}', "number-.5": '{"id":1,' + S + ',"x":.5}',
    "number-1.": '{"id":1,' + S + ',"x":1.}', "number-1e": '{"id":1,' + S + ',"x":1e}',
    "number-+1": '{"id":1,' + S + ',"x":+1}', "number--01": '{"id":1,' + S + ',"x":-01}',
    "bad-escape": '{"id":1,' + S + ',"x":"\\q"}', "bad-literal": '{"id":1,' + S + ',"x":nul}',
    "number-token": '{"id":1,' + S + ',"x":{"$serde_json::private::Number":"12"}}',
    "raw-token": '{"id":1,' + S + ',"x":{"$serde_json::private::RawValue":"[1]"}}',
    # notifications
    "notification-unknown": '{"method":"foo"}',
    "notification-of-a-request": "{" + S + "}",
    "notification-cancel": '{"method":"$/cancelRequest","params":{"id":1}}',
    "notification-initialize": '{"method":"initialize","params":{"clientName":"x"}}',
    "initialized-again": '{"method":"initialized"}',
    "initialized-array": '{"method":"initialized","params":[1]}',
    "initialized-string": '{"method":"initialized","params":"x"}',
    "initialized-bad-trace": '{"method":"initialized","trace":5}',
    "initialized-as-request": '{"id":5,"method":"initialized"}',
    # responses
    "response-unknown": '{"id":5,"result":{}}', "response-string-id": '{"id":"abc","result":{}}',
    "response-null": '{"id":5,"result":null}', "response-no-id": '{"result":{}}',
    "response-null-id": '{"id":null,"result":{}}',
    "error-unknown": '{"id":5,"error":{"code":-1,"message":"x"}}',
    "error-data": '{"id":5,"error":{"code":-1,"message":"x","data":[1]}}',
    "error-no-message": '{"id":5,"error":{"code":-1}}',
    "error-no-id": '{"error":{"code":-1,"message":"x"}}',
    "error-string-code": '{"id":5,"error":{"code":"x","message":"x"}}',
    "error-null-id": '{"id":null,"error":{"code":-1,"message":"x"}}',
    "error-null": '{"id":5,"error":null}',
}
MESSAGES.update({f"id-{k}": '{"id":' + v + "," + S + "}" for k, v in IDS.items()})


def add(name, text):
    @case(name)
    async def one(t):
        c = await t.connect()
        t.see("sent", await c.exchange(text))


for _name, _text in MESSAGES.items():
    add(_name, _text)


@case("array-params")
async def array_params(t):
    """Positional parameters, an accident of the reference's decoder."""
    c = await t.connect()
    for text in ('"process/terminate","params":[]', '"process/terminate","params":["p"]',
                 '"process/terminate","params":["p",1]', '"process/read","params":["p",0,0,0]',
                 '"process/write","params":["p","","1"]',
                 '"process/signal","params":["p","interrupt"]', '"process/start","params":["p"]'):
        t.see(text, await c.exchange('{"id":1,"method":' + text + "}"))
    d = await t.open()
    t.see("initialize []", (await d.exchange('{"id":1,"method":"initialize","params":[]}')))
    answer = await d.call("initialize", ["x"])
    t.see('initialize ["x"]', answer if isinstance(answer, str) else "accepted")


@case("large-before-initialize")
async def large_first(t):
    """A message of 100 kB before the handshake."""
    c = await t.open()
    t.see("answer", await c.exchange('{"id":1,"method":"nope"' + " " * 100000 + "}"))


@case("long-id")
async def long_id(t):
    c = await t.connect()
    for size in (1 << 20, (1 << 20) + 1):
        seen = await c.exchange('{"id":"' + "i" * size + '",' + S + "}")
        t.see(f"{size} bytes", [[len(str(i)), text] for i, text in seen["answers"]])


@case("malformed-before-initialize")
async def malformed_first(t):
    c = await t.open()
    t.see("garbage", await c.exchange("junk"))
    t.see("batch", await c.exchange("[]"))
    await c.hello()
    t.see("usable", await c.call("environment/status"))


@case("order-of-answers")
async def order_of_answers(t):
    """Malformed and unknown messages keep their place between requests."""
    c = await t.connect()
    t.see("answers", await c.exchange(
        '{"id":1,"method":"process/read","params":{"processId":"a"}}', "junk",
        '{"id":2,"method":"nope"}', '{"id":3,"method":"process/read","params":{"processId":"b"}}',
        "[]", '{"id":4,"method":"process/terminate","params":{"processId":"c"}}'))

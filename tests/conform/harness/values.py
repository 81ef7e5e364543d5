"""Values for fields of requests: of every wrong type, at limits, and how they are sent."""

import json

from .peer import ABSENT, brief

WRONG = [None, True, False, 0, -1, 5, 1.5, "", "x", "é\n\"\\", [], [1], ["x"], {}, {"x": 1}]
NUMBERS = ["-0", "1.0", "1e2", "18446744073709551615", "18446744073709551616",
           "-9223372036854775809", "1e400", "10000000000000000000000000000000000000000"]
BASE64 = ["!!", "YQ", "YQ=", "YQ==", "YR==", "YWI=", "YWJ=", "YWJj", "_-8=", "YQ==\n", " YQ==",
          "YQ= =", "====", "=", "A", "AA", "AAA", "AAAAA", "YQ==YQ==", "Y=Q=", "é===",
          "YWJjYW\u0000=", "YQ===", "AAAA=AAA", "AA=A", "AAA\n", "A" * 8000 + "!"]


class Literal(float):
    """A number that is sent exactly as written."""

    def __new__(cls, text):
        self = super().__new__(cls, 0)
        self.text = text
        return self

    def __repr__(self):
        return self.text


def encode(value):
    """JSON text; members that are ABSENT are left out."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{encode(v)}" for k, v in value.items()
                              if v is not ABSENT) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    return json.dumps(value)


def label(value):
    text = "absent" if value is ABSENT else encode(value)
    return text if len(text) <= 60 else f"{text[:50]}... of {len(text)}"


async def ask(c, method, params):
    """One request whose params may hold literals and absent members."""
    c.next_id += 1
    text = "" if params is ABSENT else f',"params":{encode(params)}'
    c.send('{"id":%d,"method":"%s"%s}' % (c.next_id, method, text))
    return brief(await c.take(c.next_id))

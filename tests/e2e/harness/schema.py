"""doc/protocol.schema.json as a judge of messages."""

import itertools
import json
import os
import re

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from .settings import ROOT

PATH = ROOT / "doc" / "protocol.schema.json"

# Errors about the shape of params, which the schema must find too.
ABOUT_SHAPE = re.compile(
    r"^(missing field `|invalid type: |unknown variant `|unknown limit `|invalid number$"
    r"|limits\.\w+ must be between |rows and cols |size needs a PTY$|timeoutMs must be at least 1$"
    r"|direct and prepared stand alone|enforceManagedNetwork needs a sandbox$|writeId must not be"
    r"|argv must not be empty$|mode must be at most |sandbox and sandboxPolicy exclude"
    r"|(Invalid symbol|Invalid last symbol) \d+, offset|Invalid padding$|Invalid input length"
    r"|`.*` asks for a confinement )")


def is_integer(_checker, value):
    """Whether the server takes it for an integer: 1.0 is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_pattern(validator, pattern, value, _schema):
    """Matches as ECMAScript does: $ is the end of the text, even after a line end."""
    if validator.is_type(value, "string"):
        strict = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
        if not re.search(strict, value):
            yield ValidationError(f"{value[:80]!r} does not match {pattern!r}")


Strict = extend(Draft202012Validator, {"pattern": check_pattern},
                type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer))


def load():
    return json.loads(PATH.read_text())


class Schema:
    """The schema, or a relaxed variant. Its methods return a fault as a text, or None."""

    def __init__(self, document=None):
        self.document = document or load()
        self.validator = Strict(self.document)
        self.cached = {}

    def judge(self, value, schema):
        """Checks a value against a part of the document."""
        key = id(schema)
        if key not in self.cached:
            self.cached[key] = self.validator.evolve(schema=schema)
        for error in self.cached[key].iter_errors(value):
            place = "/".join(str(part) for part in error.absolute_path)
            return f"{place or 'it'}: {error.message[:300]}"
        return None

    def envelope(self, message, kind):
        return self.judge(message, self.document["$defs"][kind])

    def params(self, method, params):
        return self.judge(params, self.document["methods"][method]["params"])

    def result(self, method, result):
        return self.judge(result, self.document["methods"][method]["result"])

    def notification(self, method, params, sender):
        """A notification; also a request of the server to its client."""
        asked = self.document["serverRequests"].get(method)
        if asked is not None and sender == "server":
            return self.judge(params, asked["params"])
        known = self.document["notifications"].get(method)
        if known is None or known["from"] != sender:
            return f"the {sender} does not send it"
        return self.judge(params, known["params"])

    def answer(self, method, message):
        """An answer of the server to a request for `method` (None: unknown)."""
        if "error" not in message:
            found = self.envelope(message, "result_response")
            return found or (self.result(method, message["result"]) if method else None)
        return self.envelope(message, "cut_response" if "result" in message else "error_response")

    def request(self, method, params, error):
        """A request and the server's verdict: both must accept it, or both find its shape bad."""
        if method not in self.document["methods"]:
            return None
        found = self.params(method, params)
        if error is None:
            return found
        if error["code"] == -32602 and ABOUT_SHAPE.match(error["message"]) and found is None:
            return f"the server refuses it: {error['message']}"
        return None


class Sampler:
    """Judges the messages of a run: the first of each kind, then a few of them, or all."""

    FIRST, EACH = 8, 64
    LARGE, FIRST_LARGE = 65536, 2

    def __init__(self, every):
        self.every = every
        self.schema = Schema()
        self.counts = {}
        self.judged = itertools.count()

    def wants(self, size, *kind):
        if self.every:
            return True
        kind = (*kind, size > self.LARGE)
        seen = self.counts[kind] = self.counts.get(kind, 0) + 1
        if size > self.LARGE:
            return seen <= self.FIRST_LARGE
        return seen <= self.FIRST or seen % self.EACH == 0

    def answered(self, message, size, call):
        """Judges an answer and, if `call` is its (method, params, size), the request."""
        method, params, asked = call or (None, None, 0)
        error, result = message.get("error"), message.get("result")
        if self.wants(size, "answer", method, error and error.get("code"), shape(result)):
            self.report(self.schema.answer(method, message), "answer to", method, message)
        verdict = error and (error.get("code"), str(error.get("message"))[:20])
        if method and self.wants(asked, "request", method, verdict, shape(params)):
            self.report(self.schema.request(method, params, error), "request", method, params)

    def notified(self, message, size):
        method, params = message["method"], message.get("params")
        if self.wants(size, "notification", method, shape(params)):
            found = self.schema.envelope(message, "notification")
            found = found or self.schema.notification(method, params, "server")
            self.report(found, "notification", method, message)

    def report(self, found, what, method, value):
        next(self.judged)
        assert found is None, f"{what} {method} against the schema: {found}: {str(value)[:400]}"


def shape(value):
    """What tells kinds of messages apart at little cost: the members and their types."""
    if not isinstance(value, dict) or len(value) > 64:
        return type(value)
    return frozenset((name, type(v)) for name, v in value.items())


def sampler():
    """As E2E_SCHEMA says: some messages, all, or none."""
    wanted = os.environ.get("E2E_SCHEMA", "some")
    assert wanted in ("some", "all", "none"), f"E2E_SCHEMA={wanted}"
    return None if wanted == "none" else Sampler(wanted == "all")

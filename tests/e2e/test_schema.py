"""doc/protocol.schema.json: its own form, the tables of the tree, and recorded exchanges."""

import copy
import json
import re

import pytest
from jsonschema import Draft202012Validator

from harness import recordings
from harness.schema import Schema, load
from harness.settings import ROOT

SCHEMA = load()
REF = "#/$defs/"


def nodes(value, path=()):
    """Every object in the document, with its place."""
    if isinstance(value, dict):
        yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        if isinstance(child, (dict, list)):
            yield from nodes(child, (*path, key))


def stem(method):
    """The name of a method as the names of definitions have it."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", method.replace("/", "_")).lower()


# Its form.

def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


def test_no_name_stands_twice():
    def members(pairs):
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)
    json.loads((ROOT / "doc" / "protocol.schema.json").read_text(), object_pairs_hook=members)


def test_every_reference_leads_somewhere_and_every_definition_is_used():
    used = {node["$ref"] for _, node in nodes(SCHEMA) if "$ref" in node}
    assert all(ref.startswith(REF) for ref in used)
    assert {ref.removeprefix(REF) for ref in used} == set(SCHEMA["$defs"])


def test_names_of_definitions_follow_from_the_methods():
    for method, parts in [*SCHEMA["methods"].items(), *SCHEMA["serverRequests"].items()]:
        for part in ("params", "result"):
            assert parts[part] == {"$ref": f"{REF}{stem(method)}_{part}"}
    for method, parts in SCHEMA["notifications"].items():
        assert parts["params"] == {"$ref": f"{REF}{stem(method)}_params"}
        assert parts["from"] in ("client", "server")


def test_everything_with_a_name_has_a_description():
    for section in ("methods", "notifications", "serverRequests", "$defs"):
        for name, node in SCHEMA[section].items():
            assert set(node) == {"$ref"} or node.get("description", "").endswith("."), name


def emitted():
    """Definitions that results and notifications of the server reach."""
    roots = [parts["result"] for parts in SCHEMA["methods"].values()]
    roots += [parts["params"] for parts in SCHEMA["notifications"].values()
              if parts["from"] == "server"]
    roots += [parts["params"] for parts in SCHEMA["serverRequests"].values()]
    todo, found = [root["$ref"] for root in roots], {}
    while todo:
        ref = todo.pop()
        if ref not in found:
            found[ref] = SCHEMA["$defs"][ref.removeprefix(REF)]
            todo += [node["$ref"] for _, node in nodes(found[ref]) if "$ref" in node]
    return found


def test_what_the_server_sends_is_closed():
    """No object that the server sends has members that the schema does not name."""
    for ref, definition in emitted().items():
        for path, node in nodes(definition):
            if node.get("type") == "object":
                closed = node.get("additionalProperties") is False or node.get("maxProperties") == 0
                assert closed, (ref, path)


def test_extensions_name_capabilities():
    """An extension names the capability that announces it, or is true if none does."""
    known = SCHEMA["$defs"]["capabilities"]["properties"]
    named = {node["x-extension"] for _, node in nodes(SCHEMA) if "x-extension" in node} - {True}
    # Raw files over HTTP are no part of the JSON-RPC protocol.
    raw = {"httpFiles", "httpFilesAt"}
    assert named == {name for name, node in known.items() if "x-extension" in node} - raw


# The tables of the tree.

def test_methods_are_those_of_the_server():
    text = (ROOT / "src" / "app" / "methods.c").read_text()
    table = text[text.index("methods_table[] = {"):text.index("const size_t methods_count")]
    ours = table.index("/* Extensions. */")
    rows = [(row.group(1), row.start() > ours)
            for row in re.finditer(r'(?:\{|FS_METHOD\()"([\w/]+)"', table)]
    assert len(rows) > 8
    assert {name: "x-extension" in parts for name, parts in SCHEMA["methods"].items()} == dict(rows)


def test_notifications_are_those_of_the_server():
    """They come from notify_begin() and notify_event(), or are written as texts. Those to pages of
    the console are not for clients."""
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.c"))
                        if not {"client", "mcp"} & set(path.parts))
    sent = set(re.findall(r'notify_(?:begin|event)\([^"]*"([\w/]+)"', sources))
    sent |= set(re.findall(r'\{\\"method\\":\\"([\w/]+)\\"', sources))
    sent = {name for name in sent if not name.startswith("console/")}
    assert len(sent) > 3
    assert {name for name, parts in SCHEMA["notifications"].items()
            if parts["from"] == "server"} == sent


def document_rows():
    """Rows of PROTOCOL.md that begin with a method: the name, and whether it is an extension."""
    text = (ROOT / "PROTOCOL.md").read_text()
    more = text.index("Further methods **(extension)**"), text.index("### environmentInfo")
    sections = text.index("\n## Methods"), text.index("\n## Processes")
    for row in re.finditer(r"^\| `(initialize|(?:\w+/)+\w+)` ([^|]*)\|", text, re.MULTILINE):
        if sections[0] < row.start() < sections[1]:
            yield row.group(1), "extension" in row.group(2) or more[0] < row.start() < more[1]


def test_document_has_the_same_methods():
    known = {name: "x-extension" in parts
             for section in ("methods", "notifications") for name, parts in SCHEMA[section].items()}
    del known["initialized"]
    assert dict(document_rows()) == known


# Recorded exchanges of the reference. Each departure from the schema has a reason: a row of
# tests/conform/differences.json, or a text.

def without_extensions(schema):
    """The schema without what only our server must send."""
    for _, node in nodes(schema):
        members = node.get("properties", {})
        if "required" in node:
            node["required"] = [name for name in node["required"]
                                if not isinstance(members.get(name), dict)
                                or "x-extension" not in members[name]]


def with_its_environment(schema):
    """The reference tells more about itself."""
    for name in ("environment_info", "capabilities"):
        del schema["$defs"][name]["additionalProperties"]
        schema["$defs"][name]["required"] = []


RELAXED = {
    "environment-info": with_its_environment,
    "resources-member": without_extensions,
    "metadata-mode": without_extensions,
}


def has_array(params, error):
    """An array where the schema has an object, and the reference takes it."""
    def inside(value):
        if isinstance(value, dict):
            return any(name in ("options", "policyContext", "sandbox", "permissions", "file_system")
                       and isinstance(v, list) or inside(v) for name, v in value.items())
        return isinstance(value, list) and any(inside(v) for v in value)
    return error is None and (isinstance(params, list) or inside(params))


def lacks(field):
    text = f"missing field `{field}`"
    return lambda params, error: error is not None and error["message"] == text


def member(params, name):
    return params.get(name) if isinstance(params, dict) else None


EXCUSED = {
    "array-params": has_array,
    "enum-objects": lambda params, error:
        error is None and isinstance(member(params, "signal"), dict),
    "unknown-confinement": lambda params, error: error is None and (
        member(params, "enforceManagedNetwork") and not member(params, "sandbox")
        or "watchId" in params and member(params, "sandbox")),
    "optional-sandbox-level": lacks("windowsSandboxLevel"),
    "older-sandbox": lambda params, error:
        lacks("permissions")(params, error) or lacks("type")(params, error),
    "optional-write-id": lacks("writeId"),
    "signal-names": lambda params, error:
        error is not None and error["message"].endswith("expected `interrupt`"),
    "the reference ignores the members io and size, which are ours": lambda params, error:
        error is None and {"io", "size"} & set(params),
}

class Judge:
    """The relaxed schema, and which excuses served."""

    def __init__(self):
        document = copy.deepcopy(SCHEMA)
        for relax in RELAXED.values():
            relax(document)
        self.schema = Schema(document)
        self.judged = self.incomplete = self.foreign = 0
        self.used = set()
        self.faults = []

    def take(self, exchange):
        """Judges one message of the server and what it answers."""
        if exchange is None:
            self.incomplete += 1
            return
        message = exchange.message
        if exchange.notifies:
            self.notification(exchange, message)
            return
        known = self.schema.document["methods"]
        request = exchange.choose(lambda method: method in known and
                                  self.schema.answer(method, message) is None)
        if request and request["method"] not in known:
            self.foreign += 1
            return
        method = request and request["method"]
        self.count(exchange, self.schema.answer(method, message))
        if request:
            params, error = request.get("params"), message.get("error")
            found = self.schema.request(method, params, error)
            excuses = [why for why, fits in EXCUSED.items() if found and fits(params, error)]
            self.used.update(excuses)
            self.count(exchange, None if excuses else found, request)

    def notification(self, exchange, message):
        self.count(exchange, self.schema.notification(
            message["method"], message.get("params"), "server"))

    def count(self, exchange, found, request=None):
        self.judged += 1
        if found:
            what = str(request or exchange.message)[:300]
            self.faults.append(f"{exchange.where}: {found}: {what}")


def test_excuses_are_known_differences():
    rows = {row["id"] for row in json.loads(
        (ROOT / "tests" / "conform" / "differences.json").read_text())}
    reasons = {*RELAXED, *EXCUSED}
    assert {why for why in reasons if " " not in why} <= rows


@pytest.fixture(scope="module")
def judge():
    if not recordings.files():
        pytest.skip(f"{recordings.MISSING} in {recordings.PLACE}: set E2E_RECORDINGS")
    made = Judge()
    for path in recordings.files():
        for exchange in recordings.exchanges(path):
            made.take(exchange)
    return made


def test_recorded_exchanges_fit(judge):
    assert not judge.faults, "\n".join(judge.faults[:20])


def test_recorded_exchanges_are_judged(judge):
    """Nothing is passed over: a plain search counts as many messages of the server."""
    texts = [path.read_text(encoding="utf-8", errors="surrogateescape")
             for path in recordings.files()]
    there = sum(len(re.findall(r'"dir": ?"s2c", "msg":|"s2c": "', text)) for text in texts)
    print(f"{judge.judged} messages judged, {judge.incomplete} incomplete, {judge.foreign} foreign")
    assert there > 0 and judge.judged + judge.incomplete + judge.foreign >= there
    assert judge.incomplete + judge.foreign < there / 10


def test_every_excuse_serves(judge):
    assert judge.used == {*EXCUSED}

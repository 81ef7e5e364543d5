"""Environment of children: exact mode, policy, patterns, restricted names, metadata."""

import pytest

from harness.fleet import Fleet

BASE = {
    "EXEC_SERVER_LOG": "error",
    "PATH": "/usr/bin:/bin", "HOME": "/home/x", "LANG": "C", "USER": "u", "LOGNAME": "u",
    "SHELL": "/bin/zsh", "TMPDIR": "/tmp", "TEMP": "/t1", "TMP": "/t2", "LC_ALL": "C",
    "LC_CTYPE": "C", "TERM": "xterm", "Home": "mixed", "path": "lower", "FOO": "foo",
    "FOOBAR": "foobar", "API_KEY": "k", "monkey": "m", "my_secret": "s", "GH_TOKEN": "t",
    "PASSWORD": "p", "CODEX_THREAD_ID": "thread", "CODEX_SESSION_ID": "session",
    "NODE_REPL_AUTH_TOKEN": "n", "openai_identity_token_file": "i", "CODEX_TOOL_CALL_ID": "c",
    "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE": "false",
}
CORE = {"PATH", "HOME", "LANG", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "LC_ALL",
        "LC_CTYPE", "Home", "path"}
RESTRICTED = {"NODE_REPL_AUTH_TOKEN", "openai_identity_token_file", "CODEX_TOOL_CALL_ID",
              "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE"}
SECRET = {"API_KEY", "monkey", "my_secret", "GH_TOKEN"}
ALL = set(BASE) - RESTRICTED
ENV = "/usr/bin/env"


@pytest.fixture(scope="module")
def rich(nothing_left):  # pylint: disable=unused-argument
    """A server with a known environment."""
    fleet = Fleet()
    # HOME and LANG of the harness are replaced; nothing else comes from it.
    server = fleet.start(env=BASE)
    yield server
    fleet.finish()


@pytest.fixture
def client(rich):
    made = rich.client()
    yield made
    made.close()


def environ(client, **options):
    """The environment of a child, in the order it was given."""
    process = client.run([ENV, "-0"], **options)
    assert process.exit_code == 0
    pairs = [tuple(item.split("=", 1)) for item in process.output().decode().split("\0") if item]
    # Options of a sanitizer build belong to the run of the tests.
    return [(k, v) for k, v in pairs if not k.endswith("SAN_OPTIONS")]


def policy(inherit="all", ignore=True, exclude=(), put=None, only=()):
    return {"inherit": inherit, "ignoreDefaultExcludes": ignore, "exclude": list(exclude),
            "set": put or {}, "includeOnly": list(only)}


def names(client, env=None, **options):
    return {k for k, _ in environ(client, env=env or {}, envPolicy=policy(**options))}


def test_exact(client):
    env = {"B": "2", "A": "1", "a": "lower", "Z": "", "E": "é=x\ny"}
    assert environ(client, env=env) == sorted(env.items())


def test_empty(client):
    assert environ(client, env={}) == []


def test_odd_names(client):
    process = client.run([ENV, "-0"], env={"A=B": "ab", "": "cd"})
    assert set(process.output().split(b"\0")) == {b"A=B=ab", b"=cd", b""}


def test_inherit_all(client):
    assert dict(environ(client, env={}, envPolicy=policy())) == {
        k: v for k, v in BASE.items() if k in ALL}


def test_policy_result_is_sorted(client):
    given = environ(client, env={"MIDDLE": "x"}, envPolicy=policy())
    assert given == sorted(given)


def test_inherit_core(client):
    assert names(client, inherit="core") == CORE


def test_inherit_none(client):
    assert names(client, inherit="none") == set()
    assert environ(client, env={"A": "1"}, envPolicy=policy("none", put={"B": "2"})) == [
        ("A", "1"), ("B", "2")]


def test_default_excludes(client):
    assert names(client, ignore=False) == ALL - SECRET
    assert "PASSWORD" in names(client, ignore=False)


@pytest.mark.parametrize("pattern, gone", [
    ("FOO", {"FOO"}), ("foo", {"FOO"}), ("FOO*", {"FOO", "FOOBAR"}), ("*BAR", {"FOOBAR"}),
    ("*oo*", {"FOO", "FOOBAR"}), ("F?O", {"FOO"}), ("FOO?", set()), ("FOO???", {"FOOBAR"}),
    ("", set()), ("[FH]*", set()), ("F**R", {"FOOBAR"}), ("FOO\\*", set()), ("F", set()),
    ("*", ALL), ("**", ALL), ("?", set()), ("*e", {k for k in ALL if k[-1] in "eE"}),
    ("F*O*A*R", {"FOOBAR"}), ("F*Z", set()),
])
def test_exclude(client, pattern, gone):
    assert names(client, exclude=[pattern]) == ALL - gone


def test_set_may_bring_back_excluded_names(client):
    got = environ(client, env={}, envPolicy=policy(
        ignore=False, exclude=["FOO*"], put={"FOO": "new", "API_KEY": "again"}))
    assert dict(got)["FOO"] == "new" and dict(got)["API_KEY"] == "again"
    assert "FOOBAR" not in dict(got)


def test_include_only_filters_set_too(client):
    assert names(client, only=["FOO*", "home"], put={"FOOX": "1", "OTHER": "2"}) == {
        "FOO", "FOOBAR", "HOME", "Home", "FOOX"}


def test_include_only_with_an_empty_pattern(client):
    assert names(client, only=[""]) == set()


def test_overlay_is_not_filtered(client):
    got = dict(environ(client, env={"MY_TOKEN": "1", "FOO": "mine", "OTHER": "2"},
                       envPolicy=policy(ignore=False, exclude=["FOO"], only=["LANG"])))
    assert got == {"LANG": "C", "MY_TOKEN": "1", "FOO": "mine", "OTHER": "2"}


NEVER = ["CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN", "NODE_REPL_AUTH_TOKEN", "OPENAI_FEDERATION_RULE_ID",
         "OPENAI_IDENTITY_TOKEN_FILE", "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
         "CODEX_GUARDIAN_DECISIONS_API_KEY"]
EXACT = ["CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "CODEX_TOOL_CALL_ID"]


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("with_policy", [False, True])
def test_restricted_names(client, tty, with_policy):
    everything = dict.fromkeys(NEVER + EXACT + [n.lower() for n in NEVER + EXACT]
                               + [n.title() for n in NEVER], "x")
    extra = {"envPolicy": policy("none", put=everything)} if with_policy else {}
    process = client.run([ENV], env=everything, tty=tty, **extra)
    got = {line.split("=")[0] for line in process.output().decode().split()}
    # Two of the names are matched exactly.
    assert got - {"SHELL"} == {n.lower() for n in EXACT}


@pytest.mark.parametrize("field", ["inherit", "ignoreDefaultExcludes", "exclude", "set",
                                   "includeOnly"])
def test_policy_fields_are_required(client, field):
    broken = policy()
    del broken[field]
    assert client.start_error([ENV], envPolicy=broken) == (-32602, f"missing field `{field}`")


@pytest.mark.parametrize("field, value, text", [
    ("inherit", "ALL", "unknown variant `ALL`, expected one of `core`, `all`, `none`"),
    ("inherit", "", "unknown variant ``, expected one of `core`, `all`, `none`"),
    ("ignoreDefaultExcludes", "x", 'invalid type: string "x", expected a boolean'),
    ("exclude", None, "invalid type: null, expected a sequence"),
    ("exclude", [5], "invalid type: number, expected a string"),
    ("set", [], "invalid type: sequence, expected a map"),
    ("set", {"A": 1}, "invalid type: number, expected a string"),
    ("includeOnly", {}, "invalid type: map, expected a sequence"),
])
def test_policy_types(client, field, value, text):
    assert client.start_error([ENV], envPolicy={**policy(), field: value}) == (-32602, text)


def test_policy_enum_as_an_object_is_refused(client):
    assert client.start_error([ENV], envPolicy={**policy(), "inherit": {"all": None}})[0] == -32602


def test_policy_extra_fields_are_ignored(client):
    assert environ(client, env={}, envPolicy={**policy("none"), "x": 1}) == []


def test_lookup_uses_the_final_path(client):
    process = client.run(["env"], env={}, envPolicy=policy("none", put={"PATH": "/usr/bin"}))
    assert process.output() == b"PATH=/usr/bin\n"


UUID = "0123abcd-4567-89ab-cdef-0123456789ab"


@pytest.mark.parametrize("thread", [
    UUID, UUID.upper(), UUID.replace("-", ""), "{" + UUID + "}", "urn:uuid:" + UUID])
@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("with_policy", [False, True])
def test_metadata(client, thread, tty, with_policy):
    extra = {"envPolicy": policy("none")} if with_policy else {}
    process = client.run(
        [ENV], tty=tty, metadata={"threadId": thread, "toolCallId": "call 1"},
        env={"CODEX_THREAD_ID": "old", "CODEX_TOOL_CALL_ID": "old"}, **extra)
    got = dict(line.split("=", 1) for line in process.output().decode().splitlines())
    got.pop("SHELL", None)
    assert got == {"CODEX_THREAD_ID": UUID, "CODEX_TOOL_CALL_ID": "call 1"}


@pytest.mark.parametrize("metadata", [{}, {"threadId": None}, {"toolCallId": "call 1"}])
@pytest.mark.parametrize("source", ["env", "set", "inherited"])
def test_metadata_without_a_thread(client, metadata, source):
    """Who sends metadata says all there is: a thread of somebody else is not passed on."""
    inherit = "all" if source == "inherited" else "none"
    names = {"CODEX_THREAD_ID": "old", "codex_thread_id": "kept"}
    policy = {"inherit": inherit, "ignoreDefaultExcludes": True, "exclude": [],
              "set": names if source == "set" else {}, "includeOnly": ["CODEX_T*"]}
    got = dict(environ(client, env=names if source == "env" else {}, envPolicy=policy,
                       metadata=metadata))
    assert "CODEX_THREAD_ID" not in got
    assert got.get("codex_thread_id") == (None if source == "inherited" else "kept")
    without = dict(environ(client, env=names if source == "env" else {}, envPolicy=policy))
    assert without["CODEX_THREAD_ID"]


@pytest.mark.parametrize("pattern, name, same", [
    ("é", "É", True), ("straße*", "STRAẞE_1", True), ("ж?", "Жé", True), ("\u212a", "k", True),
    ("*\U00010400", "x\U00010428", True), ("ǅ", "Ǆ", True), ("\ua7ce", "\ua7cf", True),
    ("ς", "Σ", False), ("İ", "i", False), ("ß", "SS", False), ("é", "e\u0301", False)])
def test_patterns_ignore_case_beyond_ascii(client, pattern, name, same):
    policy = {"inherit": "none", "ignoreDefaultExcludes": True, "exclude": [],
              "set": {name: "1"}, "includeOnly": [pattern]}
    assert dict(environ(client, env={}, envPolicy=policy)) == ({name: "1"} if same else {})


@pytest.mark.parametrize("metadata, expected", [
    (None, {}), ({}, {}), ({"threadId": None, "toolCallId": None}, {}), ({"other": 1}, {}),
    ({"toolCallId": ""}, {"CODEX_TOOL_CALL_ID": ""}), ({"toolCallId": "a\0b"}, {}),
    ({"toolCallId": "x" * 5000}, {"CODEX_TOOL_CALL_ID": "x" * 5000}),
])
def test_metadata_values(client, metadata, expected):
    assert dict(environ(client, env={}, metadata=metadata)) == expected


@pytest.mark.parametrize("thread", ["", "x", UUID[:-1], UUID + "0", UUID.replace("-", "_"),
                                    "{" + UUID, "urn:uuid:x", "URN:UUID:" + UUID,
                                    "{" + UUID.replace("-", "") + "}"])
def test_bad_thread_id(client, thread):
    assert client.start_error([ENV], metadata={"threadId": thread})[0] == -32602


@pytest.mark.parametrize("metadata, text", [
    ({"threadId": 5}, None), ({"toolCallId": 5}, "invalid type: number, expected a string")])
def test_bad_metadata_types(client, metadata, text):
    code, message = client.start_error([ENV], metadata=metadata)
    assert code == -32602
    assert text is None or message == text


def test_shell_is_added_for_a_terminal(client):
    process = client.run([ENV], env={"A": "1"}, tty=True)
    got = dict(line.split("=", 1) for line in process.output().decode().splitlines())
    assert set(got) == {"A", "SHELL"}
    # Of the passwd entry, not of the server's environment.
    assert got["SHELL"] != BASE["SHELL"]


def test_shell_is_kept_for_a_terminal(client):
    process = client.run([ENV], env={"SHELL": "/mine"}, tty=True)
    assert process.output() == b"SHELL=/mine\r\n"
    process = client.run([ENV], env={}, tty=True, envPolicy=policy("core", only=["SHELL"]))
    assert process.output() == b"SHELL=/bin/zsh\r\n"


def test_variable_that_is_not_utf8(fleet):
    server = fleet.start(env={b"BAD": b"\xff\xfe", b"\xff": b"x", b"GOOD": b"1"})
    client = server.client()
    for inherit in ("all", "core", "none"):
        got = dict(environ(client, env={}, envPolicy=policy(inherit)))
        assert "BAD" not in got
        assert ("GOOD" in got) == (inherit == "all")
    client.sync()


def test_large_environment(client):
    env = {f"V{i:04}": "x" * 100 for i in range(5000)}
    assert dict(environ(client, env=env)) == env

"""The console: what a page sees, and what it may do (PROTOCOL.md, "Console")."""

import json

import pytest

from harness.console import Console, settled, write_page
from harness.fleet import Fleet
from harness.rpc import RpcError, unb64
from harness.server import run
from harness.waiting import until
from harness.ws import Closed

ONLY_LOOK = -32600, "the console may only look"
UNKNOWN = -32001, "the console does not know this token"


@pytest.fixture(scope="module")
def shared(nothing_left, tmp_path_factory):  # pylint: disable=unused-argument
    made = Fleet()
    console = Console(made, tmp_path_factory.mktemp("console"), "--console-control",
                      "--closed-retention", "3600")
    first = console.page()
    console.secret = first.secret
    yield console
    made.finish()


@pytest.fixture
def owner(shared):
    made = shared.server.client()
    yield made
    made.close()


@pytest.fixture
def page(shared):
    made = shared.connect()
    made.login(secret=shared.secret)
    yield made
    made.close()


# Login.

def test_a_token_is_good_once(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    page = console.connect()
    got = page.login(token=console.token)
    assert len(got["secret"]) == 64 and got["control"] is False
    assert got["limits"]["retainedOutputBytes"] == 1 << 20
    again = console.connect()
    assert again.error("console/login", {"token": console.token}) == UNKNOWN
    assert again.transport.receive_close() == 1008
    # A page that was reloaded comes back with its secret; another one gets a link.
    second = console.connect()
    assert second.login(secret=got["secret"])["secret"] == got["secret"]
    link = second.call("console/link")["token"]
    third = console.page(link)
    assert third.secret != got["secret"]
    fourth = console.connect()
    assert fourth.error("console/login", {"token": link}) == UNKNOWN
    refused = [line for line in third.call("console/audit")["lines"] if line["event"] == "refused"]
    assert {line["reason"] for line in refused} == {UNKNOWN[1]}


@pytest.mark.parametrize("params", [
    {}, {"token": "x", "secret": "y"}, {"token": ""}, {"secret": ""}, {"token": "A" * 43},
    {"secret": "A" * 64}, {"token": 7}, {"token": None}, {"secret": "\0" * 64},
])
def test_a_wrong_login_ends_the_connection(shared, params):
    page = shared.connect()
    code, _ = page.error("console/login", params)
    assert code in (-32001, -32602)
    assert page.transport.receive_close() == 1008


@pytest.mark.parametrize("message", [
    '{"id":1,"method":"console/list"}', '{"id":1,"method":"process/start","params":{}}',
    '{"method":"initialized"}', "nonsense", "[]", '{"id":1,"method":"initialize","params":{}}',
    '{"id":1,"method":"fs/readFile","params":{"path":"file:///etc/passwd"}}',
])
def test_nothing_comes_before_the_login(shared, message):
    ws = shared.websocket()
    ws.send_text(message)
    answer = json.loads(ws.receive())
    assert "error" in answer
    if "fs/readFile" in message:
        assert answer["error"]["message"] == (
            "client must call console/login before using console methods")
    assert ws.receive_close() == 1008


def test_one_login_a_connection(page, shared):
    assert page.error("console/login", {"secret": shared.secret}) == (
        -32600, "console/login may only be sent once per connection")
    page.sync()


def test_secrets_in_use_keep_their_places(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    pages = [console.page()]
    for _ in range(31):
        pages.append(console.page(pages[0].call("console/link")["token"]))
    late = console.connect()
    assert late.error("console/login", {"token": pages[0].call("console/link")["token"]}) == (
        -32600, "too many pages use the console (limit 32)")
    pages[5].close()
    until(lambda: _logs_in(console, pages[0]), "a place")
    pages[6].sync()


def _logs_in(console, page):
    try:
        return console.page(page.call("console/link")["token"])
    except RpcError:
        return None


def test_the_methods_of_clients_are_not_there(page):
    for method in ("initialize", "process/start", "process/write", "process/list", "fs/writeFile",
                   "fs/remove", "process/terminate", "http/request", "fs/watch", "fs/writeBlock"):
        assert page.error(method, {})[0] == -32601, method


# The list.

def test_rows(owner, page):
    process = owner.start("exec sleep 1000", cwd="file:///usr")
    row = page.row(process)
    assert row["argv"] == ["/bin/sh", "-c", "exec sleep 1000"] and row["cwd"] == "/usr"
    assert row["state"] == "running" and row["pid"] > 0 and row["sandbox"] == "none"
    assert row["endedAtMs"] is None and row["tty"] is False and row["size"] is None
    session = page.list()["sessions"][row["sessionId"]]
    assert session["client"] == "e2e" and session["connected"] and not session["console"]
    assert session["peer"].startswith("127.0.0.1:")
    owner.terminate(process)
    owner.wait_closed(process)
    row = settled(page, process)
    assert row["signal"] == "SIGKILL" and row["endedAtMs"] >= row["startedAtMs"]


def test_a_session_has_another_name(owner, page, shared):
    process = owner.start("exec sleep 1000")
    shown = page.row(process)["sessionId"]
    assert shown != owner.session and shown[:8] == owner.session[:8]
    stranger = shared.server.connect()
    with pytest.raises(RpcError, match="unknown session id"):
        stranger.initialize(resume=shown)
    # Nor does the real one open anything here.
    assert page.error("process/attach", {"sessionId": owner.session, "processId": process.name})[
        0] == -32600
    # Sessions of viewers are in no list.
    assert all(row["client"] != "console" or row["console"]
               for row in page.list()["sessions"].values())


def test_only_changes(owner, page):
    quiet = owner.start("exec sleep 1000")
    loud = owner.start("read x; echo $x", pipeStdin=True)
    before = page.list()
    assert before["full"]
    after = page.list(before["revision"])
    assert not after["full"] and not after["processes"] and not after["sessions"]
    owner.write(loud, "word\n", closeStdin=True)
    owner.wait_closed(loud)
    seen = {}

    def changed():
        seen.update(page.list(before["revision"])["processes"])
        return any(row["state"] == "closed" for row in seen.values())
    until(changed, "the change")
    assert [name for _, name in seen] == [loud.name]
    assert page.row(quiet)["state"] == "running"


def test_gone_rows(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--session-ttl", "0")
    page = console.page()
    owner = console.server.client()
    process = owner.start("exec sleep 1000")
    before = page.list()
    key = page.of(process)["sessionId"], process.name
    assert key in before["processes"]
    owner.end()
    until(lambda: page.list(before["revision"])["removedSessions"], "the end of the session")
    after = page.list(before["revision"])
    assert after["removed"] == [key] and after["removedSessions"] == [key[0]]
    assert not after["full"] and not after["processes"]
    # What an earlier server, or nobody, has said means nothing.
    for odd in (0, 1, before["revision"] + 1_000_000):
        assert page.list(odd)["full"]
    assert page.error("console/list", {"after": -1})[0] == -32602


def test_thousands_of_rows(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--closed-retention", "3600")
    page = console.page()
    owner = console.server.client()
    count = 1200
    names = [owner.new_name() for _ in range(count)]
    for name in names:
        owner.send("process/start", {**owner.start_params(["/bin/true", "x" * 900]),
                                     "processId": name})
    owner.wait(lambda: all(n in owner.processes and owner.processes[n].closed for n in names),
               "the end of all")
    whole = page.list()
    assert [name for _, name in whole["processes"]] and len(whole["processes"]) == count
    assert all(row["state"] == "closed" for row in whole["processes"].values())
    assert not page.list(whole["revision"])["processes"]


def test_removals_that_are_too_many(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--closed-retention", "0", "--closed-output-max", "0")
    page = console.page()
    owner = console.server.client()
    # Long names: 1 MiB of them is kept.
    names = [f"{i}-" + "n" * 3900 for i in range(300)]
    before = page.list()
    for name in names:
        owner.send("process/start", {**owner.start_params(["/bin/true"]), "processId": name})
    owner.wait(lambda: all(n in owner.processes and owner.processes[n].closed for n in names),
               "the end of all")
    until(lambda: page.list(before["revision"])["full"], "a whole list")
    until(lambda: not page.list(before["revision"])["processes"], "an empty one")


# Use of CPU and memory.

def test_resources(owner, page):
    # A child that is not awaited, of a leader that sleeps.
    process = owner.start("sh -c 'i=0; while :; do i=$((i+1)); done' & wait")
    where = page.of(process)
    pair = [where["sessionId"], where["processId"]]

    def busy():
        one, none = page.call("console/resources", {"processes": [pair, ["x", "y"]]})["resources"]
        assert none is None
        return one["cpuMs"] >= 20 and one["rssBytes"] > 100_000
    until(busy, "time of a descendant")
    owner.terminate(process)
    owner.wait_closed(process)
    ended = page.call("console/resources", {"processes": [pair]})["resources"][0]
    assert ended["rssBytes"] == 0
    assert page.call("console/resources", {"processes": []}) == {"resources": []}


@pytest.mark.parametrize("bad", [
    None, 7, {}, [7], [["a"]], [["a", "b", "c"]], [["a", 7]], [["a", "b"]] * 65])
def test_bad_resources(page, bad):
    assert page.error("console/resources", {"processes": bad})[0] == -32602


# Watching.

def test_attach(owner, page):
    process = owner.start("while read line; do echo $line; done; exit 3", pipeStdin=True)
    view = page.watch(process)
    for word in ("one", "two"):
        owner.write(process, f"{word}\n")
        page.wait(lambda w=word: w.encode() in view.output(), word)
    owner.ask("closeStdin", process)
    page.wait(lambda: view.closed, "the end")
    owner.wait_closed(process)
    assert view.output() == process.output() and not view.gaps
    assert view.exited["exitCode"] == 3


def test_attach_to_the_past(owner, page):
    process = owner.run("echo x; echo y >&2")
    view = page.watch(process)
    page.wait(lambda: view.closed, "the end")
    assert view.output("stdout") == b"x\n" and view.output("stderr") == b"y\n"
    assert page.error("process/attach", {"sessionId": "x", "processId": "y"}) == (
        -32600, "unknown session id x")


def test_a_view_ends_with_its_process(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--closed-retention", "0", "--closed-output-max", "0")
    page = console.page()
    owner = console.server.client()
    process = owner.start("read x; head -c 3000000 /dev/zero; echo end", pipeStdin=True)
    view = page.watch(process)
    owner.write(process, "go\n")
    owner.wait_closed(process)
    page.wait(lambda: view.closed or view.detached, "the end of the view")
    # The rest of the output came before, or is named as missing.
    assert view.output().endswith(b"end\n") or view.gaps


def test_snapshot(owner, page):
    process = owner.run("printf 'a%.0s' $(seq 1000)")
    got = page.call("console/snapshot", page.of(process))
    assert unb64(got["stdout"]) == b"a" * 1000 and got["running"] is False
    cut = page.call("console/snapshot", {**page.of(process), "maxBytes": 10})
    assert cut["truncated"] and len(unb64(cut["stdout"])) == 10
    assert page.error("console/snapshot", {"sessionId": "x", "processId": "y"}) == (
        -32600, "unknown session id x")


# Files.

def test_files(page, tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    uri = f"file://{tmp_path}"
    names = [entry["fileName"]
             for entry in page.call("fs/readDirectory", {"path": uri})["entries"]]
    assert names == ["file"]
    assert unb64(page.call("fs/readFile", {"path": f"{uri}/file"})["dataBase64"]) == b"text"
    assert page.call("fs/getMetadata", {"path": f"{uri}/file"})["size"] == 4
    page.call("fs/open", {"handleId": "h", "path": f"{uri}/file"})
    block = page.call("fs/readBlock", {"handleId": "h", "offset": 1, "len": 2})
    assert unb64(block["chunk"]) == b"ex"
    page.call("fs/close", {"handleId": "h"})
    for mode in ("replace", "update"):
        code, _ = page.error("fs/open", {"handleId": "w", "path": f"{uri}/new", "mode": mode})
        assert code in (-32600, -32602)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


# Control.

def test_only_look(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    page, owner = console.page(), console.server.client()
    process = owner.start("cat", tty=True)
    where = page.of(process)
    assert page.error("console/write", {**where, "chunk": "eA=="}) == ONLY_LOOK
    assert page.error("console/closeStdin", where) == ONLY_LOOK
    assert page.error("console/resize", {**where, "size": {"rows": 9, "cols": 9}}) == ONLY_LOOK
    assert page.error("console/signal", {**where, "signal": "interrupt"}) == ONLY_LOOK
    assert page.error("console/terminate", where) == ONLY_LOOK
    assert page.error("console/start", {"shell": "true", "cwd": "/tmp"}) == ONLY_LOOK
    assert page.row(process)["state"] == "running" and page.row(process)["bytes"] == 0
    assert len(page.list()["processes"]) == 1


def test_typing(owner, page):
    process = owner.start("stty -echo; echo ready; read x; stty size; echo got $x; exec sleep 1000",
                          tty=True)
    owner.wait_output(process, "ready")
    where = page.of(process)
    assert page.row(process)["size"] == {"rows": 24, "cols": 80}
    assert page.call("console/resize", {**where, "size": {"rows": 33, "cols": 111}}) == {}
    assert page.row(process)["size"] == {"rows": 33, "cols": 111}
    assert page.type(process, "hello\n") == {"status": "accepted"}
    owner.wait_output(process, "got hello")
    assert b"33 111" in process.output()
    page.call("console/signal", {**where, "signal": "terminate"})
    owner.wait_closed(process)
    assert process.exited["signal"] == "SIGTERM"
    assert page.call("console/terminate", where) == {"running": False}
    mine = [line for line in page.call("console/audit")["lines"]
            if line.get("console") and line.get("processId") == process.name]
    assert [line["event"] for line in mine] == ["resize", "write", "signal", "terminate"]
    peer = mine[0]["peer"]
    assert peer.startswith("127.0.0.1:") and all(line["peer"] == peer for line in mine)


def test_sizes_of_a_terminal(owner, page):
    """Each with the number of the last event before it, in their order."""
    process = owner.start("stty -echo; echo ready; while read x; do stty size; done", tty=True,
                          size={"rows": 10, "cols": 20})
    owner.wait_output(process, "ready")
    view = page.watch(process)
    assert view.sizes == [{"seq": 0, "rows": 10, "cols": 20}]
    page.wait(lambda: b"ready" in view.output(), "what is retained")
    for rows in (11, 12, 13):
        owner.ask("resize", process, size={"rows": rows, "cols": 30})
        owner.write(process, "x\n")
        page.wait(lambda r=rows: f"{r} 30".encode() in view.output(), f"{rows} rows")
        # The size stands before the event that was written at it.
        event = next(seq for seq, _, data in view.events
                     if isinstance(data, bytes) and f"{rows} 30".encode() in data)
        assert view.sizes[-1]["rows"] == rows and view.sizes[-1]["seq"] < event
    again = page.watch(process)
    assert again.sizes == view.sizes
    for rows in range(1, 101):
        owner.ask("resize", process, size={"rows": rows, "cols": 30})
    page.wait(lambda: view.sizes[-1]["rows"] == 100, "the last size")
    late = page.watch(process)
    assert [one["rows"] for one in late.sizes] == list(range(37, 101))
    pipe = owner.start("exec sleep 1000")
    assert page.watch(pipe).sizes == []


def test_end_of_input(owner, page):
    process = owner.start("cat; echo end", pipeStdin=True)
    page.type(process, "word\n")
    assert page.call("console/closeStdin", page.of(process)) == {"status": "accepted"}
    owner.wait_closed(process)
    assert process.output() == b"word\nend\n"


def test_start(page):
    got = page.call("console/start", {"shell": "pwd; echo $TERM; tty; exit 4", "cwd": "/usr",
                                      "tty": True, "size": {"rows": 5, "cols": 50}})
    row = settled(page, got["processId"])
    assert row["sessionId"] == got["sessionId"] and row["exitCode"] == 4
    text = unb64(page.call("console/snapshot", page.of(got["processId"]))["terminal"])
    assert text.startswith(b"/usr\r\nxterm-256color\r\n/dev/pts/")
    session = page.list()["sessions"][got["sessionId"]]
    assert session["console"] and not session["connected"] and session["peer"] is None
    again = page.call("console/start", {"argv": ["/bin/cat"], "cwd": "file:///"})
    assert again["sessionId"] == got["sessionId"] and again["processId"] != got["processId"]
    assert page.type(again["processId"], "x") == {"status": "accepted"}
    page.call("console/terminate", page.of(again["processId"]))
    settled(page, again["processId"])
    starts = [line for line in page.call("console/audit")["lines"]
              if line["event"] == "start" and line.get("console")]
    assert {line["processId"] for line in starts} == {got["processId"], again["processId"]}
    assert all(line["peer"].startswith("127.0.0.1:") for line in starts)


@pytest.mark.parametrize("params", [
    {}, {"shell": "x", "argv": ["y"]}, {"argv": []}, {"argv": "x"}, {"shell": 7},
    {"shell": "x", "cwd": "relative"}, {"shell": "x", "tty": True, "size": {"rows": 0, "cols": 1}},
    {"argv": ["a\0b"]}, {"argv": ["/no/such/program"]},
])
def test_bad_starts(page, params):
    code, _ = page.error("console/start", params)
    assert code in (-32602, -32603)


def test_a_start_outlives_its_page(shared, page):
    got = page.call("console/start", {"shell": "exec sleep 1000"})
    page.close()
    other = shared.connect()
    other.login(secret=shared.secret)
    assert other.row(got["processId"])["state"] == "running"
    other.call("console/terminate", other.of(got["processId"]))
    settled(other, got["processId"])


@pytest.mark.parametrize("method,params", [
    ("console/write", {"processId": "p", "chunk": "eA=="}),
    ("console/write", {"sessionId": "s", "chunk": "eA=="}),
    ("console/write", {"sessionId": "s", "processId": "p", "chunk": "*"}),
    ("console/signal", {"sessionId": "s", "processId": "p", "signal": "seven"}),
    ("console/resize", {"sessionId": "s", "processId": "p", "size": {"rows": 1}}),
    ("console/terminate", {"sessionId": 1, "processId": "p"}),
])
def test_bad_control(page, method, params):
    assert page.error(method, params)[0] == -32602


# The audit log.

def test_audit(owner, page):
    first = page.call("console/audit")
    process = owner.run("true")
    page.wait(lambda: any(m["params"]["line"].get("processId") == process.name
                          and m["params"]["line"]["event"] == "exit" for m in page.other),
              "the lines")
    numbers = [m["params"]["n"] for m in page.other if m["method"] == "console/auditLine"]
    assert numbers[0] == first["next"] + 1
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(m["params"]["lost"] == 0 for m in page.other)
    since = page.call("console/audit", {"after": first["next"]})
    assert [line["n"] for line in since["lines"]][:len(numbers)] == numbers
    assert page.call("console/audit", {"after": 1 << 50})["lines"] == []


def test_audit_forgets(fleet, tmp_path):
    console = Console(fleet, tmp_path, "--http-files")
    page, owner = console.page(), console.server.client()
    names = [owner.new_name() for _ in range(400)]
    # An argument may have 4 KiB in a line: 400 of them do not fit.
    for name in names:
        owner.send("process/start", {**owner.start_params(["/bin/true", "x" * 5000]),
                                     "processId": name})
    owner.wait(lambda: all(n in owner.processes and owner.processes[n].closed for n in names),
               "the end of all")
    got = page.call("console/audit")
    assert got["lost"] > 0 and got["lines"][0]["n"] == got["lost"] + 1
    assert got["next"] == got["lines"][-1]["n"]
    assert sum(len(json.dumps(line)) for line in got["lines"]) <= (1 << 20) + 2048 * 40


def test_attach_is_logged_once(owner, page):
    process = owner.start("exec sleep 1000")
    for _ in range(5):
        view = page.watch(process)
        page.call("process/detach", {"attachId": view.id})
    lines = [line for line in page.call("console/audit")["lines"]
             if line["event"] == "attach" and line["processId"] == process.name]
    assert len(lines) == 1 and lines[0]["console"] is True


def test_audit_file_says_who(fleet, tmp_path):
    log = tmp_path / "log"
    console = Console(fleet, tmp_path, "--console-control", "--audit-log", str(log))
    page, owner = console.page(), console.server.client()
    process = owner.start("cat", pipeStdin=True)
    page.type(process, "x")
    page.end()
    until(lambda: '"event":"disconnect"' in log.read_text(), "the end of the page")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    mine = [line for line in lines if line.get("console")]
    assert [line["event"] for line in mine] == ["login", "write", "disconnect"]
    assert mine[0]["control"] is True and mine[1]["processId"] == process.name
    assert not any(line.get("console") for line in lines if line["event"] == "start")
    # The file holds no token and no secret.
    assert console.token not in log.read_text() and page.secret not in log.read_text()


# The end of the server.

def test_bye(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    page = console.page()
    early = console.connect()
    console.server.stop()
    with pytest.raises(Closed) as end:
        while True:
            page.pump()
    assert end.value.code == 1001
    assert page.other == [{"method": "console/bye",
                           "params": {"reason": "the server is shutting down"}}]
    assert early.transport.receive_close() == 1001 and not early.other


def test_an_old_secret_is_worth_nothing(fleet, tmp_path):
    console = Console(fleet, tmp_path)
    old = console.page()
    console.server.stop()
    again = Console(fleet, tmp_path, url=f"ws://{console.authority}")
    page = again.connect()
    assert page.error("console/login", {"secret": old.secret}) == UNKNOWN
    assert page.transport.receive_close() == 1008
    page = again.connect()
    assert page.error("console/login", {"token": console.token}) == UNKNOWN


def test_stdio(fleet, tmp_path):
    """The console of a server whose client speaks over stdio."""
    client = fleet.stdio("--console", "ws://127.0.0.1:0", "--console-page",
                         str(write_page(tmp_path / "page")))
    assert client.run("exit 3").exit_code == 3


# Options.

@pytest.mark.parametrize("args,words", [
    (["--console", "ws://0.0.0.0:0"], "is not a loopback address and `--ws-auth` is not set"),
    (["--console", "ws://[::]:0"], "is not a loopback address and `--ws-auth` is not set"),
    (["--console", "http://127.0.0.1:0"], "expected `ws://IP:PORT`"),
    (["--console", "unix:///x"], "expected `ws://IP:PORT`"),
    (["--console", "ws://localhost:0"], "expected `ws://IP:PORT`"),
    (["--console", "ws://127.0.0.1:0", "--console-host", "a/b"], "not a host name"),
    (["--console", "ws://127.0.0.1:0", "--console-page", "/no/such"], "cannot open `/no/such`"),
])
def test_options(args, words):
    code, out, err = run("--listen", "ws://127.0.0.1:0", *args)
    assert code in (1, 2) and out == "" and words in err, err


@pytest.mark.parametrize("manifest", [
    "", "/x text/plain 0.gz\n", "/ text/html\n", "/ text/html ../0.gz\n", "/ text/html none.gz\n",
    "nonsense\n", "/ text/html 0.gz\n" * 65,
])
def test_pages_that_cannot_be_used(tmp_path, manifest):
    page = write_page(tmp_path / "page")
    (page / "manifest").write_text(manifest)
    code, out, err = run("--listen", "ws://127.0.0.1:0", "--console", "ws://127.0.0.1:0",
                         "--console-page", str(page))
    assert code == 1 and out == "" and err.startswith("Error: --console-page: "), err


def test_the_config_file(fleet, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"console": "ws://127.0.0.1:0", "consoleControl": True,
                                  "consoleHosts": ["box"],
                                  "consolePage": str(write_page(tmp_path / "page"))}))
    code, out, _ = run("--config-file", str(config), "--print-config")
    assert code == 0 and json.loads(out)["consoleHosts"] == ["box"]
    server = fleet.start("--config-file", str(config), quiet=False)
    assert "console: http://127.0.0.1:" in server.stderr()

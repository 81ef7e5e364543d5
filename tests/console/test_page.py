"""What the page shows and does, and its keys."""

import json

import pytest

from viewer import ready, show_process
from harness.waiting import until

ROWS = "[...document.querySelectorAll('.processes .row')]"
CELL = ROWS + ".map((row) => row.querySelector('.%s').innerText)"


def commands(page):
    return page.evaluate(
    "[...document.querySelectorAll('.processes .row')].sort((a, b) => a.ariaRowIndex - "
    "b.ariaRowIndex).map((row) => row.querySelector('.command').textContent)")


def row(page, words):
    """The cells of the row whose command has these words."""
    return page.wait(f"""(() => {{
        const row = {ROWS}.find((one) => one.querySelector('.command').textContent.includes({json.dumps(words)}));
        return row && Object.fromEntries([...row.children].map((cell) => [cell.className, cell.textContent]));
    }})()""", f"a row with {words}")


def wait_row(page, words, predicate, what):
    return until(lambda: (lambda cells: cells if predicate(cells)
                 else None)(row(page, words)), what, every=0.05)


def toast(page):
    return page.wait("document.getElementById('toast').textContent")


# Signing in.

def test_token_leaves_the_url_and_works_once(console, pages):
    page = pages(console)
    assert page.evaluate("location.href") == f"{console.origin}/"
    kept = page.evaluate(
        "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])")
    session, local, cookie = json.loads(kept)
    assert len(session) == 1 and console.token not in kept
    assert not any(list(session.values())[0] in str(value) for value in local.values())
    assert cookie == ""
    page.call("Page.reload")
    page.wait(
    "document.getElementById('status')?.dataset.state === 'ready'",
     "a reloaded page is signed in")
    assert page.evaluate("location.href") == f"{console.origin}/"

    other = pages()
    other.origin = console.origin
    other.go(console.link)
    other.wait(
    "document.querySelector('#gate .why').checkVisibility()",
     "the second use is refused")
    assert "each link works once" in other.text("#gate")
    assert other.evaluate("location.hash") == ""
    assert other.evaluate("sessionStorage.length") == 0
    assert other.evaluate("document.querySelectorAll('.row').length") == 0


def test_link_for_one_more_viewer(console, pages):
    first = pages(console)
    first.browser.call("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        "browserContextId": first.context, "origin": console.origin})
    first.press("L")
    assert "one more viewer" in toast(first)
    link = first.clipboard()
    assert link.startswith(f"{console.origin}/#")
    second = pages()
    second.origin = console.origin
    second.go(f"{console.origin}/")
    second.wait("document.querySelector('#gate input').checkVisibility()", "it asks for a link")
    second.click("#gate input")
    second.insert(link)
    second.press("Enter")
    ready(second)
    assert second.evaluate("document.querySelector('#gate').hidden")


# The lists.

def test_processes_live_newest_first(console, pages):
    client = console.client()
    page = pages(console)
    page.wait("document.querySelector('.blank').textContent.includes('No process yet')")
    first = client.start(["/bin/sh", "-c", "echo 1234; exec sleep 1000"], cwd="file:///usr")
    cells = wait_row(
    page,
    "sleep 1000",
    lambda c: c["output"] == "5 B" and c["cpu"] != "–",
     "its figures")
    assert cells["state"] == "running" and cells["directory"] == "/usr"
    assert cells["memory"].endswith("MB") and cells["sandbox"] == "no sandbox"
    assert cells["age"].endswith(" s") and cells["cpu"].endswith("%")
    client.run(["/bin/sh", "-c", "exit 3"])
    assert wait_row(page, "exit 3", lambda c: "exit 3" == c["state"], "its end")["cpu"] == ""
    client.run(["/bin/true"])
    wait_row(page, "/bin/true", lambda c: c["state"] == "exit 0", "its end")
    assert commands(page)[:2] == ["/bin/true", "/bin/sh -c 'exit 3'"]
    client.terminate(first)
    wait_row(page, "sleep 1000", lambda c: c["state"] == "SIGKILL", "its end by a signal")


def test_filters(console, pages):
    client = console.client()
    client.start(["/bin/sleep", "1001"])
    client.run(["/bin/true", "alpha"])
    client.run(["/bin/true", "beta"])
    page = pages(console)
    page.wait(f"{ROWS}.length === 3")
    page.press("/")
    page.type("ALPHA")
    page.wait(f"{ROWS}.length === 1")
    assert commands(page) == ["/bin/true alpha"] and "1 of 3" in page.text(".count")
    page.evaluate(
        "document.activeElement.value = ''; document.activeElement.dispatchEvent(new Event('input'))")
    page.press("Escape")
    page.press("x")
    page.wait(f"{ROWS}.length === 1")
    assert commands(page) == ["/bin/sleep 1001"]
    page.press("x")
    page.wait(f"{ROWS}.length === 2")
    assert commands(page) == ["/bin/true beta", "/bin/true alpha"]


def test_sessions(console, pages):
    one, two = console.connect(), console.connect()
    one.initialize(name="first agent")
    two.initialize(name="second agent")
    one.start(["/bin/sleep", "1002"])
    two.start(["/bin/sleep", "1003"])
    page = pages(console)
    page.press("2")
    page.wait("document.querySelectorAll('.sessions .row').length === 2")
    shown = page.text(".sessions")
    assert "first agent" in shown and "second agent" in shown and "1 running" in shown
    assert one.session[:8] in shown
    two.close()
    page.wait("document.querySelector('.sessions').innerText.includes('detached')")
    page.click(".sessions .row .client", "first agent")
    page.wait(f"{ROWS}.length === 1")
    assert commands(page) == ["/bin/sleep 1002"]
    page.click(".chip")
    page.wait(f"{ROWS}.length === 2")
    # An id with which a session could be resumed never reaches the browser.
    frames = [f["response"]["payloadData"] for f in page.events["Network.webSocketFrameReceived"]]
    assert frames and not any(c.session in frame for frame in frames for c in (one, two))


# The terminal.

def test_terminal_follows_with_colours(console, pages):
    client = console.client()
    process = client.start(["/bin/sh",
    "-c",
    "printf '\\033[31mred\\033[0m plain\\n'; read x; echo got $x; read x"],
     tty=True)
    page = pages(console)
    show_process(page, "got")
    page.wait_rows(lambda rows: rows[0] == "red plain", "the output")
    colours = page.evaluate(
    "[...document.querySelectorAll('.xterm-rows > div:first-child span')].map((one) => "
    "getComputedStyle(one).color)")
    assert len(set(colours)) == 2, colours
    client.write(process, "abc\n")
    page.wait_rows(lambda rows: "got abc" in rows, "what came later")


def test_scrollback_and_follow(console, pages):
    client = console.client()
    process = client.start(["/bin/sh", "-c", "seq 1 3000; read x; seq 3001 3100; read x"], tty=True)
    page = pages(console)
    show_process(page, "seq 1 3000")
    page.wait_rows(lambda rows: "3000" in rows, "the end")
    page.press("Home")
    page.wait_rows(lambda rows: rows[0] == "1", "the beginning")
    client.write(process, "\n")
    client.wait_output(process, "3100")
    page.wait(
    "document.querySelector('.facts').textContent.includes('kB') && "
    "document.querySelector('.process .bar button[aria-pressed=false]')?.textContent === 'Follow'")
    assert page.rows()[0] == "1"  # who reads is not carried away
    page.press("e")
    page.wait_rows(lambda rows: "3100" in rows, "the end again")


def test_search(console, pages):
    client = console.client()
    client.run(["/bin/sh", "-c", "seq 1 500; echo the needle; seq 501 1000"], tty=True)
    page = pages(console)
    show_process(page, "needle")
    page.wait_rows(lambda rows: "1000" in rows, "the end")
    page.press("/")
    page.type("needle")
    page.wait("document.querySelector('.found').textContent === '1 of 1'")
    page.wait_rows(lambda rows: "the needle" in rows, "the match in view")
    page.type("zzz")
    page.wait("document.querySelector('.found').textContent === 'not found'")
    page.press("Escape")
    page.wait("document.querySelector('.finder').hidden")


def test_copy(console, pages):
    client = console.client()
    client.run(["/bin/sh", "-c", "echo first line; echo second"], tty=True)
    page = pages(console)
    page.browser.call("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        "browserContextId": page.context, "origin": console.origin})
    show_process(page, "first line")
    page.wait_rows(lambda rows: rows[1] == "second", "the output")
    page.click(".menu summary", "Copy")
    page.click(".menu button", "Everything, as text")
    assert toast(page) == "Copied."
    assert page.clipboard() == "first line\nsecond\n"
    # A double click selects a word.
    x, y, w = page.evaluate(
    "(({x, y, width}) => [x, y, width])(document.querySelector('.xterm-screen')"
    ".getBoundingClientRect())")
    spot = {"x": x + w / 80 * 1.5, "y": y + 8}
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            page.mouse(kind, **spot, button="left", clickCount=count)
    page.press("c")
    until(lambda: page.clipboard() == "first", "the word", every=0.05)


def test_download_of_the_output(console, pages):
    client = console.client()
    client.run(["/bin/sh", "-c", "printf 'a\\033[1mb\\377'; printf wrong >&2"])
    page = pages(console)
    show_process(page, "wrong")
    page.wait_rows(lambda rows: any("wrong" in one for one in rows), "the output")
    for stream, content in (("stdout", b"a\033[1mb\377"), ("stderr", b"wrong")):
        page.click(".menu summary", "Download")
        page.click(".menu button", stream)
        name, data = page.saved()
        assert data == content and name.endswith(f".{stream}.log") and name.startswith("sh-")


def test_pipes_tell_streams_apart(console, pages):
    client = console.client()
    process = client.start(["/bin/sh",
    "-c",
    "echo to out; read x; echo to err >&2; read x; echo more out; read x"],
     pipeStdin=True)
    page = pages(console)
    show_process(page, "to err")
    page.wait_rows(lambda rows: "to out" in rows, "the first line")
    client.write(process, "\n")
    page.wait_rows(lambda rows: "to err" in rows, "the second line")
    client.write(process, "\n")
    page.wait_rows(lambda rows: rows[:3] == ["to out", "to err", "more out"], "the third line")
    page.wait(
    "[...document.querySelectorAll('.gutter div')].slice(0, 4).map((one) => one.textContent).join() === "
    "',err,,'",
     "the mark of stderr")
    page.press("o")
    page.wait_rows(lambda rows: rows[:3] == ["to out", "more out", ""], "stdout alone")
    page.press("o")
    page.wait_rows(lambda rows: rows[:2] == ["to err", ""], "stderr alone")
    page.press("o")
    page.wait_rows(lambda rows: rows[:3] == ["to out", "to err", "more out"], "both")


def test_marks_follow_the_scrollback(console, pages):
    """The lines of stderr keep their marks when the scrollback loses its first lines."""
    client = console.client()
    client.run(["/bin/sh", "-c", "seq 1 12000; sleep 0.2; echo bad >&2; sleep 0.2; seq 1 5"])
    page = pages(console)
    show_process(page, "seq 1 12000")
    rows = page.wait_rows(
        lambda rows: "bad" in rows and "5" in rows[rows.index("bad"):], "all of it")
    marks = page.wait(
    "(() => { const all = [...document.querySelectorAll('.gutter div')].map((one) => "
    "one.textContent); return all.includes('err') && all; })()")
    assert marks.index("err") == rows.index("bad") and marks.count("err") == 1


def test_output_of_a_forgotten_process_stays(consoles, pages):
    console = consoles("--closed-retention", "1")
    client = console.client()
    process = client.start(["/bin/sh", "-c", "echo keep this; read x"], tty=True)
    page = pages(console)
    show_process(page, "keep this")
    page.wait_rows(lambda rows: "keep this" in rows, "the output")
    client.write(process, "\n")
    page.wait("document.querySelector('.note').textContent.includes('forgotten')")
    assert "keep this" in page.rows()
    page.wait(f"{ROWS}.length === 0")


# Files.

@pytest.fixture
def tree(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.txt").write_text("inner\n")
    (tmp_path / "text.txt").write_text("one\n\ttwo \u202e\x1b[31m\n")
    (tmp_path / "page.html").write_text("<h1>no</h1><script>document.title = 'ran'</script>")
    (tmp_path / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title='ran'\"/>")
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    (tmp_path / "large.txt").write_text("".join(f"line {i}\n" for i in range(100_000)))
    (tmp_path / "not.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    return tmp_path


def go(page, path):
    page.press("3")
    page.wait("document.querySelector('.filespane input').value", "a directory")
    page.evaluate(f"document.querySelector('.filespane input').value = {json.dumps(str(path))}")
    page.click(".filespane .bar button", "Go")


def names(page):
    return page.evaluate(
        "[...document.querySelectorAll('.files .row .name')].map((one) => one.textContent)")


def content(page, words, selector="pre"):
    return page.wait(
    f"(() => {{ const one = document.querySelector('.content {selector}'); "
    f"return one?.textContent.includes({json.dumps(words)}) && one.textContent; }})()", words)


def test_browse(console, pages, tree):
    page = pages(console)
    go(page, tree)
    page.wait("document.querySelectorAll('.files .row').length === 7")
    assert names(page)[0] == "folder/" and "text.txt" in names(page)
    page.wait("document.querySelector('.files').innerText.includes('256 B')", "sizes")
    page.evaluate("document.querySelector('.files').focus()")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('.filespane input').value.endsWith('/folder')")
    assert names(page) == ["inner.txt"]
    page.press("ArrowDown")
    page.press("Enter")
    assert content(page, "inner") == "inner\n"
    page.press("Escape")
    page.wait("document.querySelector('.viewer').hidden")
    page.press("u")
    page.wait("document.querySelectorAll('.files .row').length === 7")


def test_view(console, pages, tree):
    page = pages(console)
    go(page, tree / "text.txt")
    assert content(page, "two") == "one\n\ttwo \\u{202e}\\e[31m\n"
    go(page, tree / "page.html")
    assert "<script>" in content(page, "<h1>no</h1>")
    go(page, tree / "drawing.svg")
    assert "onload" in content(page, "<svg")
    assert page.evaluate(
        "document.querySelectorAll('.content img, .content svg, h1').length") == 1  # the title
    go(page, tree / "data.bin")
    assert "00000000  00 01 02" in content(page, "00000000")
    go(page, tree / "large.txt")
    assert content(page, "line 1\n").startswith("line 0\n")
    page.click(".content button", "Last part")
    content(page, "line 99999\n")
    go(page, tree / "not.png")
    assert "Not text" in content(page, "Not text", "")
    assert "ran" not in page.evaluate("document.title")


def test_image(console, pages, tree):
    page = pages(console)
    picture = page.picture()
    (tree / "picture").write_bytes(picture)  # no name says what it is
    go(page, tree / "picture")
    size = page.wait(
    "(() => { const one = document.querySelector('.content img'); return one?.complete && "
    "[one.naturalWidth, one.naturalHeight, one.src.slice(0, 5)]; })()")
    assert size == [1280, 800, "blob:"]


def test_download_of_a_file(console, pages, tree):
    page = pages(console)
    go(page, tree / "large.txt")
    content(page, "line 1\n")
    page.click(".viewer button", "Download")
    assert page.saved() == ("large.txt", (tree / "large.txt").read_bytes())


# The audit log.

def test_audit(console, pages):
    client = console.client()
    page = pages(console)
    page.press("4")
    client.run(["/bin/true", "--token", "hidden"])
    client.run(["/bin/echo", "needle"])
    page.wait("document.querySelector('.audit').innerText.includes('needle')")
    shown = page.text(".audit")
    assert "start" in shown and "exit" in shown and "connect" in shown and "hidden" not in shown
    page.press("/")
    page.type("needle")
    page.wait("document.querySelectorAll('.audit .row').length === 1")
    page.evaluate("(() => { const one = document.querySelector('select'); one.value = 'exit'; "
                  "one.dispatchEvent(new Event('change')); })()")
    page.wait("document.querySelectorAll('.audit .row').length === 0")
    page.evaluate("(() => { const one = document.querySelector('select'); one.value = 'start'; "
                  "one.dispatchEvent(new Event('change')); })()")
    page.wait("document.querySelectorAll('.audit .row').length === 1")
    page.click(".audit .row .what")
    assert "needle" in page.wait("document.querySelector('dialog pre')?.textContent")


# Looking only, and control.

def test_looking_only(console, pages):
    client = console.client()
    process = client.start(["/bin/sh", "-c", "echo here; read x; echo typed $x"], tty=True)
    page = pages(console)
    assert page.text("#may") == "looks only"
    show_process(page, "typed")
    page.wait_rows(lambda rows: "here" in rows, "the output")
    for words in ("Type", "Signal", "Terminate…", "Start…", "Fit", "End input"):
        assert not page.evaluate("[...document.querySelectorAll('button, summary')].some((one) => "
                                 f"one.textContent.trim() === {json.dumps(words)})"), words
    page.click(".xterm-screen")
    page.press("t")
    page.type("abc\n")
    page.press("r")
    client.write(process, "mine\n")
    page.wait_rows(lambda rows: "typed mine" in rows, "input of the client alone")
    sent = [json.loads(f["response"]["payloadData"])["method"]
            for f in page.events["Network.webSocketFrameSent"]]
    assert set(sent) <= {"console/login", "console/list", "console/resources", "console/audit",
                         "process/attach", "process/detach"}, sent


def audited(page):
    page.press("4")
    page.wait("document.querySelector('.audit .row')")
    return page.text(".audit")


def test_typing(control, pages):
    client = control.client()
    client.start(["/bin/sh", "-c", "read a; echo got $a; read b; echo then $b; read c"], tty=True)
    page = pages(control)
    show_process(page, "got")
    page.type("zz\n")  # not switched on: keys of the page, if any
    page.press("Escape")
    show_process(page, "got")
    page.click(".tools button", "Type")
    page.wait("document.querySelector('.typing').checkVisibility()")
    page.type("hello\n")
    page.wait_rows(lambda rows: "got hello" in rows, "the answer of the program")
    page.press("L", "Control", "Shift")
    page.wait("!document.querySelector('.typing').checkVisibility()")
    page.press("t")
    page.insert("größe 漢字")
    page.press("Enter")
    page.wait_rows(lambda rows: any(one.startswith("then größe 漢")
                   for one in rows), "text that is not ASCII")
    page.press("L", "Control", "Shift")
    shown = audited(page)
    assert "write (console)" in shown and "bytes" in shown and "hello" not in shown


def test_end_of_input_and_signals(control, pages):
    client = control.client()
    client.start(["/bin/sh",
    "-c",
    "cat; echo ended; trap 'echo hit' INT; while :; do sleep 0.01; done"],
     pipeStdin=True)
    page = pages(control)
    show_process(page, "ended")
    page.press("t")
    page.type("ab\n")
    page.wait_rows(lambda rows: "ab" in rows, "input through a pipe")
    page.press("L", "Control", "Shift")
    page.click("button", "End input")
    page.wait_rows(lambda rows: "ended" in rows, "the end of the input")
    page.press("i")
    page.wait_rows(lambda rows: "hit" in rows, "the signal")
    page.click(".tools summary", "Signal")
    page.click(".menu button", "Interrupt (SIGINT)")
    page.wait_rows(lambda rows: rows.count("hit") == 2, "the signal of the menu")
    page.press("K")
    page.wait("document.querySelector('dialog[open]')")
    page.click("dialog button", "Now")
    page.wait("document.querySelector('.badge').textContent === 'SIGKILL'")
    page.wait("document.querySelector('.tools button').disabled")
    shown = audited(page)
    assert "signal (console)" in shown and "terminate (console)" in shown


def test_resize(control, pages):
    client = control.client()
    client.start(
        ["/bin/sh", "-c", "trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done"], tty=True)
    page = pages(control)
    show_process(page, "stty")
    page.wait_rows(lambda rows: "24 80" in rows and len(rows) == 24, "the size at the start")
    page.click(".tools button", "Size…")
    page.wait("document.querySelector('dialog input')")
    page.evaluate("(() => { const [cols, rows] = document.querySelectorAll('dialog input'); "
                  "cols.value = 100; rows.value = 30; })()")
    page.click("dialog button", "Set")
    page.wait_rows(lambda rows: "30 100" in rows and len(rows) == 30, "the size that was set")
    page.press("g")
    page.wait_rows(
    lambda rows: len(rows) not in (
        24,
        30) and f"{len(rows)} " in "\n".join(rows),
         "the window's size")


def test_start(control, pages, tmp_path):
    page = pages(control)
    page.press("r")
    page.wait("document.querySelector('dialog textarea')")
    page.insert("pwd; read x; echo had $x; exit 5")
    page.evaluate(f"document.querySelector('dialog input').value = {json.dumps(str(tmp_path))}")
    page.click("dialog button", "Start")
    page.wait(
    "document.querySelector('.typing')?.checkVisibility()",
     "typing into what was started")
    page.wait_rows(lambda rows: str(tmp_path) in "".join(rows), "the directory")
    page.type("fun\n")
    page.wait_rows(lambda rows: "had fun" in rows, "the answer")
    page.wait("document.querySelector('.badge').textContent === 'exit 5'")
    page.press("Escape")
    page.press("r")
    page.wait("document.querySelector('dialog textarea')")
    page.insert("printf\n<%s>\na  b\n$HOME")
    page.evaluate(
        "[...document.querySelectorAll('dialog input[type=checkbox]')].forEach((one) => one.click())")
    page.click("dialog button", "Start")
    page.wait_rows(lambda rows: rows[0] == "<a  b><$HOME>",
                   "arguments as they are, without a terminal")
    assert "start (console)" in audited(page)


# Keyboard, screen readers, colours, sizes.

def test_keys_alone(console, pages):
    client = console.client()
    for i in range(3):
        client.run(["/bin/echo", f"output {i}"])
    page = pages(console)
    page.wait(f"{ROWS}.length === 3")
    page.press("?")
    shown = page.wait("document.querySelector('dialog.keys')?.innerText")
    for words in (
    "filter",
    "search the output",
    "download",
    "process below",
     "link for one more viewer"):
        assert words in shown, words
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.press("j")
    page.press("j")
    page.press("Enter")
    page.wait_rows(lambda rows: "output 1" in rows, "the second row")
    page.press("]")
    page.wait_rows(lambda rows: "output 0" in rows, "the row below")
    page.press("[")
    page.wait_rows(lambda rows: "output 1" in rows, "the row above")
    page.press("Escape")
    page.wait("!document.querySelector('.process')")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "grid"
    page.evaluate("history.back()")
    page.wait("document.querySelector('.process')", "the browser's button leads back")
    page.evaluate("history.forward()")
    page.wait("!document.querySelector('.process')")
    page.press("?")
    page.click("dialog .check input")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.press("2")
    assert page.evaluate("document.querySelector('main').dataset.view") == "processes"


def test_screen_readers(control, pages):
    """Whatever can be used has a name; rows of lists know their number."""
    client = control.client()
    client.start(["/bin/sh", "-c", "echo spoken words; read x"], tty=True)
    page = pages(control)
    page.click("summary")
    page.click("#reader")
    for view in ("1", "2", "3", "4"):
        page.press(view)
        check_names(page)
    page.press("1")
    show_process(page, "spoken")
    page.wait_rows(lambda rows: "spoken words" in rows, "the output")
    check_names(page)
    page.wait(
    "document.querySelector('.xterm-accessibility-tree')?.textContent.includes('spoken words')",
     "the terminal's text for screen readers")
    row_node = page.evaluate(
    "(() => { const one = document.querySelector('.row[role=row]'); "
    "return [one.ariaRowIndex, one.children[0].role, one.closest('[role=grid]').ariaRowCount,"
    " one.closest('[role=grid]').ariaLabel]; })()")
    assert row_node == ["2", "gridcell", "2", "Processes, newest first"]


def check_names(page):
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    for node in tree:
        role = node.get("role", {}).get("value")
        if role in (
    "button",
    "textbox",
    "searchbox",
    "checkbox",
    "combobox",
    "grid",
    "link",
    "dialog",
    "DisclosureTriangle",
    "spinbutton",
     "image") and not node.get("ignored"):
            assert node.get("name", {}).get("value"), (role, node)


def test_light_and_dark(console, pages):
    page = pages(console)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.scheme(True)
    dark = page.wait(f"{colour} !== {json.dumps(light)} && {colour}")
    page.press("T")
    assert page.wait("document.documentElement.dataset.theme") == "light" and page.evaluate(
        colour) == light
    page.press("T")
    assert page.evaluate(
        "document.documentElement.dataset.theme") == "dark" and page.evaluate(colour) == dark
    page.call("Page.reload")
    page.wait("document.getElementById('status')?.dataset.state === 'ready'")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"

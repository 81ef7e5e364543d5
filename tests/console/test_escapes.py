"""Hostile output, names and neighbours: nothing runs, nothing leaks, nothing reaches beyond its place."""

import http.server
import json
import threading

import pytest

from browser import Browser
from viewer import ready, show_process

MARKUP = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script><svg onload=window.ran=1>"

# One of each kind by which output could leave its rows.
ESCAPES = {
    "title": b"\033]0;stolen title\007\033]2;stolen title\033\\",
    "icon": b"\033]1;stolen\007",
    "palette": b"\033]4;1;#000000\007\033]10;#ffffff\007\033]11;#ffffff\007\033]12;#ffffff\007",
    "directory": b"\033]7;file://evil/tmp\007",
    "link": b"\033]8;;https://evil.example/?stolen\033\\click me\033]8;;\033\\",
    "script link": b"\033]8;;javascript:window.ran=1\033\\click me too\033]8;;\033\\",
    "plain link": b"https://evil.example/plain ",
    "clipboard": b"\033]52;c;c3RvbGVu\007\033]52;p;c3RvbGVu\033\\\033]52;c;?\007",
    "notify": b"\033]9;note\007\033]777;notify;a;b\007\033]99;i=1;note\033\\",
    "image": b"\033]1337;File=inline=1:iVBORw0KGgo=\007\033_Ga=T,f=100;iVBORw0KGgo=\033\\",
    "sixel": b"\033Pq#0;2;0;0;0#0~~@@vv@@~~@@~~$\033\\",
    "device control": b"\033P$q\"p\033\\\033P+q544e\033\\\033P1$r0m\033\\\033Xstart of string\033\\\033^privacy\033\\",
    "keys": b"\033P0;1|17/696d706f7274\033\\",
    "window": b"\033[8;200;500t\033[3;0;0t\033[2t\033[9;1t\033[5t",
    "reports": b"\033[c\033[>c\033[=c\033[5n\033[6n\033[?6n\033[?15n\033[21t\033[18t\033[14t\033[>q\033Z\005"
               b"\033[?u\033[?2026$p\033]10;?\007\033]11;?\007\033]4;0;?\007\033[?996n",
    "modes": b"\033[?1000h\033[?1002h\033[?1003h\033[?1006h\033[?1004h\033[?2004h\033[?9001h",
    "printer": b"\033[5i printed \033[4i\033[i",
    "colours": b"\033[38;2;255;255;255;48;2;255;255;255m white on white \033[0m\033[8m hidden \033[0m",
    # Each as often as a terminal may be told.
    "huge numbers": b"x" + b"".join(b"\033[2147483647" + final.encode() for final in (
        *"@ABCDEFGHIJKLMPSTXZ`abdefgrst", "'}", "'~", " @", " A", ";2147483647H", ";2147483647r")),
    "unterminated": b"\033]0;" + b"A" * 300_000 + b"\033\\",
    "invalid utf-8": bytes(range(0x80, 0x100)) + b"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80",
    "controls": bytes(range(32)) + b"\x7f" + "".join(map(chr, range(0x80, 0xa0))).encode(),
    "bidirectional": "\u202eevil\u202c\u2066x\u2069\u200b\ufeff".encode(),
    "combining": ("e" + "\u0301" * 300_000 + "\u200d" * 100_000).encode(),
    "markup": MARKUP.encode(),
}


def probe(page):
    """What hostile content would change."""
    return page.evaluate("""({
        ran: window.ran ?? null, title: document.title, href: location.href, cookies: document.cookie,
        session: JSON.stringify({...sessionStorage}), local: JSON.stringify({...localStorage}),
        scripts: document.scripts.length,
        strange: document.querySelectorAll('main :is(img, svg, script, iframe, object, embed, video, audio, base, meta,'
            + ' link, form, a, canvas:not(.xterm-decoration-overview-ruler))').length,
        handlers: [...document.querySelectorAll('main *')].filter((one) => [...one.attributes].some((attribute) =>
            attribute.name.startsWith('on') || /javascript:/i.test(attribute.value))).length,
    })""")


def watch(page):
    page.browser.call("Target.setDiscoverTargets", {"discover": True})
    page.browser.targets.clear()
    page.browser.call("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        "browserContextId": page.context, "origin": page.origin})
    page.evaluate("navigator.clipboard.writeText('mine')")
    return probe(page)


def unharmed(page, before):
    assert probe(page) == before
    assert page.clipboard() == "mine"
    assert not page.events["Page.javascriptDialogOpening"]
    assert not [one for one in page.browser.targets if one["type"] not in ("page", "tab") or
                "evil" in one["url"]], page.browser.targets
    assert not [url for url in page.requests() if "evil" in url]


@pytest.mark.parametrize("tty", [True, False])
def test_every_escape(control, pages, tmp_path, tty):
    """Each escape is drawn, then clicked on, while the page may type: the program reads nothing but
    what the user types."""
    client = control.client()
    page = pages(control)
    before = watch(page)
    for number, (name, data) in enumerate(ESCAPES.items()):
        file = tmp_path / f"{number}"
        file.write_bytes(data)
        script = (
    f"{'stty raw -echo;' if tty else ''} cat {file}; printf '\\030\\033\\\\\\033[0m\\r\\nmark {number}\\r\\n';"
    " head -c 3 >got; od -An -c got; rm got; read x")
        process = client.start(["/bin/sh", "-c", script], cwd=f"file://{tmp_path}", tty=tty,
                               **({} if tty else {"pipeStdin": True}))
        show_process(page, f"mark {number}\\r")
        page.wait_rows(
    lambda rows,
    n=number: any(
        f"mark {n}" in row for row in rows),
         f"what follows {name}")
        page.press("t")
        page.wait("document.querySelector('.typing').checkVisibility()")
        x, y = page.evaluate("(({x, y}) => [x + 30, y + 8])(document.querySelector('.xterm-screen')"
                             ".getBoundingClientRect())")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            page.mouse(kind, x, y, button="left", clickCount=1, modifiers=2)
        if name == "modes":  # a program that asks for the mouse gets it from who may type
            page.press("L", "Control", "Shift")
        else:
            page.type("abc")
            page.wait_rows(
    lambda rows: any(
        "a   b   c" in row for row in rows),
         f"the input after {name}")
            page.press("L", "Control", "Shift")
        page.press("Escape")
        client.terminate(process)
        unharmed(page, before)


def test_absurd_sizes(console, pages):
    client = console.client()
    process = client.start(["/bin/sh", "-c", "read x; echo still drawn; read x"], tty=True,
                           size={"rows": 65535, "cols": 65535})
    page = pages(console)
    show_process(page, "drawn")
    client.ask("resize", process, size={"rows": 1, "cols": 1})
    client.ask("resize", process, size={"rows": 40000, "cols": 40000})
    client.ask("resize", process, size={"rows": 24, "cols": 80})
    client.write(process, "\n")
    page.wait_rows(lambda rows: len(rows) == 24 and "still drawn" in rows, "the output")


def test_links_are_text(console, pages):
    client = console.client()
    client.run(
    [
        "/bin/sh",
        "-c",
        "printf '\\033]8;;https://evil.example/\\033\\\\link\\033]8;;\\033\\\\ https://evil.example/\\n'"],
         tty=True)
    page = pages(console)
    before = watch(page)
    show_process(page, "evil")
    page.wait_rows(lambda rows: rows[0].startswith("link https"), "the output")
    x, y = page.evaluate(
        "(({x, y}) => [x, y + 8])(document.querySelector('.xterm-screen').getBoundingClientRect())")
    for column in (2, 15):
        spot = {"x": x + 9 * column, "y": y}
        page.mouse("mouseMoved", **spot)
        for modifiers in (0, 2, 8):
            for kind in ("mousePressed", "mouseReleased"):
                page.mouse(kind, **spot, button="left", clickCount=1, modifiers=modifiers)
    unharmed(page, before)


def test_markup_in_names(consoles, pages, tmp_path):
    place = tmp_path / MARKUP.replace("/", "-")
    place.mkdir()
    (place / MARKUP.replace("/", "-")).write_text(MARKUP)
    console = consoles()
    client = console.connect()
    client.initialize(name=MARKUP)
    client.start(["/bin/sh",
    "-c",
    f"echo here; read x # {MARKUP}\u202e\x1b]0;t\x07",
    MARKUP],
    cwd=str(place),
     tty=True)
    client.run(["/bin/sh", "-c", MARKUP + " >&2"])
    page = pages(console)
    before = watch(page)
    show_process(page, "echo here")
    page.wait_rows(lambda rows: "here" in rows, "the output")
    shown = page.text(".process .command")
    assert "onerror" in shown and "\\u{202e}" in shown and "\\e]0;t\\u{7}" in shown
    assert "onerror" in page.text(".facts")
    page.click(".facts .link")
    page.wait("document.querySelectorAll('.files .row').length === 1")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('.content pre')?.textContent.includes('onerror')")
    for view in ("2", "4"):
        page.press(view)
        page.wait(
            "[...document.querySelectorAll('.pane')].find((one) => !one.hidden).innerText.includes('onerror')")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('dialog pre')")
    page.press("Escape")
    page.press("3")
    page.evaluate("document.querySelector('.filespane input').value = "
                  f"{json.dumps('/nowhere/' + MARKUP.replace('/', '-'))}")
    page.click(".filespane .bar button", "Go")
    page.wait("document.getElementById('toast').textContent.includes('onerror')")
    unharmed(page, before)


# Neighbours: other origins, and another web server of the same host.

ATTACK = """<!doctype html><title>attack</title><body><script>
const target = %s;
const results = {};
const said = (name) => (value) => { results[name] = String(value).slice(0, 300); };
const socket = (url) => new Promise((done) => {
    const ws = new WebSocket(url);
    ws.onopen = () => done('open');
    ws.onerror = () => done('error');
});
const framed = () => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.src = target;
    frame.onload = () => { try { done('read ' + frame.contentDocument.body.innerText); } catch (e) { done('closed'); } };
    document.body.append(frame);
});
const load = (tag, attribute, path) => new Promise((done) => {
    const one = document.createElement(tag);
    one.onload = () => done('loaded');
    one.onerror = () => done('error');
    one[attribute] = target + path;
    if (tag === 'link') one.rel = 'stylesheet';
    document.body.append(one);
});
const opened = () => new Promise((done) => {
    const w = window.open(target);
    if (!w) done('none');
    setInterval(() => {  // until the new page is out of reach, or is read
        try {
            if (w.closed) done('closed');
            if (w.document.title) done('read ' + w.document.title);
        } catch (e) {
            done('closed');
        }
    }, 50);
});
window.finished = Promise.all([
    fetch(target + '/', {credentials: 'include'}).then((r) => r.text()).then(said('fetch'), said('fetch')),
    fetch(target + '/', {mode: 'no-cors'}).then((r) => r.text()).then(said('opaque'), said('opaque')),
    fetch(target + '/ws', {method: 'POST', body: '{}', mode: 'no-cors'}).then((r) => said('post')(r.type), said('post')),
    socket(target.replace('http', 'ws') + '/ws').then(said('socket')),
    socket(target.replace('http', 'ws') + '/').then(said('root')),
    framed().then(said('frame')),
    load('script', 'src', '/app.js').then(said('script')),
    load('img', 'src', '/icon.svg').then(said('image')),
    load('link', 'href', '/style.css').then(said('style')),
    opened().then(said('opened')),
]).then(() => JSON.stringify({...results, cookie: document.cookie}));
</script>"""


class Evil(http.server.BaseHTTPRequestHandler):
    """A web server that an agent started on this host."""

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        body = (ATTACK % json.dumps(self.server.target)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def evil():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    made.seen = []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_neighbour_on_another_port(control, pages, evil, host):
    """It is same-site, so cookies would reach it; there are none, and it gets nothing else."""
    viewer = pages(control)
    show = pages()
    evil.target = control.origin
    # In the profile of the viewer, who is signed in.
    made = viewer.browser.call("Target.createTarget", {
        "url": f"http://{host}:{evil.server_address[1]}/", "browserContextId": viewer.context})
    session = viewer.browser.call(
    "Target.attachToTarget", {
        "targetId": made["targetId"], "flatten": True})["sessionId"]
    show.session, old = session, show.session
    show.browser.pages[session] = show
    found = json.loads(show.wait("window.finished", "the attacks"))
    show.session = old
    assert found["cookie"] == ""
    assert "Cookie" not in {name for _, headers in evil.seen for name in headers}
    assert found["socket"] == found["root"] == "error", found
    assert "exec-server" not in found["fetch"] and "TypeError" in found["fetch"], found
    assert found["opaque"] in ("", "TypeError: Failed to fetch"), found
    assert found["frame"] == "closed" and found["script"] == "error", found
    assert found["style"] == "error" and found["image"] == "error", found
    assert found["opened"] in ("closed", "none"), found
    viewer.evaluate("1")
    ready(viewer)
    secret = list(json.loads(viewer.evaluate("JSON.stringify({...sessionStorage})")).values())[0]
    assert not any(secret in json.dumps(one) for one in evil.seen)


def test_rebinding(control, evil):
    """A name of another site that leads to this host gets nothing, whatever its port."""
    evil.target = f"http://evil.example:{control.port}"
    browser = Browser("--host-resolver-rules=MAP evil.example 127.0.0.1")
    try:
        page = browser.page()
        page.go(f"{evil.target}/#{control.token}")
        page.evaluate("1")
        answer, = [one["response"] for one in page.events["Network.responseReceived"]
                   if one["response"]["url"].startswith(evil.target) and one["type"] == "Document"]
        assert answer["status"] == 421 and not answer["headers"].get("Set-Cookie")
        # A page of that site, which shares its name with what it attacks.
        page.go(f"http://evil.example:{evil.server_address[1]}/")
        found = json.loads(page.wait("window.finished", "the attacks"))
        assert found["socket"] == found["root"] == "error", found
        assert found["script"] == found["style"] == found["image"] == "error", found
        assert found["frame"] == "closed" and "TypeError" in found["fetch"], found
        # The token that was in the URL is still its owner's.
        page.go(control.link)
        ready(page)
    finally:
        browser.close()

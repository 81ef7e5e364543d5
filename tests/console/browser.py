"""Debian's Chromium, headless, driven over the DevTools protocol through two pipes."""

import base64
import collections
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

from harness.waiting import Deadline, until

CHROMIUM = shutil.which("chromium")
# Nothing but what the page asks for; and no GPU, no sandbox for root.
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-gpu",
    "--mute-audio",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--hide-scrollbars",
     "--no-sandbox")
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
CODES = {"Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8, "ArrowUp": 38, "ArrowDown": 40,
         "ArrowLeft": 37, "ArrowRight": 39, "PageUp": 33, "PageDown": 34, "Home": 36, "End": 35}
TEXTS = {"Enter": "\r", "Tab": "\t"}


class DevToolsError(Exception):
    """The browser refused a command."""


class Browser:
    """One process; each page has a profile of its own."""

    def __init__(self, *options):
        self.directory = tempfile.mkdtemp(prefix="console-browser-")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        self.log = tempfile.TemporaryFile()
        command = [CHROMIUM, *OPTIONS, *options, f"--user-data-dir={self.directory}", "about:blank"]

        def place():
            """The browser reads commands from descriptor 3 and answers on 4."""
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, to_write)]
            for fd, number in zip(high, (3, 4)):
                os.dup2(fd, number)
        self.popen = subprocess.Popen(
            command, preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, start_new_session=True, env={**os.environ, "HOME": self.directory})
        os.close(to_read)
        os.close(to_write)
        self.buffer = bytearray()
        self.last = 0
        self.answers = {}
        self.pages = {}
        self.targets = []  # of type page, ever

    def send(self, method, params=None, session=None):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        return self.last

    def pump(self, seconds):
        """Files what has come; waits for something if there is nothing."""
        poll = select.poll()
        poll.register(self.back, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return
        data = os.read(self.back, 1 << 20)
        if not data:
            self.log.seek(0)
            raise AssertionError(f"the browser ended: {self.log.read()[-2000:]!r}")
        self.buffer += data
        while (end := self.buffer.find(b"\0")) >= 0:
            message = json.loads(self.buffer[:end])
            del self.buffer[:end + 1]
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].file(message["method"], message["params"])
            elif message["method"] == "Target.targetCreated":
                self.targets.append(message["params"]["targetInfo"])

    def call(self, method, params=None, session=None):
        ident = self.send(method, params, session)
        deadline = Deadline()
        while ident not in self.answers:
            if deadline.passed():
                raise AssertionError(f"the browser does not answer {method}")
            self.pump(deadline.left())
        answer = self.answers.pop(ident)
        if "error" in answer:
            raise DevToolsError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self, **options):
        return Page(self, **options)

    def close(self):
        try:
            self.call("Browser.close")
            self.popen.wait(Deadline(10).left())
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.popen.pid, 9)
            self.popen.wait()
        for fd in (self.to, self.back):
            os.close(fd)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Page:
    """A tab in a profile of its own, with everything that it did: requests, messages, dialogs."""

    def __init__(self, browser, size=(1280, 800), dark=False, touch=False):
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        made = browser.call(
    "Target.createTarget", {
        "url": "about:blank", "browserContextId": self.context})
        self.target = made["targetId"]
        self.session = browser.call("Target.attachToTarget",
                                    {"targetId": self.target, "flatten": True})["sessionId"]
        browser.pages[self.session] = self
        self.events = collections.defaultdict(list)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.downloads = os.path.join(browser.directory, f"downloads-{self.target}")
        os.mkdir(self.downloads)
        browser.call("Browser.setDownloadBehavior",
                     {"behavior": "allow", "browserContextId": self.context,
                      "downloadPath": self.downloads, "eventsEnabled": True})
        self.resize(size, touch)
        self.scheme(dark)

    def call(self, method, params=None):
        return self.browser.call(method, params, self.session)

    def file(self, method, params):
        self.events[method].append(params)
        if method == "Page.javascriptDialogOpening":  # nobody else would answer it
            self.browser.send("Page.handleJavaScriptDialog", {"accept": False}, self.session)

    # What a user has.

    def resize(self, size, touch=False):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": touch})
        self.call("Emulation.setTouchEmulationEnabled", {"enabled": touch})

    def scheme(self, dark):
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def go(self, url):
        return self.call("Page.navigate", {"url": url})

    def press(self, key, *modifiers):
        """Presses and releases a key: a character, or a name such as Enter."""
        bits = sum(MODIFIERS[name] for name in modifiers)
        letter = len(key) == 1
        params = {"key": key, "modifiers": bits}
        if letter and key.isalpha():
            params.update(code=f"Key{key.upper()}", windowsVirtualKeyCode=ord(key.upper()))
        elif key in CODES:
            params.update(code=key, windowsVirtualKeyCode=CODES[key])
        text = TEXTS.get(key, key if letter else "")
        down = {**params, "type": "keyDown" if text and not bits & 7 else "rawKeyDown"}
        if text and not bits & 7:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", down)
        self.call("Input.dispatchKeyEvent", {**params, "type": "keyUp"})

    def type(self, text):
        for key in text:
            self.press("Enter" if key == "\n" else key)

    def insert(self, text):
        self.call("Input.insertText", {"text": text})

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def click(self, selector, text=None):
        """Clicks the middle of the first visible element that fits, with a real mouse."""
        x, y = self.wait("""(() => {
            const fits = [...document.querySelectorAll(%s)].find((node) => node.checkVisibility() &&
                (%s === null || node.textContent.trim() === %s));
            fits?.scrollIntoView({block: 'nearest'});
            const box = fits?.getBoundingClientRect();
            return box?.width ? [box.x + box.width / 2, box.y + box.height / 2] : null;
        })()""" % (json.dumps(selector), json.dumps(text), json.dumps(text)), f"{selector} {text or ''}")
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def clipboard(self):
        """What a user would paste: the page itself may not read it."""
        self.evaluate("""(() => {
            window.before = document.activeElement;
            window.area = document.createElement('textarea');
            document.body.append(area);
            area.focus();
        })()""")
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": "v", "code": "KeyV", "modifiers": 2,
                                                 **({"commands": ["paste"]} if kind != "keyUp" else {})})
        return self.evaluate("""(() => {
            const { value } = area;
            area.remove();
            window.before?.focus();
            delete window.area;
            delete window.before;
            return value;
        })()""")

    # What a user sees.

    def evaluate(self, expression):
        done = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True,
                                              "awaitPromise": True, "userGesture": True})
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait(self, expression, what=None, seconds=None):
        """Waits until an expression is true in the page, and returns its value."""
        safe = (
    "(async () => { const value = await (%s); return value instanceof Node ? true : value; })()"
    ".catch(() => null)" %
     expression)
        try:
            return until(lambda: self.evaluate(safe), what or expression, seconds, every=0.03)
        except AssertionError as error:
            seen = self.evaluate("document.body.innerText.slice(0, 3000)")
            raise AssertionError(f"{error}\nthe page shows:\n{seen}") from None

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def rows(self):
        """The lines that the terminal shows, without blanks at their ends."""
        lines = self.evaluate(
            "[...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent)")
        return [line.replace("\u00a0", " ").rstrip() for line in lines]

    def wait_rows(self, predicate, what, seconds=None):
        try:
            return until(
    lambda: (
        lambda rows: rows if rows and predicate(rows) else None)(
            self.rows()),
            what,
            seconds,
             0.03)
        except AssertionError as error:
            raise AssertionError(
    f"{error}\nthe terminal shows:\n" +
    "\n".join(
        self.rows())) from None

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"})["data"])

    def saved(self):
        """Name and content of the one file that the browser has saved."""
        def done():
            self.evaluate("1")
            names = sorted(os.listdir(self.downloads))
            return names if names and not names[0].endswith(".crdownload") else None
        name, = until(done, "a download", every=0.05)
        path = os.path.join(self.downloads, name)
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        return name, data

    def requests(self):
        """URLs that the page asked for, WebSockets included."""
        return [event["request"]["url"] for event in self.events["Network.requestWillBeSent"]] + \
               [event["url"] for event in self.events["Network.webSocketCreated"]]

    def complaints(self):
        """Uncaught errors, and what the browser refused."""
        thrown = [event["exceptionDetails"]["exception"].get("description")
                  for event in self.events["Runtime.exceptionThrown"]]
        logged = [event["entry"]["text"] for event in self.events["Log.entryAdded"]
                  if event["entry"]["level"] == "error" and "WebSocket" not in event["entry"]["text"]]
        return thrown + logged

    def close(self):
        if self.session not in self.browser.pages:
            return
        self.browser.call("Target.disposeBrowserContext", {"browserContextId": self.context})
        self.browser.pages.pop(self.session, None)

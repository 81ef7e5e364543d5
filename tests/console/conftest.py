"""Servers with a console, and a browser that looks at them."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE)]
# pylint: disable=wrong-import-position
from browser import CHROMIUM, Browser
from viewer import Console, inside, ready


@pytest.fixture(scope="session")
def browser():
    assert CHROMIUM, "there is no chromium: tools/deps console"
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def consoles():
    """Starts servers: consoles(*options, control=False)."""
    made = []

    def start(*args, **options):
        made.append(Console(*args, **options))
        return made[-1]
    yield start
    for one in made:
        try:
            if one.popen.returncode is None:
                one.stop()
        finally:
            one.abandon()


@pytest.fixture
def console(consoles):  # pylint: disable=redefined-outer-name
    """A console that only looks."""
    return consoles()


@pytest.fixture
def control(consoles):  # pylint: disable=redefined-outer-name
    return consoles(control=True)


@pytest.fixture
def pages(browser):  # pylint: disable=redefined-outer-name
    """Opens pages; afterwards none of them has thrown an error, left its origin, or broken its policy."""
    made = []

    def show(server=None, link=None, **options):
        page = browser.page(**options)
        made.append(page)
        if server or link:
            page.origin = server.origin if server else None
            page.go(link or server.link)
            ready(page)
        return page
    yield show
    for page in [one for one in made if one.session in browser.pages]:
        page.evaluate("1")  # whatever was reported before has come
        complaints = page.complaints()
        outside = [url for url in page.requests() if page.origin and not inside(url, page.origin)]
        page.close()
        assert not complaints, complaints
        assert not outside, outside

"""libexecserver(3) documents what the header declares."""

import re
import subprocess

import pytest

from harness.header import HEADER as FILE
from harness.header import ROOT, Header

HEADER = Header()
PAGE = ROOT / "man" / "libexecserver.3"
TEXT = PAGE.read_text()
# The items of the page: .It Ft int Fn name "argument" "argument"
ITEMS = {m.group(2): (m.group(1), re.findall(r'"([^"]*)"', m.group(3)))
         for m in re.finditer(r"^\.It Ft (.+?) Fn (xs_\w+)(.*)$", TEXT, re.MULTILINE)}


def prototypes():
    """name: (result, arguments) as the header writes them."""
    text = re.sub(r"/\*.*?\*/", "", FILE.read_text(), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", re.sub(r"^#.*$", "", text, flags=re.MULTILINE))
    found = {}
    for part in text.split("XS_API ")[1:]:
        head, _, rest = part.partition(";")[0].partition("(")
        result, name = re.fullmatch(r"(.*?[ *])(\w+)", head.strip()).groups()
        found[name] = result.strip(), rest.rpartition(")")[0]
    return found


def test_it_is_free_of_faults():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", PAGE], capture_output=True,
                          text=True, check=False)
    assert done.stdout == ""


def test_every_function_is_an_item():
    assert sorted(ITEMS) == sorted(HEADER.functions)


@pytest.mark.parametrize("name", sorted(HEADER.functions))
def test_prototype(name):
    result, arguments = prototypes()[name]
    ours = ITEMS[name][0].replace(" Ns", "")
    assert ours == result
    assert ", ".join(ITEMS[name][1]) == ("" if arguments == "void" else arguments)


@pytest.mark.parametrize("name", sorted(n for n in HEADER.macros if n.startswith("XS_OPT_")))
def test_option(name):
    assert re.search(rf"\b{name}\b", TEXT)


@pytest.mark.parametrize("name", sorted(HEADER.constants))
def test_constant(name):
    assert re.search(rf"\b{name}\b", TEXT)

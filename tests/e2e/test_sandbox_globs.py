"""Patterns of denied files."""

import os

import pytest

from harness.sandbox import BUSY, DENIED, place, servers, uri, user

__all__ = ["place", "servers", "user"]

R, PR = "r :root", "w :project_roots"

FILES = ["a.env", "b.txt", ".env", ".hidden.env", "sub/c.env", "sub/deep/d.env", "sub.env/x",
         "node/ignored.env", "[br", "A.ENV", "sub/e.pem"]
ENVS = {"a.env", ".env", ".hidden.env", "sub/c.env", "sub/deep/d.env", "node/ignored.env"}

# Pattern (W is the workspace), depth, files denied. A suffix without a slash counts at every depth.
CASES = [
    ("W/*.env", None, ENVS),
    ("*.env", None, ENVS),
    ("./sub/*.env", None, {"sub/c.env", "sub/deep/d.env"}),
    ("W/**/*.env", None, ENVS),
    ("W/**/*.env", 1, {"a.env", ".env", ".hidden.env"}),
    ("W/**/*.env", 2, ENVS - {"sub/deep/d.env"}),
    ("W/*.env", 1, {"a.env", ".env", ".hidden.env"}),
    ("W/**", None, set(FILES)),
    ("W/sub/**", None, {"sub/c.env", "sub/deep/d.env", "sub/e.pem"}),
    ("W/sub*", None, set()),
    ("W/?.env", None, {"a.env", "sub/c.env", "sub/deep/d.env"}),
    ("W/[ab].*", None, {"a.env", "b.txt"}),
    ("W/[!a].*", None, {"b.txt", "A.ENV", "sub/c.env", "sub/deep/d.env", "sub/e.pem"}),
    ("W/*.{env,pem}", None, ENVS | {"sub/e.pem"}),
    ("W/**/*.{env,pem}", None, ENVS | {"sub/e.pem"}),
    ("W/{a,b}.*", None, {"a.env", "b.txt"}),
    ("W/[br", None, {"[br"}),
    ("W/!a*", None, set()),
    ("codex-project-roots://**/*.env", None, ENVS),
    ("~/*.env", None, set()),
    ("W/nope/*.env", None, set()),
    ("W/\\*.env", None, set()),
    ("W/*/c.env", None, {"sub/c.env"}),
    ("W/**/deep/*", None, {"sub/deep/d.env"}),
]


def fill(place):
    for name in FILES:
        place.put(f"ws/{name}")
    place.put("ws/.gitignore", "node\n")


def denied(place, *entries, **options):
    """Files of the workspace that cannot be read."""
    got = place.tries([f"cat '{name}'" for name in FILES], R, *entries, **options)
    assert set(got) <= {"content", DENIED}, got
    return {name for name, text in zip(FILES, got) if text == DENIED}


@pytest.mark.parametrize("pattern, depth, expected", CASES)
def test_patterns(place, pattern, depth, expected):
    fill(place)
    pattern = pattern.replace("W/", f"{place.ws}/")
    assert denied(place, f"d glob:{pattern}", depth=depth) == expected


@pytest.mark.parametrize("access", ["d", "n"])
def test_in_a_writable_root(place, access):
    fill(place)
    assert denied(place, PR, f"{access} glob:{place.ws}/**/*.env") == ENVS
    got = place.tries(["rm -f a.env", "mv a.env x", "stat -c '%a %s' a.env",
                       "mv sub s2; cat s2/c.env"], R, PR, f"{access} glob:{place.ws}/**/*.env")
    assert got == [BUSY, BUSY, "0 0", DENIED]
    assert (place.ws / "a.env").read_text() == "content\n"


@pytest.mark.parametrize("access", ["r", "w"])
def test_only_denial_has_an_effect(place, access):
    fill(place)
    assert denied(place, f"{access} glob:{place.ws}/*.env") == set()
    assert place.tries(["echo x >a.env"], R, f"{access} glob:{place.ws}/*.env") != ["ok"]


def test_several_patterns(place):
    fill(place)
    assert denied(place, f"d glob:{place.ws}/*.txt", "d glob:sub/*.pem", f"d glob:{place.ws}/[[]*"
                  ) == {"b.txt", "sub/e.pem", "[br"}


def test_relative_to_the_sandbox_directory(place):
    fill(place)
    assert denied(place, "d glob:*.env") == ENVS
    got = place.tries(["cat a.env", "cat sub/c.env", "cat sub/deep/d.env"], R, "d glob:*.env",
                      cwd=uri(place.path("ws/sub")))
    assert got == ["content", DENIED, DENIED]


def test_expanded_once(place):
    fill(place)
    assert place.tries(["echo x >new.env", "cat new.env"], R, PR, f"d glob:{place.ws}/*.env") == [
        "ok", "x"]


def test_link_masks_what_it_leads_to(place):
    place.put("outside/secret")
    place.put("ws/real")
    place.link("ws/a.env", "real")
    place.link("ws/b.env", "../outside/secret")
    place.link("ws/c.env", "nowhere")
    place.mkdir("elsewhere")
    place.put("elsewhere/f.env")
    place.link("ws/dir", "../elsewhere")
    for entries in ([R], [R, PR]):
        got = place.tries(["cat a.env", "cat real", "cat b.env", "cat ../outside/secret",
                           "cat dir/f.env"], *entries, f"d glob:{place.ws}/**/*.env")
        assert got == [DENIED] * 4 + ["content"]


@pytest.mark.parametrize("pattern", ["/*.txt", "/**/*.txt", "/etc"])
def test_without_a_directory(place, pattern):
    code, text = place.error(R, f"d glob:{pattern}")
    assert code == -32603
    assert f"unreadable glob `{pattern}` cannot be safely expanded" in text


def test_without_a_metacharacter(place):
    place.put("ws/f.txt")
    code, text = place.error(R, f"d glob:{place.ws}/f.txt")
    assert code == -32603 and "cannot be safely expanded" in text


@pytest.mark.parametrize("pattern", ["*{a", "x{a,{b}*"])
def test_malformed(place, pattern):
    code, text = place.error(R, f"d glob:{place.ws}/{pattern}")
    assert code == -32603 and pattern in text and "unclosed alternate group" in text


def test_many_matches(place):
    for i in range(3000):
        (place.ws / f"{i}.env").touch()
    got = place.tries(["cat 0.env", "cat 2999.env", "echo fine"], R, f"d glob:{place.ws}/*.env")
    assert got == [DENIED, DENIED, "fine"]


def test_too_many_matches(place):
    for i in range(8193):
        (place.ws / f"{i}.env").touch()
    code, text = place.error(R, f"d glob:{place.ws}/*.env")
    assert code == -32603
    assert f"unreadable glob expansion for {place.ws} matched more than 8192 paths" in text
    os.unlink(place.ws / "0.env")
    assert place.tries(["cat 8192.env"], R, f"d glob:{place.ws}/*.env") == [DENIED]


def test_odd_names(place):
    for name in ("a b.env", "ü.env", "'q.env", "line\nbreak.env", "-x.env"):
        place.put(f"ws/{name}")
    got = place.tries(["cat 'a b.env'", "cat ü.env", "cat \"'q.env\"", "cat line*break.env",
                       "cat -- -x.env"], R, f"d glob:{place.ws}/*.env")
    assert got == [DENIED] * 5


def test_with_ripgrep_on_the_path_or_not(place):
    """What is on the command's PATH decides nothing."""
    fill(place)
    place.put("bin/rg", "#!/bin/sh\nexit 2\n", 0o755)
    path = f"{place.base}/bin:/usr/bin:/bin"
    assert denied(place, f"d glob:{place.ws}/*.env", env={"PATH": path}) == ENVS

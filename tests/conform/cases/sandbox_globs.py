"""Patterns of paths that are denied. Where ripgrep is to be found the reference uses it, and then
a pattern without a slash matches at every depth; ours always means both."""

import os
import urllib.parse

from harness.case import case
from harness.sandbox import PATH, Place, context, managed

TREE = ["ws/a.env", "ws/b.txt", "ws/.env", "ws/.hidden.env", "ws/sub/c.env", "ws/sub/deep/d.env",
        "ws/sub.env/x", "ws/node/ignored.env", "ws/.gitignore=node\n", "ws/[br", "ws/A.ENV",
        "ws/sub/e.pem"]
SHOW = ("for f in a.env b.txt .env .hidden.env sub/c.env sub/deep/d.env sub.env/x "
        "node/ignored.env '[br' A.ENV sub/e.pem; do if cat \"$f\" >/dev/null 2>&1; "
        "then echo \"+$f\"; else echo \"-$f\"; fi; done")
PATTERNS = ["@/ws/*.env", "*.env", "./sub/*.env", "@/ws/**/*.env", "@/ws/**", "@/ws/sub/**",
            "@/ws/sub*", "@/ws/?.env", "@/ws/[ab].*", "@/ws/[!a].*", "@/ws/*.{env,pem}",
            "@/ws/sub/*", "@/ws/*/*.env", "@/ws/[br", "@/ws/\\[br*", "@/ws/!a*",
            "codex-project-roots://**/*.env", "~/*.env", "@/ws/nope/*.env", "@/ws/*{a",
            "@/ws/\\*.env", "@/ws/b.txt", "/*.env"]


async def ripgrep(t):
    """A PATH with the one that comes with the reference."""
    c = await t.open()
    answer = await c.take(c.post("initialize", {"clientName": "conform"}))
    t.learn_session(answer)
    link = os.path.join(t.dir, "path")
    for uri in answer["result"]["environmentInfo"].get("prependPathDirs", []):
        os.symlink(urllib.parse.unquote(uri.removeprefix("file://")), link)
    return f"{link}:{PATH}"


def add(pattern):
    @case(pattern.replace("@/ws", "DIR"))
    async def one(t):
        place = await Place.open(t)
        place.make(*TREE)
        sandbox = context(["r :root", f"d glob:{pattern}"])
        t.see("alone", await place.run(SHOW, sandbox))
        t.see("with ripgrep", await place.run(SHOW, sandbox, env={"PATH": await ripgrep(t)}))


for _pattern in PATTERNS:
    add(_pattern)


@case("depth")
async def depth(t):
    place = await Place.open(t)
    place.make(*TREE)
    for n in (1, 2, 3):
        profile = managed("r :root", "d glob:@/ws/**/*.env", glob_scan_max_depth=n)
        t.see(str(n), await place.run(SHOW, context(profile)))


@case("access")
async def access(t):
    """Only what is denied counts."""
    place = await Place.open(t)
    place.make(*TREE)
    for entry in ("n glob:@/ws/**/*.env", "r glob:@/ws/**/*.env", "w glob:@/ws/**/*.env"):
        t.see(entry[0], await place.run(SHOW, context(["r :root", entry])))
    await place.see("in a writable root", SHOW + "; rm a.env; mv sub/c.env x; touch n.env",
                    context(["r :root", "w :project_roots", "d glob:@/ws/**/*.env"]))


@case("links")
async def links(t):
    place = await Place.open(t)
    for name, profile in (("read", ["r :root"]), ("work", ["r :root", "w :project_roots"])):
        place.make("ws/real/s.env", "ws/l.env->real/s.env", "ws/d->real", "out/o.env")
        await place.see(name, "cat real/s.env; cat l.env; cat d/s.env",
                        context([*profile, "d glob:@/ws/*.env"]))


@case("too many")
async def too_many(t):
    place = await Place.open(t)
    for count in (8193, 1900):
        place.make(*(f"big/{n}.env" for n in range(count)))
        t.see(str(count), await place.run("cat @/big/7.env", context(["r :root",
                                                                     "d glob:@/big/*.env"])))

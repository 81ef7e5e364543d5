"""Forms of the working directory."""

import os
import urllib.parse

from harness.case import case

FORMS = ["file:///tmp", "file:/tmp", "file:tmp", "file://localhost/tmp", "file:///tmp/",
         "file:///%74mp", "file:///tmp/../usr", "file:///tmp/./", "file:///tmp//", "FILE:///tmp",
         "file:////tmp", "file:///", "file:", "file://", "tmp", "", "file://server/share",
         "file://127.0.0.1/tmp", "file:///C:/x", "file:///c:", "file:///C|/x",
         "file://LOCALHOST/tmp",
         "http:///tmp", "http://x/tmp", "x:/tmp", ":/tmp", "file:///tmp?x=1", "file:///tmp?",
         "file:///tmp#x", "file:///tmp#", "file:///tmp%00x", "file:///tmp/%zz", "file:///tmp/%",
         "file:///tmp%2f", "file:///tmp/%2e%2e/usr", " file:///tmp", "file:///tmp ",
         "file:///tmp\n",
         "file:///tm\tp", "file:\\\\\\tmp", "file:///%C3%A9", "file:///é", "file:///%ff",
         "file://user@localhost/tmp", "file://localhost:80/tmp", "file://local%68ost/tmp",
         "file:///..", "file:///../../tmp", "file:///tmp/a/..", "//tmp", "file:///tmp;x",
         "file:/tmp/.."]


@case("forms")
async def forms(t):
    c = await t.connect()
    for n, uri in enumerate(FORMS):
        t.see(uri, await c.finish_of(["/bin/pwd"], processId=str(n), cwd=uri))


@case("odd names")
async def odd_names(t):
    c = await t.connect()
    for n, name in enumerate(["sp ace", "per%41cent", "ha#sh", "que?ry", "é☃", "plus+&=", "a;b",
                              "back\\slash", "new\nline", "quo'te\""]):
        t.file(f"{name}/x")
        uri = "file://" + urllib.parse.quote(f"{t.dir}/{name}")
        t.see(name, await c.finish_of(["/bin/pwd"], processId=str(n), cwd=uri))
        p = await c.finish_of("pwd; ls", processId=f"sh{n}", cwd=uri)
        t.see(f"{name} listed", p.get("stdout"))


@case("unescaped names")
async def unescaped(t):
    """What a URI parser makes of characters that should have been escaped."""
    c = await t.connect()
    for n, name in enumerate(["sp ace", "é☃", "a|b", "a\"b", "a<b>", "a`b", "a{b}", "a^b",
                              "a[b]"]):
        t.file(f"{name}/x")
        t.see(name, await c.finish_of(["/bin/pwd"], processId=str(n),
                                      cwd=f"file://{t.dir}/{name}"))


@case("links and permissions")
async def links(t):
    c = await t.connect()
    os.mkdir(f"{t.dir}/real")
    os.symlink("real", f"{t.dir}/link")
    os.symlink("nowhere", f"{t.dir}/dangling")
    for name in ("link", "dangling", "real/../link"):
        t.see(name, await c.finish_of(["/bin/pwd"], processId=name, cwd=f"file://{t.dir}/{name}"))


@case("missing on a terminal")
async def missing_tty(t):
    """The reference silently starts in the home directory."""
    c = await t.connect()
    for label, cwd, env in (("missing", "file:///nonexistent/zz", {"HOME": "/usr"}),
                            ("file", "file:///etc/passwd", {"HOME": "/usr"})):
        p = await c.finish_of(["/bin/pwd"], processId=label, cwd=cwd, env=env, tty=True)
        t.see(label, p["start"])


@case("missing, and missing home")
async def missing_home(t):
    c = await t.connect()
    for tty in (False, True):
        p = await c.finish_of(["/bin/pwd"], processId=str(tty), cwd="file:///nonexistent/zz",
                              env={"HOME": "/nonexistent2"}, tty=tty)
        t.see(f"tty {tty}", p["start"])

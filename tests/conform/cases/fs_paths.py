"""Forms of paths: what is accepted, what it means, and how a refused one is echoed."""

import asyncio
import base64
import os
import urllib.parse

from harness.case import case
from harness.fscase import WALK, Files, masked

# ROOT stands for the tree without its leading slash, TOP for its last component.
FORMS = """
/ROOT/f|f|./f||~|~/x|C:\\x|C:/x|file:|file:/|file://|file:///|FILE:///ROOT/f|File:/ROOT/f
file:/ROOT/f|file:ROOT/f|file:f|file://localhost/ROOT/f|file://LOCALHOST/ROOT/f
file://127.0.0.1/ROOT/f|file://server/ROOT/f|file://user@localhost/ROOT/f
file://localhost:80/ROOT/f|file://[::1]/ROOT/f|file:////ROOT/f|file://///ROOT/f|file:///ROOT//f
file:///ROOT///d//f|file:///ROOT/./f|file:///ROOT/d/../f|file:///../../ROOT/f
file:///ROOT/%2e%2e/TOP/f|file:///ROOT/%2E/f|file:///ROOT/.%2e/TOP/f|file:///ROOT/%2e./TOP/f
file:///ROOT/f/|file:///ROOT/f//|file:///ROOT/f/.|file:///ROOT/f?x=1|file:///ROOT/f#frag
file:///ROOT/f?|file:///ROOT/f#|file:///ROOT/f?#|file:///ROOT/f#?|file:?|file:#
file:///ROOT/sp ace|file:///ROOT/sp%20ace|file:///ROOT/per%cent|file:///ROOT/per%25cent
file:///ROOT/q%3Fx|file:///ROOT/h%23x|file:///ROOT/back\\slash|file:///ROOT/back%5Cslash
file:\\\\\\ROOT\\f|file:\\ROOT\\f|file:///ROOT/n%FF|file:///ROOT/n%ff|file:///ROOT/%C3%BCn%C3%AF
file:///ROOT/ünï|file:///ROOT/n\ufffd|file:///ROOT/d%2Fe%2Ff|file:///ROOT%2Ff|file:///ROOT/%00
file:///ROOT/a%00b|file:///ROOT/new\nline|file:///ROOT/new%0Aline|file:///ROOT/tab\tx
file:///ROOT/tab%09x|  file:///ROOT/f  |\0file:///ROOT/f|file:///ROOT/f\x1f|file:///ROOT/f\x7f
file:///ROOT/semi;colon|file:///ROOT/%2541|file:///ROOT/%41|file:///ROOT/ trail 
file:///ROOT/%20trail%20|file:///ROOT/C:|file:///C:/x|file:///c:/x|file:///C%7C/x|file:///C%3A/x
file:///c%3a|file:///C:|file:///C|file:C:/x|file:/C:|file://C:/x|file://c:|file://C%3A/x|file:///~
file:///~/x|http://x/y|ftp:///ROOT/f|unix:///x|file+x:///x|HTTP:x|a:b|1:b|-:b|:x|:|x:|file;x|file
FILE|file:///%zz|file:///ROOT/%|file:///ROOT/%4|file:///ROOT/%4g|//ROOT/f|\\\\ROOT\\f
file://./ROOT/f|file://../ROOT/f|file:./f|file:../f
file:///ROOT/../../../../../../../../../../ROOT/f|file:///ROOT/..|file:///%2fROOT/f
file:///ROOT/d%2F..%2Ff|file:///ROOT/d/e/..%2f..%2ff|file:///ROOT/d/e/../|file:///ROOT/nope/../f
file:///ROOT/dl/../f|file:///ROOT/dl%2F..%2Ff|file:///ROOT/d/.|file:///ROOT/d/%2e|file:///ROOT/...
file:///ROOT/d/...|file:///ROOT/%2e%2e%2e|file://h/x|file://h|file://h/|file://h?x|file://h#x
file://@h/x|file://h@/x|file://a b/x|file://%41/x|file://h./x|file://1.2.3/x|file://0x7f.1/x
file://256.1.1.1/x|file://1.2.3.4.5/x|file://[::1/x|file://[x]/x|file://h:/x|file://h|/x
file://h:80|file://bücher/x|file://BÜCHER/x|file://xn--bcher-kva/x|file://☃/x|file://h_x/x
file://h%20x/x|file://h%2fx/x|file://h<x/x|file://localhost./ROOT/f|file://local%68ost/ROOT/f
file:// /x|file://a%/x|file://a^b/x|file://-/x|file://a..b/x|file://.|file://..|file://%2e/x
file:///C:a|file:///C:%2Fa|file:///%43:/a|file:////C:/x|file:////h/x|file:///%5C%5Cserver/x
file:///x/C:/y|file:///C:/../x|file:///c:/../x|file:///C:/./x|file:///C:/|file:///C://x
file:///C:\\x|file:///1:/x|file:///é:/x|file:///CC:/x|file:///./C:/x|file:///x/../C:/y
file:///%2e/C:/x|file:///%2FC:/x|file:\\C:\\x|file:C:|file:C|file:c:x|file:///C:?|file:///C:#
file:///C: |file:///C:%20|file:/%43%3A/x|file://h/a b|file://h/é|file://h/%c3%a9|file://h/%7e~
file://h/%41|file://h/a//b///c|file://h/a/./b|file://h/a/../b|file://h/a/%2e%2E/b|file://h//a
file://h///|file://H/A|file://h/a/|file://h/a/.|file://h/a/..|file://h/../x|file://h/C:/x
file://h/c:/x|file://h/C:/../x|file://h\\x|file://h/\\x\\y|file://h/a\tb\nc\rd|file://h/%
file://h/%g1|file://h/%1|file://h/%00|file://h/x%00y|file://h/\x01\x1f\x7f
file://h/!"$%&'()*+,-./0123456789:;<=>@ABCXYZ[]^_`abcxyz{}~|file:///ROOT/\0x|file:///\0
file:///ROOT/x\0y|fi\tle:///ROOT/f|f\nile:/ROOT/f|file\r:///ROOT/f|file:\t///ROOT/f
\tfile:///ROOT/f\t|file :///ROOT/f| file:///ROOT/f|file:///ROOT/é%FF|file:///ROOT/\u2028
file:///ROOT/\U0001f600|file:///ROOT/\u00a0|\u00a0file:///ROOT/f|file:///ROOT/f\u3000
"""
PIPES = ["file:///C|/x", "file:///c|", "file:///x/C|/y", "file://h/C|/x", "file:///C|/../x",
         "file:///ROOT/a|b", "file:///ROOT/a%7Cb", "file://C|/x", "file:C|", "file:C|/x",
         "file://h|/x"]

NAMES = ["sp ace", "per%cent", "per%25cent", "q?x", "h#x", "back\\slash", "ünï", "tab\tx",
         "new\nline", "semi;colon", " trail ", "C:", "a|b", "%41", "A", "%", "%4", "~", "...",
         "\x01\x7f", "quo\"te", "!\"#$%&'()*+,-.0123456789:;<=>?@AZ[\\]^_`az{|}~", "☃\U0001f600",
         "-rf", "\u2028", "x\u0301", b"n\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
         b"a\xe2\x82b"]


def forms():
    return [f for line in FORMS.strip("\n").split("\n") for f in line.split("|")] + PIPES


def odd_names(files):
    for name in NAMES:
        path = files.path(name)
        with open(path, "wb") as f:
            f.write(b"content of " + (name if isinstance(name, bytes) else name.encode()))


async def try_forms(t, method, **params):
    files = await Files.open(t)
    odd_names(files)
    for form in dict.fromkeys(forms()):
        uri = form.replace("ROOT", files.root[1:]).replace("TOP", os.path.basename(files.root))
        if not uri.startswith("/"):  # a case of its own
            t.see(form, await files.c.call(f"fs/{method}", {"path": uri, **params}))


@case("forms")
async def readings(t):
    await try_forms(t, "readFile")


@case("forms without following")
async def readings_no_follow(t):
    await try_forms(t, "readFile", followSymlinks=False)


@case("forms to canonicalize")
async def canonical(t):
    await try_forms(t, "canonicalize")


@case("other fields")
async def other_fields(t):
    """Every field that is a path takes the same forms."""
    files = await Files.open(t)
    for form in ("x", "", "http://x", "file:///C:/x", "file://h/x", "file:///x?y", "file:///x#y",
                 "file:///a%00b", f"file:{files.root}/f?"):
        for method, params in (
                ("open", {"handleId": "h", "path": form}),
                ("writeFile", {"path": form, "dataBase64": ""}),
                ("createDirectory", {"path": form}), ("remove", {"path": form, "recursive": False}),
                ("readDirectory", {"path": form}), ("walk", {"path": form, "options": WALK}),
                ("copy", {"sourcePath": form, "destinationPath": files.uri("new"),
                          "recursive": False}),
                ("copy", {"sourcePath": files.uri("f"), "destinationPath": form,
                          "recursive": False}),
                ("copy", {"sourcePath": form, "destinationPath": form + "2", "recursive": False}),
                ("copy", {"sourcePath": "file:///C:/x", "destinationPath": form,
                          "recursive": False})):
            shown = {k: str(v).replace(files.root, "<root>") for k, v in params.items()}
            t.see(f"{method} {shown}", await files.c.call(f"fs/{method}", params))


@case("native")
async def native(t):
    """Native paths were those of April."""
    files = await Files.open(t)
    root = files.root
    for path in (f"{root}/f", f"{root}//d/../f/", f"{root}/per%25cent", f"/{root}/f", "/nope", "/",
                 "/a\0b",
                 f"{root}/ünï", f" {root}/f", f"{root}/f "):
        shown = path.replace(root, "<root>")
        t.see(f"metadata {shown}", masked(await files.c.call("fs/getMetadata", {"path": path})))
        t.see(f"canonicalize {shown}", await files.c.call("fs/canonicalize", {"path": path}))
    for label, method, params in (
            ("writeFile", "writeFile", {"path": f"{root}/f", "dataBase64": "eA=="}),
            ("createDirectory", "createDirectory", {"path": f"{root}/a/b"}),
            ("remove", "remove", {"path": f"{root}/full"}),
            ("copy", "copy", {"sourcePath": f"{root}/f", "destinationPath": f"{root}/new",
                              "recursive": False}),
            ("watch", "watchMissing", {"watchId": 1, "missing": [f"{root}/nope"],
                                       "present": f"{root}/f"})):
        await files.effect(label, method, **params)


@case("emitted names")
async def emitted(t):
    """How odd names come back from canonicalize, walk and readDirectory, and can be used again."""
    files = await Files.open(t)
    odd_names(files)
    for name in NAMES:
        text = name if isinstance(name, bytes) else name.encode()
        for quote_all in (False, True):
            quoted = "".join(f"%{b:02x}" for b in text) if quote_all else urllib.parse.quote(text)
            uri = f"file://{files.root}/{quoted}"
            t.see(f"{name!r} {quote_all}", await files.c.call("fs/canonicalize", {"path": uri}))
            t.see(f"{name!r} {quote_all} read", await files.c.call("fs/readFile", {"path": uri}))
    await files.see("readDirectory", "readDirectory", "")
    walked = await files.call("walk", "", options=WALK)
    t.see("walk", walked)
    for entry in walked["entries"]:
        if entry["kind"] == "file":
            t.see("again " + entry["path"].replace(files.root, ""),
                  await files.c.call("fs/readFile", {"path": entry["path"]}))
    for name in NAMES:
        answer = await files.call("readFile", name, followSymlinks=False)
        t.see(f"no-follow {name!r}", answer)


def opaque(path):
    return "file:///%00/bad/path/" + base64.urlsafe_b64encode(path).rstrip(b"=").decode()


@case("opaque form")
async def opaque_form(t):
    files = await Files.open(t)
    for label, uri in [(str(p), opaque(p)) for p in (
            b"/etc/passwd", b"/C:/x", b"/C:", b"/c:/x", b"/etc/a\0b", b"relative", b"", b"/",
            b"//C:/x",
            b"/C:/../x", b"/C:/./x", b"/C:/x/", b"/C:a", b"/\xff", b"/x/C:", b"C:/x", b"/C|/x",
            b"/1:/x",
            b"C\0:\0\\\0x\0", b"/C:\0", b"/c:/\xff", b"/C:/%41")] + [
            (u, u) for u in (
                "file:///%00/bad/path/", "file:///%00/bad/path", "file:///%00/bad/path/YQ==",
                "file:///%00/bad/path/YQ", "file:///%00/bad/path/L0M6L3g=",
                "file:///%00/bad/path/L0M6/x",
                "file:///%00/bad/path/L0M6L3h", "file:///%00/bad/path/L0M6L3g/",
                "file:///%00/bad/path//L0M6",
                "file:///%00/bad/pat/L0M6", "file:///%00/Bad/path/L0M6", "file:///%00",
                "file:///%00/",
                "file://h/%00/bad/path/L0M6", "file:/%00/bad/path/L0M6", "file:%00/bad/path/L0M6",
                "file:////%00/bad/path/L0M6", "file:///x/../%00/bad/path/L0M6",
                "file:///%00/bad/path/%4C0M6",
                "file:///%00/bad/path/+/8", "file:///%00/bad/path/-_8",
                "file:///%00/bad/path/L0M6 ",
                "file:///\0/bad/path/L0M6", "file:///%00/bad/path/L0M6?",
                "file:///%00/bad/path/L0M6#",
                "file://localhost/%00/bad/path/L0M6", "file:///%00\\bad\\path\\L0M6")]:
        t.see(label, await files.c.call("fs/getMetadata", {"path": uri}))


DRIVE = "/Q:"
DRIVE_LOCK = asyncio.Lock()


@case("below a drive-like name")
async def drive(t):
    """The one place that must be in the root directory; the two sides take turns."""
    files = await Files.open(t)
    async with DRIVE_LOCK:
        os.makedirs(DRIVE + "/sub", exist_ok=True)
        try:
            with open(DRIVE + "/x", "w", encoding="ascii") as f:
                f.write("on Q")
            os.symlink(DRIVE + "/x", files.path("to-drive"))
            for name in ("", "/x", "/sub", "/nope", "/sub/../x"):
                uri = opaque((DRIVE + name).encode())
                for method in ("readFile", "canonicalize", "readDirectory", "open"):
                    t.see(f"{method} {name}", await files.call(method, path=uri, handleId=name))
                t.see(f"walk {name}", await files.call("walk", path=uri, options=WALK))
                t.see(f"ordinary {name}", await files.call("readFile",
                                                           path=f"file://{DRIVE}{name}"))
            await files.see("canonicalize a link to it", "canonicalize", "to-drive")
            await files.see("read a link to it", "readFile", "to-drive")
            t.see("write", await files.call("writeFile", path=opaque((DRIVE + "/x").encode()),
                                            dataBase64="bmV3"))
            t.see("written", open(DRIVE + "/x", encoding="ascii").read())
        finally:
            for name in ("/x", "/sub", ""):
                (os.unlink if name == "/x" else os.rmdir)(DRIVE + name)

"""Forms of URIs in the sandbox object: as a permission, a working directory, a root."""

from harness.case import case
from harness.sandbox import Place, context

FORMS = ["file://@/ws/sub%20dir", "file://@/ws/./sub%20dir", "file:///tmp/..@/ws/sub%20dir",
         "file://@/ws/sub dir", "file://localhost@/ws/sub%20dir", "file:@/ws/sub%20dir",
         "file://@/ws/x%00y", "file://@/ws/sub%20dir?q#f", "file://@/ws/a+b%23c",
         "file://@/ws/%C3%BCn%C3%AF", "file://@/ws/ünï"]
# The reference never answers a request that has one of these as a permission, and the connection
# is lost. Other places are fine but for the second.
SLASH, BYTE, ENCODED = "file://@/ws/sub%20dir/", "file://@/ws/%FF", "file://@/ws/x%2Fy"
TREE = ["ws/sub dir/", "ws/a+b#c/", "ws/ünï/", "ws/x/y/"]
WRITE = ("for d in 'sub dir' 'a+b#c' ünï x/y; do touch \"$d/zz\" 2>/dev/null && echo \"$d\"; done; "
         "echo done")


def add(form, permission=True, others=True):
    @case(form.replace("@/ws", "DIR").replace("@", ""))
    async def one(t):
        place = await Place.open(t)
        rows = []
        if permission:
            rows += [("written", ["r :root", f"w {form}"], {}),
                     ("read", ["r :root", f"r {form}"], {}),
                     ("denied", ["r :root", "w :project_roots", f"d {form}"], {})]
        if others:
            rows += [("cwd", ["r :root"], {"cwd": form}),
                     ("root", ["r :root", "w :project_roots"], {"roots": [form]})]
        for name, profile, more in rows:
            place.make(*TREE)
            await place.see(name, WRITE, context(profile, **more))
        t.see("metadata", await place.call("getMetadata", path=form, followSymlinks=False))


for _form in FORMS:
    add(_form)
add(SLASH, permission=False)
add(ENCODED, permission=False)
add(BYTE, permission=False, others=False)


@case("root of the host")
async def host_root(t):
    place = await Place.open(t)
    for name, profile, more in (
            ("written", ["r :root", "w file:///"], {}), ("read", ["r :root", "r file:///"], {}),
            ("cwd", ["r :root"], {"cwd": "file:///"}),
            ("root", ["r :root", "w :project_roots"], {"roots": ["file:///"]})):
        place.make(*TREE)
        await place.see(name, WRITE, context(profile, **more), alone=True)

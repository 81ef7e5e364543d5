"""One message with one character removed, added or replaced, at every place."""

from harness.case import case

BASE = '{"id":1,"method":"environment/status","params":null}'
ALPHABET = '"\\{}[],:x0-.\n'


async def try_all(t, texts):
    """Sends every text; opens a new connection when the server ended the last one."""
    c = await t.connect()
    for label, text in texts:
        seen = await c.exchange(text)
        t.see(label, seen)
        if seen["connection"] != "open":
            await c.close()
            c = await t.connect()


@case("removed")
async def removed(t):
    await try_all(t, [(f"{i} {BASE[i]}", BASE[:i] + BASE[i + 1:]) for i in range(len(BASE))])


@case("cut off")
async def cut_off(t):
    await try_all(t, [(str(i), BASE[:i]) for i in range(len(BASE))])


def add(character):
    @case(f"added {character!r}")
    async def added(t):
        await try_all(t, [(str(i), BASE[:i] + character + BASE[i:])
                          for i in range(len(BASE) + 1)])

    @case(f"replaced by {character!r}")
    async def replaced(t):
        await try_all(t, [(str(i), BASE[:i] + character + BASE[i + 1:])
                          for i in range(len(BASE)) if BASE[i] != character])


for _character in ALPHABET:
    add(_character)

"""Environment: exact mode, the policy in full, metadata, names that never reach a child."""

from harness.case import case

POLICY = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [], "set": {},
          "includeOnly": []}
THREAD = "11111111-2222-3333-4444-555555555555"
META = {"threadId": THREAD, "toolCallId": "call_1"}
# Letters that have another case, by the tables of this interpreter and some of later ones.
PAIRS = {c: c.lower() for c in map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x20000)])
         if len(c.lower()) == 1 and c.lower() != c}
PAIRS |= {chr(c): chr(c + d) for first, last, d in [
    (0xA7CC, 0xA7CC, 1), (0xA7CE, 0xA7CE, 1), (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1),
    (0xA7DA, 0xA7DA, 1), (0x1C89, 0x1C89, 1), (0x10D50, 0x10D65, 32), (0x16EA0, 0x16EB8, 27),
    ] for c in range(first, last + 1)}
UPPER = sorted({*PAIRS, "\u03c2", "\u0130", "\u1e9b"})
RESTRICTED = {
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN": "1", "NODE_REPL_AUTH_TOKEN": "1",
    "OPENAI_FEDERATION_RULE_ID": "1", "OPENAI_IDENTITY_TOKEN_FILE": "1",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT": "1", "CODEX_GUARDIAN_DECISIONS_API_KEY": "1",
    "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE": "1", "CODEX_TOOL_CALL_ID": "1",
    "CODEX_SESSION_ID": "1", "OK": "1",
}


def policy(**more):
    return {**POLICY, **more}


def swapped(names):
    return {k.swapcase(): v for k, v in names.items()}


async def environment(c, process_id, **more):
    """The environment of a child as a list in the order it was given."""
    p = await c.start(["/usr/bin/env", "-0"], processId=process_id, **more)
    if not isinstance(p.response, dict):
        return p.response
    await p.until_closed()
    text = p.text("pty" if more.get("tty") else "stdout")
    names = [v for v in text.split("\0") if v]
    return {"order": [v.partition("=")[0] for v in names],
            "values": {v.partition("=")[0]: v.partition("=")[2] for v in names}}


CASES = {
    "exact empty": {"env": {}},
    "exact": {"env": {"Z": "1", "A": "2", "M": "3", "B": "4", "a": "5", "É": "6"}},
    "exact odd names": {"env": {"A=B": "ab", "": "cd", "C": "", "D D": " "}},
    "inherit all": {"env": {}, "envPolicy": policy()},
    "inherit all, no default excludes": {"env": {}, "envPolicy":
                                         policy(ignoreDefaultExcludes=True)},
    "inherit core": {"env": {}, "envPolicy": policy(inherit="core")},
    "inherit none": {"env": {}, "envPolicy": policy(inherit="none")},
    "exclude": {"env": {}, "envPolicy": policy(inherit="core", exclude=["p?th", "h*"])},
    "exclude, include": {"env": {}, "envPolicy": policy(exclude=["foo"], includeOnly=["*foo*"])},
    "set": {"env": {}, "envPolicy": policy(inherit="none", set={"MY_KEY": "v", "B": "2"})},
    "set after exclude": {"env": {}, "envPolicy": policy(inherit="none", exclude=["B"],
                                                         set={"B": "2", "PATH": "/x"})},
    "set filtered by include": {"env": {}, "envPolicy": policy(set={"MY_KEY": "v", "B": "2"},
                                                               includeOnly=["PATH", "my_*"])},
    "env wins": {"env": {"B": "3", "ZZ_KEY": "q"}, "envPolicy": policy(set={"B": "2"},
                                                                       includeOnly=["B"])},
    "env against excludes": {"env": {"FOO": "over", "A_TOKEN": "t"},
                             "envPolicy": policy(exclude=["*"])},
    "empty exclude pattern": {"env": {}, "envPolicy": policy(inherit="core", exclude=[""])},
    "empty include pattern": {"env": {}, "envPolicy": policy(inherit="core", includeOnly=[""])},
    "include *": {"env": {}, "envPolicy": policy(includeOnly=["*"])},
    "no brackets": {"env": {}, "envPolicy": policy(includeOnly=["[FH]*", "F\\*"])},
    "stars and marks": {"env": {}, "envPolicy": policy(includeOnly=["**OO", "F??", "?OO?"])},
    "long patterns": {"env": {}, "envPolicy": policy(includeOnly=["*F*O*O*", "L*N?"])},
    "restricted in env": {"env": RESTRICTED},
    "restricted in env, other case": {"env": swapped(RESTRICTED)},
    "restricted in set": {"env": {}, "envPolicy": policy(inherit="none", set=RESTRICTED)},
    "restricted in set, other case": {"env": {}, "envPolicy":
                                      policy(inherit="none", set=swapped(RESTRICTED))},
    "metadata": {"env": {}, "metadata": META},
    "metadata thread": {"env": {}, "metadata": {"threadId": THREAD}},
    "metadata call": {"env": {}, "metadata": {"toolCallId": "call_1"}},
    "metadata empty": {"env": {"CODEX_THREAD_ID": "other"}, "metadata": {}},
    "metadata null": {"env": {}, "metadata": {"threadId": None},
                      "envPolicy": policy(inherit="none", set={"CODEX_THREAD_ID": "other"})},
    "metadata call, thread in env": {"env": {"CODEX_THREAD_ID": "other", "codex_thread_id": "x"},
                                     "metadata": {"toolCallId": "call_1"}},
    "metadata overrides": {"env": {"CODEX_TOOL_CALL_ID": "spoof", "CODEX_THREAD_ID": "spoof2"},
                           "metadata": META},
    "metadata, none inherited": {"env": {}, "metadata": META, "envPolicy": policy(inherit="none")},
    "metadata, include": {"env": {}, "metadata": META,
                          "envPolicy": policy(ignoreDefaultExcludes=True,
                                              includeOnly=["CODEX_*"])},
    "codex names inherited": {"env": {}, "envPolicy": policy(ignoreDefaultExcludes=True,
                                                             includeOnly=["codex_*"])},
    "metadata empty call": {"env": {}, "metadata": {"toolCallId": ""}},
    "metadata NUL": {"env": {}, "metadata": {"toolCallId": "x\0y"}},
    "metadata long": {"env": {}, "metadata": {"toolCallId": "x" * 5000}},
    "PWD and TERM": {"env": {"PWD": "/x", "TERM": "dumb", "SHELL": "/x"}},
}

# A start has a bound for names times patterns: a part of the letters at a time.
PART = 200
for first in range(0, len(UPPER), PART):
    CASES[f"letters from {first}"] = {"env": {}, "envPolicy": policy(
        inherit="none", ignoreDefaultExcludes=True,
        set=dict.fromkeys(UPPER[first:first + PART], "1"),
        includeOnly=sorted({PAIRS.get(c, c.lower()) for c in UPPER[first:first + PART]}))}


def add(name, params):
    @case(name)
    async def one(t):
        c = await t.connect()
        for tty in (False, True):
            t.see("tty" if tty else "pipe", await environment(c, f"p{tty}", tty=tty, **params))


for _name, _params in CASES.items():
    add(_name, _params)


@case("forms of a thread id")
async def thread_ids(t):
    c = await t.connect()
    upper = "ABCDEF01-2345-6789-ABCD-EF0123456789"
    for n, form in enumerate([upper, upper.replace("-", ""), "{" + upper + "}", "urn:uuid:" + upper,
                              "URN:UUID:" + upper, "{" + upper, upper + "}", "x", "", upper[:-1],
                              upper + "0", "g" + upper[1:], upper.replace("-", "_"), "{}",
                              "{" + upper.replace("-", "") + "}", " " + upper, "/", "0" * 31,
                              "0" * 33, "é" + "0" * 31, upper.replace("-", "", 1),
                              "00000000-0000-0000-0000-00000000000", "-" * 36]):
        t.see(repr(form), await environment(c, str(n), env={}, metadata={"threadId": form}))


@case("many patterns")
async def many_patterns(t):
    """1,400 patterns on 1,400 variables, which match the last pattern alone."""
    c = await t.connect()
    names = {f"V{i}": "1" for i in range(1400)}
    answer = await c.start(["/bin/true"], processId="p", env={}, envPolicy=policy(
        inherit="none", set=names, includeOnly=[f"*W{i}" for i in range(1399)] + ["V*"]))
    t.see("start", answer.response)

"""Commands whose texts the reference's client and the library must tell alike.

A case is a list of steps: exec_command, or write_stdin with the session of the step before.
tests/client/exec_texts.jsonl has what the reference's client told the model of each step;
tests/client/record_exec_texts.py records it.
"""

import hashlib
import re

MASKS = ((re.compile(r"\AChunk ID: [0-9a-f]{6}\n"), "Chunk ID: ID\n"),
         (re.compile(r"(?m)^Wall time: \d+\.\d{4} seconds$"), "Wall time: TIME seconds"),
         (re.compile(r"(?m)^Process running with session ID \d{4,5}$"),
          "Process running with session ID N"),
         (re.compile(r"\A(write_stdin failed: )?Unknown process id \d+\Z"), r"\1Unknown process id N"))
WHOLE = 2500  # characters of a text; of a longer one the digest counts


def masked(text):
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    if len(text) > WHOLE:
        return {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return text


def command(cmd, **options):
    return {"cmd": cmd, **options}


def stdin(chars="", **options):
    return {"chars": chars, **options}


TRAP = "trap 'echo got; exit 42' INT; echo r; while :; do sleep 0.1; done"
EUROS = r"for i in 1 2 3 4 5 6 7 8 9 10; do printf '\342\202\254\303\251\360\237\230\200x'; done"
BROKEN = r"printf 'a\377\000b\342\202'; printf '\355\240\200 \360\200\200\200 \303('"
STRAY = r"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'a\377\376b'; done"

CASES = {
    "simple": [command("echo hello")],
    "nothing": [command("true")],
    "both-streams": [command("echo out; sleep 0.05; echo err >&2")],
    "failing": [command("printf x; exit 7")],
    "killed": [command("kill -9 $$")],
    "polled": [command("echo a; sleep 1.5; echo b; exit 3", yield_time_ms=1),
               stdin(yield_time_ms=1)],
    "yield-too-long": [command("echo a; sleep 0.6; echo b", yield_time_ms=10000000)],
    "background": [command("(sleep 3; echo late) & echo early", yield_time_ms=1000),
                   stdin(yield_time_ms=5000)],
    "background-in-time": [command("(sleep 1; echo late) & echo early", yield_time_ms=3000)],
    "no-stdin": [command("sleep 3", yield_time_ms=250), stdin("hello"),
                 stdin("\x03", yield_time_ms=2000)],
    "interrupt": [command(TRAP, yield_time_ms=300), stdin("\x03", yield_time_ms=5000)],
    "unknown": [stdin(""), stdin("x")],
    "again": [command("sleep 0.5", yield_time_ms=250), stdin(yield_time_ms=5000),
              stdin(yield_time_ms=5000)],
    "terminal": [command("stty size; printf 'n? '; read n; echo \"hi <$n>\"; exit 4", tty=True,
                         yield_time_ms=800), stdin("bob\n", yield_time_ms=5000)],
    "terminal-killed": [command("sleep 100", tty=True, yield_time_ms=300),
                        stdin("\x03", yield_time_ms=5000)],
    "budget-50": [command("seq 1 30000", max_output_tokens=50)],
    "budget-1": [command("seq 1 30000", max_output_tokens=1)],
    "budget-0": [command("seq 1 300", max_output_tokens=0)],
    "budget-default": [command("seq 1 30000")],
    "budget-too-large": [command("seq 1 30000", max_output_tokens=100000)],
    "budget-exact": [command("printf %040d 7", max_output_tokens=10)],
    "budget-exceeded": [command("printf %041d 7", max_output_tokens=10)],
    "code-points": [command(EUROS, max_output_tokens=11)],
    "broken": [command(BROKEN)],
    "broken-cut": [command(STRAY, max_output_tokens=9)],
    "omitted": [command("seq 1 300000", yield_time_ms=30000, max_output_tokens=60)],
    "omitted-default": [command("seq 1 300000", yield_time_ms=30000)],
    "one-mebibyte": [command("head -c 1048576 /dev/zero | tr '\\0' x", yield_time_ms=30000,
                             max_output_tokens=30)],
    "and-one-byte": [command("head -c 1048577 /dev/zero | tr '\\0' x", yield_time_ms=30000,
                             max_output_tokens=30)],
    "carriage-returns": [command("printf 'a\\r\\nb\\r\\n\\nc'; printf '%0100d' 1",
                                 max_output_tokens=8)],
    "empty-lines": [command("printf '\\n\\n\\n%0100d\\n' 1", max_output_tokens=8)],
}

#!/usr/bin/python3
"""Records what the reference's client tells its model about the cases of harness/exec_cases.py.

    tests/client/record_exec_texts.py >tests/client/exec_texts.jsonl
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "real-client"), str(ROOT / "tests" / "client" / "harness")]
# pylint: disable=wrong-import-position
from exec_cases import CASES, masked
from rig.bench import Bench
from rig.model import tool


async def play(model, steps):
    """The texts of one case."""
    session, texts = 4, []
    for step in steps:
        name = "exec_command" if "cmd" in step else "write_stdin"
        options = step if "cmd" in step else {"session_id": session, **step}
        output = await model.call(tool(name, **options))
        session = output.session or session
        texts.append(masked(output.text))
    return texts


async def record(server, codex):
    bench = Bench([server], codex, True)
    try:
        await bench.start_server()
        async with bench.client() as model:
            for name, steps in CASES.items():
                print(json.dumps({"case": name, "texts": await play(model, steps)},
                                 ensure_ascii=True), flush=True)
    finally:
        await bench.close(False)


def main():
    codex = subprocess.run([ROOT / "tools" / "reference"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.strip()
    asyncio.run(record(str(ROOT / "build" / "exec-server"), codex))


if __name__ == "__main__":
    main()

"""What include/execserver.h says, for tests that compare other texts and tables with it."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "include" / "execserver.h"
CC = shutil.which("cc") or "gcc"

PROTOTYPE = re.compile(r"([A-Za-z_][\w\s*]*?[\s*])(xs_\w+)\s*\(((?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*)\)\s*;")
STRUCT = re.compile(r"struct\s+(xs_\w+)\s*\{([^{}]*)\}\s*;")
ENUM = re.compile(r"enum\s+(xs_\w+)?\s*\{([^{}]*)\}\s*;")
MEMBER = re.compile(r"\(\s*\*\s*(\w+)\s*\)|(\w+)\s*(?:\[[^\]]*\]\s*)?$")
SIZES = {"int": "i4", "unsigned": "u4", "unsigned int": "u4", "int64_t": "i8", "uint64_t": "u8",
         "size_t": "u8", "void": "void", "double": "f8", "uint32_t": "u4", "int32_t": "i4"}


def expanded():
    """The header without comments, attributes and what it includes."""
    text = re.sub(r"^#include.*$", "", HEADER.read_text(), flags=re.MULTILINE)
    out = subprocess.run([CC, "-E", "-P", "-x", "c", "-D__attribute__(x)=", "-"], check=True,
                         input=text, capture_output=True, text=True).stdout
    return re.sub(r"\s+", " ", out)


def split(text):
    """The parts between commas that are in no parentheses."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()]


def kind(text, named=True):
    """How a value is passed: "i4" a signed number of 4 bytes, "u8", "pointer", "void"."""
    if "*" in text or "(" in text or "[" in text:
        return "pointer"
    words = [w for w in text.split() if w not in ("const", "extern", "volatile")]
    if words[:1] == ["enum"]:
        return "enum"
    if named and " ".join(words) not in SIZES:
        words = words[:-1]
    return SIZES[" ".join(words)]


class Header:
    """Prototypes, structs, constants and option keys."""

    def __init__(self):
        text = expanded()
        self.functions = {}  # name: (kind of the result, kinds of the arguments)
        for result, name, args in PROTOTYPE.findall(text):
            if "typedef" in result:
                continue
            args = [] if args.strip() in ("", "void") else [kind(a) for a in split(args)]
            self.functions[name] = (kind(result.replace(" extern ", " "), named=False), args)
        self.structs = {}  # name: names of the members
        for name, body in STRUCT.findall(text):
            members = [m for line in body.split(";") if line.strip() for m in declared(line)]
            self.structs[name] = members
        self.constants = [name.split("=")[0].strip() for _, body in ENUM.findall(text)
                          for name in body.split(",") if name.strip()]
        macros = subprocess.run([CC, "-E", "-dM", "-x", "c", HEADER], check=True, capture_output=True,
                                text=True).stdout
        self.macros = dict(re.findall(r"^#define (XS_\w+) (.+)$", macros, re.MULTILINE))


def declared(line):
    """The names of one line of a struct, such as `int a, *b, (*c)(void)`."""
    for part in split(line):
        match = re.search(r"\(\s*\*\s*(\w+)\s*\)", part) or MEMBER.search(part.strip())
        yield match.group(1) or match.group(2)


def probe(expressions):
    """The values that a compiled program gives to integer expressions."""
    lines = "".join(f'printf("%lld\\n", (long long)({e}));\n' for e in expressions)
    with tempfile.TemporaryDirectory() as place:
        source, program = Path(place) / "probe.c", Path(place) / "probe"
        source.write_text("#include <execserver.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                          f"int main(void) {{\n{lines}return 0;\n}}\n")
        subprocess.run([CC, "-I", HEADER.parent, source, "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, out.split())))

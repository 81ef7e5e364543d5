"""The ctypes declarations say the same as the header, and the library exports exactly that."""

import ctypes
import os
import re
import subprocess
import sys

import pytest

from execserver import _lib
from harness.header import ROOT, Header, probe

HEADER = Header()
ALL = {**_lib.FUNCTIONS, **_lib.SERVER_FUNCTIONS}
LIBRARY = os.environ["EXECSERVER_LIBRARY"]
VALUE = re.compile(r"is not (in [0-9]|one of|[a-z, ]+ or )")  # only a value is wrong
SIMPLE = {ctypes.c_int: "i4", ctypes.c_uint: "u4", ctypes.c_int64: "i8", ctypes.c_uint64: "u8",
          ctypes.c_size_t: "u8", ctypes.c_double: "f8", None: "void"}


def kind_of(declared):
    return SIMPLE.get(declared, "pointer")


def same(ours, theirs):
    return ours == theirs or (theirs == "enum" and ours == "i4")


def test_every_function_is_declared():
    assert sorted(ALL) == sorted(HEADER.functions)


@pytest.mark.parametrize("name", sorted(HEADER.functions))
def test_arguments(name):
    result, arguments = ALL[name]
    theirs = HEADER.functions[name]
    assert same(kind_of(result), theirs[0])
    ours = [kind_of(a) for a in arguments]
    assert len(ours) == len(theirs[1])
    assert all(map(same, ours, theirs[1])), f"{ours} {theirs[1]}"


def test_every_struct_has_its_members_and_places():
    assert sorted(_lib.STRUCTS) == sorted(HEADER.structs)
    wanted = {}
    for name, struct in _lib.STRUCTS.items():
        members = [field[0] for field in struct._fields_]
        assert members == HEADER.structs[name], name
        wanted[f"sizeof(struct {name})"] = ctypes.sizeof(struct)
        for member in members:
            field = getattr(struct, member)
            wanted[f"offsetof(struct {name}, {member})"] = field.offset
            wanted[f"sizeof(((struct {name} *)0)->{member})"] = field.size
    assert probe(list(wanted)) == wanted


def test_every_constant():
    ours = {prefix + member.name: member.value for kind, prefix in _lib.PREFIXES.items()
            for member in kind.__members__.values()}
    assert sorted(ours) == sorted(HEADER.constants)
    assert probe(list(ours)) == ours
    assert HEADER.macros["XS_PAUSE"] == str(_lib.PAUSE)


def test_every_option():
    theirs = {name[len("XS_OPT_"):]: value.split('"')[1] for name, value in HEADER.macros.items()
              if name.startswith("XS_OPT_")}
    ours = _lib.TEXTS + _lib.NUMBERS + _lib.LISTS
    assert sorted(ours) == sorted(theirs)
    assert {name: _lib.key(name) for name in ours} == theirs


def test_the_library_takes_every_option_as_its_kind():
    library = _lib.load()
    options = library.xs_options_new()
    kinds = [(library.xs_options_str, _lib.TEXTS, b"all"),
             (library.xs_options_num, _lib.NUMBERS, 1), (library.xs_options_add, _lib.LISTS, b"A=b")]
    for function, mine, value in kinds:
        for _, names, _ in kinds:
            for name in names:
                code = function(options, _lib.key(name).encode(), value)
                text = library.xs_error_text(library.xs_options_error(options)).decode()
                # A value may be wrong, but not the kind.
                if names is not mine:
                    assert code == _lib.Code.EINVAL, name
                else:
                    assert code == 0 or VALUE.search(text), f"{name}: {text}"
    library.xs_options_free(options)


def test_the_library_exports_what_the_header_has():
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True,
                         text=True).stdout
    exported = {line.split()[2].partition("@")[0] for line in out.splitlines()
                if line.split()[1] == "T"}
    foreign = {name for name in exported if not name.startswith("xs_")
               and not re.match(r"_?_(init|fini|asan|ubsan|tsan|sanitizer|lsan)", name)}
    assert not foreign
    assert {name for name in exported if name.startswith("xs_")} == set(_lib.FUNCTIONS)


def test_the_variable_chooses_the_library(tmp_path):
    code = ("from execserver import _lib\n"
            "try:\n    _lib.load()\nexcept ImportError as e:\n    print(e)\n")
    env = {**os.environ, "EXECSERVER_LIBRARY": str(tmp_path / "none.so"),
           "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True,
                          text=True)
    assert "none.so" in done.stdout and "EXECSERVER_LIBRARY" in done.stdout

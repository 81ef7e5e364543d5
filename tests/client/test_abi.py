"""The header compiles everywhere; names, sizes and values stay as tests/client/abi.txt has them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.header import CC, HEADER, Header, probe
from harness.settings import BINARY, SANITIZED

LIBRARY = Path(os.environ["EXECSERVER_LIBRARY"]).resolve()
BUILD = Path(BINARY).parent
LINES = [line.split() for line in (Path(__file__).parent / "abi.txt").read_text().splitlines()
         if not line.startswith("#")]
CXX = shutil.which("c++") or shutil.which("g++")
LIMIT = 400_000  # bytes of the library
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wstrict-aliasing", "-Werror")


def kept(kind):
    return {line[1]: line[2:] for line in LINES if line[0] == kind}


def compiled(compiler, language, text, *options):
    done = subprocess.run([compiler, "-x", language, "-fsyntax-only", "-I", HEADER.parent, *STRICT,
                           *options, "-"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


USE = ("#include <execserver.h>\n"
       "int use(struct xs_exit *out);\n"
       "int use(struct xs_exit *out) { struct xs_exit e = XS_INIT(struct xs_exit); *out = e;"
       " struct xs_stat s = XS_INIT(struct xs_stat); return (int)s.size + XS_EBUSY; }\n")


@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "gnu17"])
def test_the_header_is_c(standard):
    compiled(CC, "c", USE, f"-std={standard}", "-Wstrict-prototypes", "-Wmissing-prototypes")


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_the_header_is_cplusplus(standard):
    assert CXX, "tools/deps test installs a C++ compiler"
    compiled(CXX, "c++", USE, f"-std={standard}")


@pytest.mark.parametrize("first", [True, False])
def test_the_header_stands_beside_xenstore(first):
    """libxenstore has functions xs_... of its own."""
    theirs = Path("/usr/include/xenstore.h")
    assert theirs.exists(), "tools/deps test installs libxen-dev"
    both = ["#include <stdbool.h>\n#include <xenstore.h>\n", "#include <execserver.h>\n"]
    compiled(CC, "c", "".join(both if first else both[::-1]) + USE, "-std=c17", "-Wno-pedantic")
    names = set(re.findall(r"\b(xs_\w+)\s*\(", theirs.read_text()))
    assert names & set(Header().functions) == set()


def test_exported_names_are_those_of_the_list():
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True,
                         text=True).stdout
    names = {line.split()[2].replace("@@", "@") for line in out.splitlines()
             if line.split()[1] == "T" and line.split()[2].startswith("xs_")}
    assert names == set(kept("function"))


def test_sizes_are_those_of_the_list():
    structs = {f"sizeof(struct {name})": int(size) for name, (size,) in kept("struct").items()}
    assert set(kept("struct")) == set(Header().structs)
    assert probe(list(structs)) == structs


def test_values_are_those_of_the_list():
    constants = {name: int(value) for name, (value,) in kept("constant").items()}
    assert set(constants) == set(Header().constants)
    assert probe(list(constants)) == constants


@pytest.mark.skipif(SANITIZED, reason="size of a sanitizer's build")
def test_the_library_is_small(tmp_path):
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, LIBRARY], check=True)
    assert stripped.stat().st_size <= LIMIT


def test_it_needs_libc_and_libsodium_alone():
    out = subprocess.run(["readelf", "-d", LIBRARY], check=True, capture_output=True,
                         text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(\S+)\]", out))
    assert {name.partition(".so")[0] for name in needed} <= {
        "libc", "libsodium", "libm", "ld-linux-x86-64", "ld-linux-aarch64", "libasan", "libubsan",
        "libtsan"}
    assert "(SONAME)" in out and "[libexecserver.so.0]" in out


@pytest.mark.skipif(SANITIZED, reason="a program that is not sanitized cannot use its library")
@pytest.mark.parametrize("static", [False, True])
def test_a_program_is_built_by_pkg_config(static, tmp_path):
    """An installed tree, as packages have it."""
    if not shutil.which("meson"):
        pytest.fail("meson is missing")
    root = tmp_path / "root"
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root],
                   check=True, capture_output=True)
    pc = next(root.rglob("execserver.pc"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(root),
           "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *["--static"] * static,
                            "execserver"], env=env, check=True, capture_output=True,
                           text=True).stdout.split()
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text("#include <execserver.h>\n#include <stdio.h>\n"
                      "int main(void) { puts(xs_version()); return 0; }\n")
    if static:
        libraries = [str(next(root.rglob("libexecserver.a")))]
        flags = [f for f in flags if f != "-lexecserver"]
    else:
        libraries = []
    subprocess.run([CC, source, "-o", program, *libraries, *flags], check=True)
    place = next(root.rglob("libexecserver.so.0")).parent
    out = subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": str(place)}, check=True,
                         capture_output=True, text=True).stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", out)

"""The package as it is shipped: twin, types, wheel, README."""

import ast
import os
import re
import subprocess
import sys
import zipfile

import pytest

from execserver import _lib, _model, _options, aio, blocking, errors
from harness.header import ROOT

PYTHON = ROOT / "python"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_blocking_twin_is_made_from_the_other():
    done = run(sys.executable, PYTHON / "twin", "--check")
    assert done.returncode == 0, done.stderr


def test_both_have_the_same_names():
    def names(module):
        return {(c, n) for c in ("Client", "Process", "Files", "File", "Watch", "Exec")
                for n in dir(getattr(module, c)) if not n.startswith("_")}
    assert names(aio) == names(blocking)


@pytest.mark.parametrize("module", ["aio", "blocking", "_drive", "_model", "_options", "errors"])
def test_every_public_function_is_annotated(module):
    tree = ast.parse((PYTHON / "execserver" / f"{module}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            bare = [a.arg for a in arguments if a.annotation is None and a.arg not in
                    ("self", "cls")]
            assert node.returns is not None and not bare, f"{node.name}: {bare}"


def build(place, **env):
    done = run(sys.executable, "-c", "import wheel_of; print(wheel_of.build_wheel(%r))" % str(place),
               cwd=PYTHON, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env})
    assert done.returncode == 0, done.stderr
    return place / done.stdout.strip()


def imported(wheel, place, code, **env):
    """Runs code with what the wheel contains, and nothing of the tree."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    clean = {k: v for k, v in os.environ.items() if k not in ("EXECSERVER_LIBRARY", "PYTHONPATH")}
    return run(sys.executable, "-c", code, cwd="/", env={**clean, "PYTHONPATH": str(place), **env})


def test_a_wheel_for_any_system(tmp_path):
    wheel = build(tmp_path)
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"execserver/py.typed", "execserver/aio.py", "execserver/blocking.py"} <= names
    assert not [n for n in names if ".so" in n]
    done = imported(wheel, tmp_path / "site", "import execserver; print(execserver.connect)")
    assert done.returncode == 0, done.stderr


def test_a_wheel_that_carries_the_library(tmp_path):
    library = os.environ["EXECSERVER_LIBRARY"]
    wheel = build(tmp_path, EXECSERVER_BUNDLE=library)
    assert "-py3-none-linux_" in wheel.name
    site = tmp_path / "site"
    done = imported(wheel, site, "from execserver import _lib; print(_lib.candidates()[0])")
    assert done.stdout.strip() == str(site / "execserver" / _lib.SONAME), done.stderr


def test_the_record_of_a_wheel_lists_its_files(tmp_path):
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        record = next(n for n in wheel.namelist() if n.endswith("/RECORD"))
        listed = {line.split(",")[0] for line in wheel.read(record).decode().splitlines()}
        assert listed == set(wheel.namelist())


def test_the_first_example_has_five_lines():
    text = (PYTHON / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    assert len([line for line in example.splitlines() if line.strip()]) <= 5 - 1
    compile(example, "README.md", "exec")


def test_every_result_has_a_class():
    for code in _lib.Code:
        error = errors.make(code, "text", 2, -32000)
        if code == _lib.Code.ENOMEM:
            assert isinstance(error, MemoryError)
        else:
            assert type(error) is not errors.Error
            assert (error.code, error.errno, error.rpc_code, str(error)) == (code, 2, -32000, "text")


def test_errors_can_be_pickled():
    import pickle
    error = pickle.loads(pickle.dumps(errors.make(_lib.Code.EREMOTE, "text", 2, -32000)))
    assert (error.code, error.errno, error.text) == (_lib.Code.EREMOTE, 2, "text")


def test_options_as_the_library_names_them():
    flat = _options.flatten({"timeout": 1.5, "env": {"A": "b"}, "limits": {"cpu": 50}, "cwd": None,
                             "resume_time": 0, "args": ["x"], "options": {"rows": 3}})
    assert flat == {"timeout-ms": 1500, "env": ["A=b"], "limit-cpu": 50, "resume-ms": 0,
                    "arg": ["x"], "rows": 3}


def test_a_nul_ends_no_text_early():
    with pytest.raises(ValueError):
        _options.encode("a\0b")


def test_omitted_output_is_named():
    output = _model.Output(b"head", b"tail", 7, 15)
    assert output == b"head\n... 7 bytes omitted ...\ntail"
    assert (output.head, output.tail, output.omitted) == (b"head", b"tail", 7)
    assert _model.Output(b"all", total=3) == b"all"


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_the_first_example_of_a_page_runs(page, shared):
    """Five lines, with the URL of a server."""
    text = (PYTHON.parent / page).read_text().partition("```python\n")[2].partition("```")[0]
    assert len(text.splitlines()) == 5
    code, found = re.subn(r"ws://127\.0\.0\.1:\d+", shared.url, text)
    assert found == 1
    done = run(sys.executable, "-c", code, env={**os.environ, "PYTHONPATH": str(PYTHON)})
    assert "Linux" in done.stdout and done.stdout.endswith(" 0\n"), done.stdout + done.stderr

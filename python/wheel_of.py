"""Builds the wheel with the standard library alone (PEP 517).

The wheel carries libexecserver.so.0 if there is one beside the package, or if the variable
EXECSERVER_BUNDLE names one; then it is for this architecture. Otherwise it is for any, and uses the
system's library.
"""

import base64
import hashlib
import os
import re
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "libexecserver.so.0"
FIRST = (1980, 1, 1, 0, 0, 0)  # what a zip file can say: wheels of one tree are equal


def version():
    """The version of the project, which stands in meson.build and nowhere else."""
    return re.search(r"version: '([^']+)'", (HERE.parent / "meson.build").read_text()).group(1)


def bundled():
    """The library that the wheel shall carry, or None."""
    for place in (os.environ.get("EXECSERVER_BUNDLE"), HERE / "execserver" / LIBRARY):
        if place and Path(place).is_file():
            return Path(place)
    return None


def platform():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def metadata():
    text = (HERE / "pyproject.toml").read_text()
    summary = re.search(r'^description = "(.*)"$', text, re.MULTILINE).group(1)
    classifiers = re.findall(r'^    "(.* :: .*)",$', text, re.MULTILINE)
    return "".join([
        "Metadata-Version: 2.1\nName: execserver\n", f"Version: {version()}\n",
        f"Summary: {summary}\nLicense: Apache-2.0\nRequires-Python: >=3.9\n",
        *(f"Classifier: {name}\n" for name in classifiers),
        "Description-Content-Type: text/markdown\n\n", (HERE / "README.md").read_text()])


def contents():
    """(name, bytes, mode) of all files but RECORD; the tag of the wheel comes last."""
    library = bundled()
    tag = f"py3-none-{platform() if library else 'any'}"
    files = [(f"execserver/{path.name}", path.read_bytes(), 0o644)
             for path in sorted((HERE / "execserver").iterdir())
             if path.suffix == ".py" or path.name == "py.typed"]
    if library:
        files.append((f"execserver/{LIBRARY}", library.read_bytes(), 0o755))
    about = f"execserver-{version()}.dist-info"
    kind = "false" if library else "true"
    wheel = f"Wheel-Version: 1.0\nGenerator: wheel_of\nRoot-Is-Purelib: {kind}\nTag: {tag}\n"
    files += [(f"{about}/METADATA", metadata().encode(), 0o644),
              (f"{about}/WHEEL", wheel.encode(), 0o644)]
    return files, about, tag


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    files, about, tag = contents()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files)
    files.append((f"{about}/RECORD", f"{record}{about}/RECORD,,\n".encode(), 0o644))
    name = f"execserver-{version()}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data, mode in files:
            info = zipfile.ZipInfo(member, FIRST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100000 | mode) << 16
            wheel.writestr(info, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("build from the tree of exec-server")


if __name__ == "__main__":
    print(build_wheel("."))

"""Builds this package: a PEP 517 backend of its own, so that nothing has to be fetched.

With COVE_WHEEL_BIN, the path of a cove executable for this machine, the wheel has that
inside, for local mode without anything else installed.

usage: backend.py DIRECTORY    builds a wheel there and prints its name
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pathlib
import platform
import re
import sys
import tarfile
import zipfile
from typing import Any, Dict, List, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent
PACKAGE = ROOT / "src" / "cove"
DATE = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version() -> str:
    found = re.search(r'^VERSION = "([^"]+)"$', (PACKAGE / "_version.py").read_text(), re.M)
    if found is None:
        raise SystemExit("src/cove/_version.py has no VERSION")
    return found.group(1)


def tag() -> str:
    if not os.environ.get("COVE_WHEEL_BIN"):
        return "py3-none-any"
    machine = platform.machine().lower()
    # The executable is static: it asks nothing of any libc.
    return f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"


def sources() -> List[Tuple[str, bytes, int]]:
    """The files of the package: name, content and mode."""
    found = []
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            found.append(("cove/" + path.relative_to(PACKAGE).as_posix(), path.read_bytes(), 0o644))
    program = os.environ.get("COVE_WHEEL_BIN")
    if program:
        found.append(("cove/bin/cove", pathlib.Path(program).read_bytes(), 0o755))
    return found


def metadata() -> str:
    lines = [
        "Metadata-Version: 2.1",
        "Name: cove-sandbox",
        "Version: " + version(),
        "Summary: Run code that nobody has read, in sandboxes of Cove",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text()


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    """Build a wheel in a directory and return its name."""
    name = f"cove_sandbox-{version()}-{tag()}.whl"
    info = f"cove_sandbox-{version()}.dist-info/"
    tags = [f"py3-none-{one}" for one in tag().partition("py3-none-")[2].split(".")]
    files = sources() + [
        (info + "METADATA", metadata().encode(), 0o644),
        (info + "WHEEL", ("Wheel-Version: 1.0\nGenerator: cove\nRoot-Is-Purelib: true\n" + "".join(f"Tag: {t}\n" for t in tags)).encode(), 0o644),
    ]
    record = "".join(f"{n},sha256={_digest(data)},{len(data)}\n" for n, data, _ in files) + info + "RECORD,,\n"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, data, mode in files + [(info + "RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(file, DATE)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    """Build a source distribution in a directory and return its name."""
    base = f"cove_sandbox-{version()}"
    files = [("PKG-INFO", metadata().encode())]
    files += [(name, (ROOT / name).read_bytes()) for name in ("pyproject.toml", "backend.py", "mirror.py", "README.md")]
    files += [("src/" + name, data) for name, data, _ in sources() if name != "cove/bin/cove"]
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as tar:
        for name, data in files:
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))

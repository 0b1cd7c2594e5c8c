"""Builds this package: a PEP 517 backend of its own, so that nothing has to be fetched.

With COVE_WHEEL_BIN, the path of a cove executable, the wheel has that inside, for local
mode without anything else installed, on machines that can run it.

usage: backend.py DIRECTORY    builds a wheel there and prints its name
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pathlib
import re
import struct
import sys
import tarfile
import zipfile
from typing import Any, Dict, List, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent
PACKAGE = ROOT / "src" / "cove"
DATE = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF file
INTERPRETER = 3  # p_type of a segment that names who loads the file


def version() -> str:
    found = re.search(r'^VERSION = "([^"]+)"$', (PACKAGE / "_version.py").read_text(), re.M)
    if found is None:
        raise SystemExit("src/cove/_version.py has no VERSION")
    return found.group(1)


def tag() -> str:
    program = os.environ.get("COVE_WHEEL_BIN")
    if not program:
        return "py3-none-any"
    on = machine(program)
    # The executable is static: it asks nothing of any libc.
    return f"py3-none-manylinux_2_17_{on}.musllinux_1_1_{on}"


def machine(program: str) -> str:
    """What an executable runs on, from its own head: it need not be this machine."""
    with open(program, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"COVE_WHEEL_BIN: {program} is no executable for Linux on 64 bits")
        kind = struct.unpack_from("<H", head, 18)[0]
        if kind not in MACHINES:
            raise SystemExit(f"COVE_WHEEL_BIN: {program} is for another machine than {' or '.join(MACHINES.values())}")
        file.seek(struct.unpack_from("<Q", head, 32)[0])
        size, count = struct.unpack_from("<HH", head, 54)
        segments = file.read(size * count)
    if size < 4 or len(segments) < size * count or any(struct.unpack_from("<I", segments, i * size)[0] == INTERPRETER for i in range(count)):
        raise SystemExit(f"COVE_WHEEL_BIN: {program} needs a libc, and a wheel does not know which; build it with CGO_ENABLED=0")
    return MACHINES[kind]


def licence() -> bytes:
    """The text of the license, which lies above this folder in a clone, and in it elsewhere."""
    for place in (ROOT, ROOT.parent.parent):
        if (place / "LICENSE").is_file():
            return (place / "LICENSE").read_bytes()
    raise SystemExit("there is no LICENSE, and nothing is built without one")


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


def extras() -> List[Tuple[str, str]]:
    """What an adapter needs beside this package, by the name of its extra: one package each."""
    section = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return re.findall(r'^([a-z-]+) = \["([^"]+)"\]$', section, re.M)


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
    for extra, wanted in extras():
        lines += ["Provides-Extra: " + extra, f"Requires-Dist: {wanted}; extra == '{extra}'"]
    return "\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text()


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    """Build a wheel in a directory and return its name."""
    name = f"cove_sandbox-{version()}-{tag()}.whl"
    info = f"cove_sandbox-{version()}.dist-info/"
    tags = [f"py3-none-{one}" for one in tag().partition("py3-none-")[2].split(".")]
    pure = "true" if tag().endswith("-any") else "false"
    files = sources() + [
        (info + "METADATA", metadata().encode(), 0o644),
        (info + "LICENSE", licence(), 0o644),
        (info + "WHEEL", (f"Wheel-Version: 1.0\nGenerator: cove\nRoot-Is-Purelib: {pure}\n" + "".join(f"Tag: {t}\n" for t in tags)).encode(), 0o644),
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
    files = [("PKG-INFO", metadata().encode()), ("LICENSE", licence())]
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

"""One text of a test for both ways: written for asyncio, and mirrored for callers that wait."""

from __future__ import annotations

import pathlib
import re
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from mirror import mirrored  # noqa: E402: it lies beside the package


def waiting(name: str) -> types.ModuleType:
    """The module of this name as it is without asyncio."""
    path = HERE / f"{name}.py"
    text = mirrored(path.name, path.read_text())
    text = re.sub(r"\bIsolatedTestCase|IsolatedAsyncioTestCase\b", "TestCase", text)
    text = re.sub(r"\basync(Set|Tear)", lambda m: m.group(1).lower(), text)
    module = types.ModuleType(name + "_waiting")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, f"{path} (mirrored)", "exec"), module.__dict__)
    return module

"""Python as a tool for a model: code goes in, and a text that it can act on comes out."""

from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional

from ._errors import CoveError, configuration
from ._sync.client import Client
from ._sync.sandbox import Sandbox

KINDS = ("local", "gvisor", "docker", "microsandbox", "e2b", "fake")


class ExecutionResult(NamedTuple):
    """What came of a piece of code."""

    stdout: str
    stderr: str
    exit_code: int  # -1 when the time ran out, and where nothing ran
    duration: float  # seconds
    meta: Dict[str, Any]  # runtime, truncated, timed_out, blocked_imports, resource_limits
    text: str  # all of it in words for a model

    @property
    def success(self) -> bool:
        """Whether it ran to its end."""
        return self.exit_code == 0


class CodeSandbox:
    """Runs each piece of code in a sandbox of its own, which is gone afterwards."""

    def __init__(self, kind: Optional[str] = None, client: Optional[Client] = None) -> None:
        self.kind = kind  # None: as the server has it
        self.client = client or Client()

    def execute(self, code: str, timeout: Optional[float] = None) -> ExecutionResult:
        """Run Python code. What it does wrong is in the result; an exception says
        that the platform could not do its work."""
        if self.kind is None:
            return _result(self.client.run_python(code, timeout=timeout))
        with Sandbox.create(client=self.client, provider=self.kind) as sandbox:
            return _result(self.client.run_python(code, timeout=timeout, session_id=sandbox.sandbox_id))

    def close(self) -> None:
        """Let go of the connections."""
        self.client.close()

    def __enter__(self) -> "CodeSandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(body: Dict[str, Any]) -> ExecutionResult:
    return ExecutionResult(
        str(body.get("stdout") or ""),
        str(body.get("stderr") or ""),
        int(body.get("exit_code") or 0),
        float(body.get("duration") or 0.0),
        dict(body.get("meta") or {}),
        str(body.get("result") or ""),
    )


def get_sandbox(kind: Optional[str] = None, *, client: Optional[Client] = None) -> CodeSandbox:
    """The sandbox that is asked for, or that SANDBOX_TYPE or SANDBOX_PROVIDER names,
    or that the server has. No other one steps in for it."""
    kind = kind or os.environ.get("SANDBOX_TYPE") or os.environ.get("SANDBOX_PROVIDER") or None
    if kind is not None and kind not in KINDS:
        raise configuration("SANDBOX_TYPE", f"{kind!r} is no kind of sandbox", "use one of " + ", ".join(KINDS))
    return CodeSandbox(kind, client)


def run_python_code(code: str, timeout: Optional[float] = None) -> str:
    """Run Python code for a model. It never fails: every error is a text, too."""
    try:
        with get_sandbox() as sandbox:
            return sandbox.execute(code, timeout).text
    except CoveError as err:
        return f"Execution failed: {err}"

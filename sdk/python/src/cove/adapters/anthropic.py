"""A sandbox as the tools that Anthropic's models know.

    runner = client.beta.messages.tool_runner(…, tools=[bash_tool(sandbox)])

bash_tool is its bash tool. code_execution_tools are for the same runner, and have the
shapes of its code execution; CodeExecution answers such calls in a loop of your own,
or in the place of Anthropic's own sandbox.
"""

from __future__ import annotations

import json
from typing import Any, List, Mapping, Optional, Tuple, Union

from .._async.code_execution import AsyncCodeExecution
from .._async.functions import AsyncFunctions
from .._async.sandbox import AsyncSandbox
from .._errors import CoveError, InvalidError
from .._shapes import TOOLS, Call
from .._sync.code_execution import CodeExecution
from .._sync.functions import Functions
from .._sync.sandbox import Sandbox
from .._told import MOST, failed
from .._wire import Json
from . import missing

try:
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
except ImportError as err:
    raise missing("anthropic", "anthropic") from err

__all__ = ["AsyncBash", "AsyncCodeExecution", "Bash", "CodeExecution", "bash_tool", "code_execution_tools"]

RESTARTED = "The shell was started again. Files are still there."


def bash_tool(sandbox: Union[Sandbox, AsyncSandbox], *, timeout: Optional[float] = None, most: int = MOST) -> "Union[Bash, AsyncBash]":
    """The tool bash_20250124: one shell that remembers, and restart. It is for the tool
    runner of an Anthropic client, of a Sandbox, or of an AsyncAnthropic client, of an
    AsyncSandbox; in a loop of your own, call it with the input of a tool_use block."""
    if isinstance(sandbox, AsyncSandbox):
        return AsyncBash(AsyncFunctions(sandbox, timeout=timeout, most=most))
    return Bash(Functions(sandbox, timeout=timeout, most=most))


def code_execution_tools(sandbox: Union[Sandbox, AsyncSandbox], *, timeout: Optional[float] = None, most: int = MOST) -> List[Any]:
    """The tools code_execution, bash_code_execution and text_editor_code_execution for
    a tool runner. Each answers with JSON in the shape of Anthropic's own results."""
    if isinstance(sandbox, AsyncSandbox):
        later = AsyncCodeExecution(sandbox, timeout=timeout, most=most)
        return [_AsyncCode(later, tool) for tool in TOOLS]
    now = CodeExecution(sandbox, timeout=timeout, most=most)
    return [_Code(now, tool) for tool in TOOLS]


class Bash(BetaBuiltinFunctionTool):  # type: ignore[misc] # it is Any where it is not installed
    """The bash tool, for callers that wait."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def to_dict(self) -> Json:
        """The tool for a request."""
        return _bash()

    def call(self, input: object) -> str:  # noqa: A002: the name that the runner knows
        """Run what a model asked for. What went wrong is a text, too."""
        try:
            command, restart = _asked(input)
            if restart:
                self.functions.restart("bash")
                return RESTARTED
        except CoveError as err:
            return failed(err)
        return self.functions.call("bash", {"command": command})


class AsyncBash(BetaAsyncBuiltinFunctionTool):  # type: ignore[misc] # as above
    """The bash tool in asyncio."""

    def __init__(self, functions: AsyncFunctions) -> None:
        self.functions = functions

    def to_dict(self) -> Json:
        """The tool for a request."""
        return _bash()

    async def call(self, input: object) -> str:  # noqa: A002: the name that the runner knows
        """Run what a model asked for. What went wrong is a text, too."""
        try:
            command, restart = _asked(input)
            if restart:
                await self.functions.restart("bash")
                return RESTARTED
        except CoveError as err:
            return failed(err)
        return await self.functions.call("bash", {"command": command})


def _bash() -> Json:
    return {"type": "bash_20250124", "name": "bash"}


def _asked(given: object) -> Tuple[object, bool]:
    """What the input of a call asks for: a command, or a restart."""
    if not isinstance(given, Mapping) or not (given.get("restart") or "command" in given):
        raise InvalidError("bash: command is missing")
    return given.get("command"), given.get("restart") is True


class _Code(BetaBuiltinFunctionTool):  # type: ignore[misc] # as above
    def __init__(self, execution: CodeExecution, tool: Json) -> None:
        self._execution, self._tool = execution, tool

    def to_dict(self) -> Json:
        return dict(self._tool)

    def call(self, input: object) -> str:  # noqa: A002: the name that the runner knows
        return json.dumps(self._execution.content(_call(self._tool, input)), ensure_ascii=False)


class _AsyncCode(BetaAsyncBuiltinFunctionTool):  # type: ignore[misc] # as above
    def __init__(self, execution: AsyncCodeExecution, tool: Json) -> None:
        self._execution, self._tool = execution, tool

    def to_dict(self) -> Json:
        return dict(self._tool)

    async def call(self, input: object) -> str:  # noqa: A002: the name that the runner knows
        return json.dumps(await self._execution.content(_call(self._tool, input)), ensure_ascii=False)


def _call(tool: Json, given: object) -> Call:
    return Call("", tool["name"], given if isinstance(given, Mapping) else {}, False)

"""A sandbox as tools of OpenAI's Agents SDK.

    agent = Agent(name="…", tools=[shell_tool(sandbox)])

shell_tool is the shell that models of OpenAI know; cove_tools are functions, for all
models. Both are for an AsyncSandbox, since the SDK calls tools in asyncio.
"""

from __future__ import annotations

from typing import Any, List, Optional

from .._async.functions import AsyncFunctions
from .._async.sandbox import AsyncSandbox, checked
from .._errors import CoveError
from .._told import MOST, TOOLS, bound, cut, ended, failed, joined, renewed
from . import missing

try:
    from agents import FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult, ShellTool
except ImportError as err:
    raise missing("openai_agents", "openai-agents") from err

NOT_RUN = 125  # the exit code of what the platform could not run


def cove_tools(sandbox: AsyncSandbox, *, timeout: Optional[float] = None, most: int = MOST) -> List[FunctionTool]:
    """The functions of one sandbox: python, bash, read_file, write_file, edit_file and
    list_files. Each answers with a text of at most so many characters, whatever
    happens; timeout bounds a run, in seconds."""
    functions = AsyncFunctions(sandbox, timeout=timeout, most=most)
    return [
        FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.parameters,
            on_invoke_tool=_invoked(functions, tool.name),
            strict_json_schema=False,  # which has no arguments that can be left out
        )
        for tool in TOOLS
    ]


def _invoked(functions: AsyncFunctions, name: str) -> Any:
    async def invoke(_: Any, arguments: str) -> str:
        return await functions.call(name, arguments)

    return invoke


def shell_tool(sandbox: AsyncSandbox, *, timeout: Optional[float] = None, most: int = MOST) -> ShellTool:
    """The shell. Each command has a fresh one, and files stay. A model may ask for less
    time than timeout and for less output than most, not for more."""
    return ShellTool(executor=Shell(sandbox, timeout=timeout, most=most))


class Shell:
    """Runs what a shell call asks for, for a ShellTool with settings of your own."""

    def __init__(self, sandbox: AsyncSandbox, *, timeout: Optional[float] = None, most: int = MOST) -> None:
        self.sandbox = checked(sandbox)
        self.timeout = timeout
        self.most = bound(most)

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        """Run the commands, one after the other. What did not work is a result."""
        action = request.data.action
        asked = [seconds for seconds in (self.timeout, (action.timeout_ms or 0) / 1000) if seconds]
        most = min(self.most, action.max_output_length or self.most)
        outputs = []
        for command in action.commands:
            outputs.append(await self._run(command, min(asked, default=None), most))
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    async def _run(self, command: str, timeout: Optional[float], most: int) -> ShellCommandOutput:
        try:
            x = await self.sandbox.commands.run(command, timeout=timeout)
        except CoveError as err:
            return ShellCommandOutput(command=command, stderr=cut(failed(err), most), outcome=ShellCallOutcome(type="exit", exit_code=NOT_RUN))
        late = x.outcome == "timed_out"
        notes = [note for note in (renewed(x),) if note]
        if not late and x.outcome != "exited":  # the outcome has no other words
            notes.append(f"[{ended(x)}]")
        stderr = "" if x.outcome == "blocked" else x.stderr  # which repeats it
        return ShellCommandOutput(
            command=command,
            stdout=cut(x.stdout, most),
            stderr=cut(joined(stderr, *notes) if notes else stderr, most),
            outcome=ShellCallOutcome(type="timeout") if late else ShellCallOutcome(type="exit", exit_code=x.exit_code),
        )

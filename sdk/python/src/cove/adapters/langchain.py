"""A sandbox as tools of LangChain.

    agent = create_agent(model, tools=cove_tools(sandbox))

The tools are those of cove.adapters.functions. Of a Sandbox they also work in
asyncio, in threads; of an AsyncSandbox only there.
"""

from __future__ import annotations

from typing import Any, List, Optional, Union

from .._async.functions import AsyncFunctions
from .._async.sandbox import AsyncSandbox
from .._sync.functions import Functions
from .._sync.sandbox import Sandbox
from .._told import MOST, TOOLS, Tool
from . import missing

try:
    from langchain_core.tools import BaseTool, StructuredTool
except ImportError as err:
    raise missing("langchain", "langchain") from err


def cove_tools(sandbox: Union[Sandbox, AsyncSandbox], *, timeout: Optional[float] = None, most: int = MOST) -> List[BaseTool]:
    """The tools of one sandbox: python, bash, read_file, write_file, edit_file and
    list_files. Each answers with a text of at most so many characters, whatever
    happens; timeout bounds a run, in seconds."""
    if isinstance(sandbox, AsyncSandbox):
        later = AsyncFunctions(sandbox, timeout=timeout, most=most)
        return [_made(tool, coroutine=_coroutine(later, tool.name)) for tool in TOOLS]
    now = Functions(sandbox, timeout=timeout, most=most)
    return [_made(tool, func=_function(now, tool.name)) for tool in TOOLS]


def _made(tool: Tool, **how: Any) -> BaseTool:
    return StructuredTool(name=tool.name, description=tool.description, args_schema=tool.parameters, **how)


def _function(functions: Functions, name: str) -> Any:
    def call(**arguments: Any) -> str:
        return functions.call(name, arguments)

    return call


def _coroutine(functions: AsyncFunctions, name: str) -> Any:
    async def call(**arguments: Any) -> str:
        return await functions.call(name, arguments)

    return call

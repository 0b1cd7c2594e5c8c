"""Cove runs programs that nobody has read, in sandboxes.

    from cove import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.commands.run("echo hello").stdout)

Names that begin with Async are the same in asyncio, which is imported when one
of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import (
    AuthenticationError,
    CanceledError,
    CodeExecutionError,
    CommandExecutionError,
    ConfigurationError,
    ConflictError,
    CoveError,
    DeniedError,
    InternalError,
    InvalidError,
    NotFoundError,
    OutOfTimeError,
    ResourceLimitError,
    SandboxCreationError,
    ServerConnectionError,
    SessionNotFoundError,
    UnavailableError,
    UnsupportedError,
    VersionWarning,
)
from ._models import (
    Chunk,
    CodeError,
    CodeResult,
    Context,
    Execution,
    FileChange,
    FileInfo,
    Health,
    Link,
    Node,
    NodeProvider,
    OutputPage,
    ProcessInfo,
    ProviderShare,
    Result,
    Session,
    Snapshot,
    Stats,
    Usage,
)
from ._sync.client import Client
from ._sync.commands import Output, Process, Terminal
from ._sync.sandbox import Sandbox
from ._version import VERSION as __version__

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._async.commands import AsyncOutput, AsyncProcess, AsyncTerminal
    from ._async.sandbox import AsyncSandbox
    from ._async.sessions import AsyncSandboxClient
    from ._sync.sessions import SandboxClient
    from .python_tool import CodeSandbox, ExecutionResult, get_sandbox, run_python_code
    from .wrapper import MicrosandboxWrapper, SandboxFlavor, WrapperConfig

# What is imported when it is first used, so that nobody waits for the rest.
_LATER = {
    "AsyncClient": "_async.client",
    "AsyncOutput": "_async.commands",
    "AsyncProcess": "_async.commands",
    "AsyncTerminal": "_async.commands",
    "AsyncSandbox": "_async.sandbox",
    "AsyncSandboxClient": "_async.sessions",
    "SandboxClient": "_sync.sessions",
    "CodeSandbox": "python_tool",
    "ExecutionResult": "python_tool",
    "get_sandbox": "python_tool",
    "run_python_code": "python_tool",
    "MicrosandboxWrapper": "wrapper",
    "SandboxFlavor": "wrapper",
    "WrapperConfig": "wrapper",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cove' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return __all__


__all__ = [
    "AsyncClient",
    "AsyncOutput",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncSandboxClient",
    "AsyncTerminal",
    "AuthenticationError",
    "CanceledError",
    "Chunk",
    "Client",
    "CodeError",
    "CodeExecutionError",
    "CodeResult",
    "CodeSandbox",
    "CommandExecutionError",
    "ConfigurationError",
    "ConflictError",
    "Context",
    "CoveError",
    "DeniedError",
    "Execution",
    "ExecutionResult",
    "FileChange",
    "FileInfo",
    "Health",
    "InternalError",
    "InvalidError",
    "Link",
    "MicrosandboxWrapper",
    "Node",
    "NodeProvider",
    "NotFoundError",
    "OutOfTimeError",
    "Output",
    "OutputPage",
    "Process",
    "ProcessInfo",
    "ProviderShare",
    "ResourceLimitError",
    "Result",
    "Sandbox",
    "SandboxClient",
    "SandboxCreationError",
    "SandboxFlavor",
    "ServerConnectionError",
    "Session",
    "SessionNotFoundError",
    "Snapshot",
    "Stats",
    "Terminal",
    "UnavailableError",
    "UnsupportedError",
    "Usage",
    "VersionWarning",
    "WrapperConfig",
    "__version__",
    "get_sandbox",
    "run_python_code",
]

"""The exceptions by the names that users of other sandboxes know."""

from __future__ import annotations

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

MicrosandboxWrapperError = CoveError
ConnectionError = ServerConnectionError  # noqa: A001: the name that its users write

__all__ = [
    "AuthenticationError",
    "CanceledError",
    "CodeExecutionError",
    "CommandExecutionError",
    "ConfigurationError",
    "ConflictError",
    "ConnectionError",
    "CoveError",
    "DeniedError",
    "InternalError",
    "InvalidError",
    "MicrosandboxWrapperError",
    "NotFoundError",
    "OutOfTimeError",
    "ResourceLimitError",
    "SandboxCreationError",
    "ServerConnectionError",
    "SessionNotFoundError",
    "UnavailableError",
    "UnsupportedError",
    "VersionWarning",
]

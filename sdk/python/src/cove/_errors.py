"""What goes wrong, as exceptions.

A program that fails is a result and no exception. An exception says that the
platform could not do what it was asked. Each has the code that says who must
act, and most have a reason, a finer word, and a remedy, what to do about it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class CoveError(Exception):
    """The root of all exceptions of this package."""

    code = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        reason: str = "",
        remedy: str = "",
        details: Optional[Mapping[str, Any]] = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.reason = reason
        self.remedy = remedy
        self.details: Dict[str, Any] = dict(details or {})
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class InvalidError(CoveError):
    """The request is malformed: mend it."""

    code = "invalid"


class AuthenticationError(CoveError):
    """No valid key was shown."""

    code = "unauthenticated"


class DeniedError(CoveError):
    """The key may not do this."""

    code = "denied"


class NotFoundError(CoveError):
    """There is no such thing, or it belongs to somebody else."""

    code = "not_found"


class SessionNotFoundError(NotFoundError):
    """There is no such session, or not any more."""


class ConflictError(CoveError):
    """The thing is in another state."""

    code = "conflict"


class ResourceLimitError(CoveError):
    """A quota or the machine is full: later, or less."""

    code = "exhausted"


class UnsupportedError(CoveError):
    """This provider cannot do or enforce that."""

    code = "unsupported"


class UnavailableError(CoveError):
    """Something that is needed is down: try again after a while."""

    code = "unavailable"


class ServerConnectionError(UnavailableError, ConnectionError):
    """The server gave no answer, or one that Cove does not give."""


class SandboxCreationError(UnavailableError):
    """No sandbox could be made, for no fault of the request."""


class OutOfTimeError(CoveError, TimeoutError):
    """The operation's time is over."""

    code = "timeout"


class CanceledError(CoveError):
    """The server ended what was asked before it was done."""

    code = "canceled"


class InternalError(CoveError):
    """A fault of the server; its log has more under the request id."""

    code = "internal"


class ConfigurationError(CoveError):
    """A setting does not fit."""

    code = "invalid"


class CodeExecutionError(CoveError):
    """Code failed; results make one of these when they are asked to."""

    code = "invalid"


class CommandExecutionError(CoveError):
    """A program failed; results make one of these when they are asked to."""

    code = "invalid"


class VersionWarning(UserWarning):
    """The server and this package have versions that may not fit."""


_BY_REASON: Dict[str, Type[CoveError]] = {
    "no_such_session": SessionNotFoundError,
    "session_expired": SessionNotFoundError,
    "session_closed": SessionNotFoundError,
    "node_lost": SessionNotFoundError,
    "volume_overrun": SessionNotFoundError,
    "kernel_memory": SessionNotFoundError,
    "connection": ServerConnectionError,
    "provider_down": ServerConnectionError,
    "configuration": ConfigurationError,
    "sandbox_creation": SandboxCreationError,
    "limit": SandboxCreationError,
    "code_failed": CodeExecutionError,
    "command_failed": CommandExecutionError,
}

_BY_CODE: Dict[str, Type[CoveError]] = {
    kind.code: kind
    for kind in (
        InvalidError,
        AuthenticationError,
        DeniedError,
        NotFoundError,
        ConflictError,
        ResourceLimitError,
        UnsupportedError,
        UnavailableError,
        OutOfTimeError,
        CanceledError,
        InternalError,
    )
}


def is_problem(body: Any) -> bool:
    """Whether an answer is one in which Cove tells of an error."""
    if not isinstance(body, dict) or not isinstance(body.get("error"), str):
        return False
    return isinstance(body.get("code"), str) and body["code"] in _BY_CODE and isinstance(body.get("reason") or "", str)


def from_problem(body: Mapping[str, Any]) -> CoveError:
    """The exception that an answer tells of, which is_problem must have seen."""
    code = str(body["code"])
    reason = body.get("reason") or ""
    kind = _BY_CODE[code]
    # What is full is full for whatever reason.
    if code != "exhausted":
        kind = _BY_REASON.get(reason, kind)
    return kind(
        str(body["error"]),
        code=code,
        reason=str(reason),
        remedy=str(body.get("remedy") or ""),
        details=body.get("details") if isinstance(body.get("details"), dict) else None,
        request_id=str(body.get("request_id") or ""),
    )


def invalid_field(field: str, what: str) -> InvalidError:
    """The exception for one bad argument."""
    return InvalidError(f"{field}: {what}", details={"field": field})


def configuration(field: str, what: str, remedy: str = "") -> ConfigurationError:
    """The exception for a setting that does not fit."""
    return ConfigurationError(f"{field}: {what}", reason="configuration", remedy=remedy, details={"field": field})


def one_way_over_tls() -> UnsupportedError:
    """The exception for who ends what is sent, and not what comes, where TLS knows but one end."""
    return UnsupportedError("a connection over TLS cannot be ended one way alone", remedy="close it, or reach the server over http or its unix socket")

# Made from _async/ports.py by mirror.py: change that, not this.
"""Ways into a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Type

from .._models import Link, pick
from .._wire import without_none
from .http import Response
from .transport import at

if TYPE_CHECKING:
    from types import TracebackType

    from .sandbox import Sandbox


class Port:
    """A connection to what listens inside."""

    def __init__(self, response: Response) -> None:
        self._stream = response.connection.stream
        self._first = bytes(response.connection.buffer)  # what came with the answer

    def recv(self, timeout: Optional[float] = None) -> bytes:
        """What has come, at least a byte; nothing at the end."""
        if self._first:
            data, self._first = self._first, b""
            return data
        return self._stream.recv(timeout)

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._stream.send(data)

    def finish(self) -> None:
        """End what is sent, and leave the other way open. Over https that cannot be
        done, and UnsupportedError is raised."""
        self._stream.finish()

    def close(self) -> None:
        """Close it."""
        self._stream.abort()

    def __enter__(self) -> "Port":
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        self.close()


class Ports:
    """Ports of one sandbox."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self._sandbox = sandbox

    def _at(self, port: int, rest: str = "") -> str:
        return at("/api/sandboxes/", self._sandbox.sandbox_id, "/ports/", str(port), rest)

    def url(self, port: int, *, ttl_seconds: Optional[float] = None) -> Link:
        """A link to what listens on a port, for a browser, for a while."""
        return pick(Link, self._sandbox.client.transport.get("POST", self._at(port), json_body=without_none({"ttl_seconds": ttl_seconds})))

    def connect(self, port: int) -> Port:
        """Connect to what listens on a port."""
        transport = self._sandbox.client.transport
        response = transport.send("GET", self._at(port, "/connect"), headers={"Connection": "Upgrade", "Upgrade": "tcp"})
        if response.status != 101:
            transport.drop(response)
            raise transport.strange("no connection")
        return Port(response)

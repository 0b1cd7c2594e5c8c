"""Ways into a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Type

from .._models import Link, pick
from .._wire import without_none
from .http import AsyncResponse
from .transport import at

if TYPE_CHECKING:
    from types import TracebackType

    from .sandbox import AsyncSandbox


class AsyncPort:
    """A connection to what listens inside."""

    def __init__(self, response: AsyncResponse) -> None:
        self._stream = response.connection.stream
        self._first = bytes(response.connection.buffer)  # what came with the answer

    async def recv(self, timeout: Optional[float] = None) -> bytes:
        """What has come, at least a byte; nothing at the end."""
        if self._first:
            data, self._first = self._first, b""
            return data
        return await self._stream.recv(timeout)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        await self._stream.send(data)

    async def finish(self) -> None:
        """End what is sent, and leave the other way open. Over https that cannot be
        done, and UnsupportedError is raised."""
        self._stream.finish()

    async def aclose(self) -> None:
        """Close it."""
        self._stream.abort()

    async def __aenter__(self) -> "AsyncPort":
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        await self.aclose()


class AsyncPorts:
    """Ports of one sandbox."""

    def __init__(self, sandbox: "AsyncSandbox") -> None:
        self._sandbox = sandbox

    def _at(self, port: int, rest: str = "") -> str:
        return at("/api/sandboxes/", self._sandbox.sandbox_id, "/ports/", str(port), rest)

    async def url(self, port: int, *, ttl_seconds: Optional[float] = None) -> Link:
        """A link to what listens on a port, for a browser, for a while."""
        return pick(Link, await self._sandbox.client.transport.get("POST", self._at(port), json_body=without_none({"ttl_seconds": ttl_seconds})))

    async def connect(self, port: int) -> AsyncPort:
        """Connect to what listens on a port."""
        transport = self._sandbox.client.transport
        response = await transport.send("GET", self._at(port, "/connect"), headers={"Connection": "Upgrade", "Upgrade": "tcp"})
        if response.status != 101:
            transport.drop(response)
            raise transport.strange("no connection")
        return AsyncPort(response)

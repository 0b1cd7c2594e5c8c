"""HTTP/1.1 over a stream: one request and one answer at a time.

http.client is not used: it cannot send while it listens for an early answer,
knows no unix sockets, has no counterpart in asyncio, and takes longer to
import than the rest of this package.
"""

from __future__ import annotations

from typing import AsyncIterator, Dict, Mapping, Optional, Union

from .stream import AsyncStream

MAX_HEAD = 64 << 10
MAX_LINE = 4 << 10
MAX_LINES = 100  # after the last chunk
MAX_HINTS = 16  # heads before that of the answer
LAST_CHUNK = b"0\r\n\r\n"


class NotHTTP(Exception):
    """The other side does not speak HTTP."""


class BrokenOff(Exception):
    """The connection ended before the answer was whole."""


class AsyncFollowing:
    """A body that is sent while the answer comes already."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self.pieces = pieces

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it travels."""
        async for piece in self.pieces:
            if piece:
                yield _chunk(piece)
        yield LAST_CHUNK


# What goes along with a request.
Body = Union[bytes, AsyncIterator[bytes], AsyncFollowing, None]


class AsyncConnection:
    """A stream on which requests are made one after the other."""

    def __init__(self, stream: AsyncStream, host: str) -> None:
        self.stream = stream
        self.host = host
        self.buffer = bytearray()

    async def exchange(self, method: str, target: str, headers: Mapping[str, str], body: Body, timeout: Optional[float]) -> "AsyncResponse":
        """Send a request, and return the answer when its head is there."""
        head = [f"{method} {target} HTTP/1.1\r\nHost: {self.host}\r\n"]
        head += [f"{name}: {value}\r\n" for name, value in headers.items()]
        if isinstance(body, bytes):
            head.append(f"Content-Length: {len(body)}\r\n\r\n")
            await self.stream.send("".join(head).encode("latin-1") + body)
            whole = True
        elif body is None:
            head.append("Content-Length: 0\r\n\r\n" if method in ("POST", "PUT") else "\r\n")
            await self.stream.send("".join(head).encode("latin-1"))
            whole = True
        else:
            head.append("Transfer-Encoding: chunked\r\n\r\n")
            await self.stream.send("".join(head).encode("latin-1"))
            whole = True
            if isinstance(body, AsyncFollowing):
                self.stream.pour(body.chunks())
            else:
                whole = await self._pour(body)
        for _ in range(MAX_HINTS):
            status, got = await self._head(timeout)
            if status == 101 or not 100 <= status < 200:
                return AsyncResponse(self, method, status, got, whole)
        raise NotHTTP()

    async def _pour(self, body: AsyncIterator[bytes]) -> bool:
        """Send a body in chunks, up to an answer that comes before its end."""
        while True:
            try:
                piece = await body.__anext__()
            except StopAsyncIteration:
                return await self._sent(LAST_CHUNK)
            except BaseException as err:
                self.stream.of_caller = err
                raise
            if piece and not await self._sent(_chunk(piece)):
                return False

    async def _sent(self, data: bytes) -> bool:
        try:
            return await self.stream.send(data, until_answer=True)
        except (BrokenPipeError, ConnectionResetError):
            return False  # who hangs up may have said why

    async def more(self, timeout: Optional[float]) -> None:
        """Wait for more bytes in the buffer."""
        piece = await self.stream.recv(timeout)
        if not piece:
            raise BrokenOff()
        self.buffer += piece

    async def line(self, timeout: Optional[float]) -> bytes:
        """The next line, without its end."""
        while True:
            end = self.buffer.find(b"\n")
            if end >= 0:
                got = bytes(self.buffer[:end]).rstrip(b"\r")
                del self.buffer[: end + 1]
                return got
            if len(self.buffer) > MAX_LINE:
                raise NotHTTP()
            await self.more(timeout)

    async def _head(self, timeout: Optional[float]) -> "tuple[int, Dict[str, str]]":
        while True:
            end = self.buffer.find(b"\r\n\r\n")
            if end >= 0:
                break
            if len(self.buffer) > MAX_HEAD or (len(self.buffer) >= 5 and self.buffer[:5] != b"HTTP/"):
                raise NotHTTP()
            await self.more(timeout)
        lines = bytes(self.buffer[:end]).decode("latin-1").split("\r\n")
        del self.buffer[: end + 4]
        first = lines[0].split(" ", 2)
        if len(first) < 2 or not first[0].startswith("HTTP/1.") or number(first[1]) is None:
            raise NotHTTP()
        headers: Dict[str, str] = {}
        for line in lines[1:]:
            name, found, value = line.partition(":")
            if not found:
                raise NotHTTP()
            headers[name.strip().lower()] = value.strip()
        return int(first[1]), headers


class AsyncResponse:
    """An answer whose body is read as it is wanted."""

    def __init__(self, connection: AsyncConnection, method: str, status: int, headers: Dict[str, str], sent: bool) -> None:
        self.connection = connection
        self.status = status
        self.headers = headers
        self.keep = sent and status != 101 and headers.get("connection", "").lower() != "close"
        self._left: Optional[int] = None  # bytes of the body or of this chunk; None: up to the end
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        length = number(headers.get("content-length", ""))
        if method == "HEAD" or status in (204, 304):
            self._left, self._chunked = 0, False
        elif self._chunked:
            self._left = 0
        elif length is not None:
            self._left = length
        self.done = self._left == 0 and not self._chunked
        if self._left is None:
            self.keep = False

    @property
    def media(self) -> str:
        """The type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def piece(self, timeout: Optional[float] = None) -> bytes:
        """The next part of the body; nothing at its end. It raises BrokenOff."""
        if self.done:
            return b""
        c = self.connection
        if self._chunked and self._left == 0:
            size = (await c.line(timeout)).partition(b";")[0].strip()
            if not 0 < len(size) <= 16 or size.strip(b"0123456789abcdefABCDEF"):
                raise BrokenOff()
            self._left = int(size, 16)
            if self._left == 0:
                for _ in range(MAX_LINES):
                    if not await c.line(timeout):
                        self.done = True
                        return b""
                raise BrokenOff()
        if not c.buffer:
            got = await c.stream.recv(timeout)
            if not got and self._left is not None:
                raise BrokenOff()
            if not got:
                self.done = True
                return b""
            c.buffer += got
        size_now = len(c.buffer) if self._left is None else min(self._left, len(c.buffer))
        data = bytes(c.buffer[:size_now])
        del c.buffer[:size_now]
        if self._left is not None:
            self._left -= size_now
            if self._left == 0 and self._chunked:
                await c.line(timeout)
            elif self._left == 0:
                self.done = True
        return data

    async def read(self, most: int, timeout: Optional[float] = None) -> bytes:
        """The whole body, of up to most bytes. It raises BrokenOff, and OverflowError beyond."""
        got = bytearray()
        while True:
            data = await self.piece(timeout)
            if not data:
                return bytes(got)
            got += data
            if len(got) > most:
                raise OverflowError("the answer is too large")


def number(text: str) -> Optional[int]:
    """The number that a text is in plain digits; what else Python takes for one is None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)

"""Bytes to and from a server in asyncio. cove._sync.stream is its counterpart
for callers that wait; both are written by hand, all that stands on them once."""

from __future__ import annotations

import asyncio
import io
import os
import select
import socket
import ssl
import stat
from typing import Any, AsyncIterator, Callable, Optional, TypeVar

from .._address import Address, keep_alive
from .._errors import one_way_over_tls
from .._wire import piece_of

HIGH = 1 << 20  # bytes that wait for a reader before the server is held up
PIECE = 64 << 10

T = TypeVar("T")

# What can be sent: bytes, a file that is open for reading, or pieces.
Source = Any


class AsyncStream(asyncio.Protocol):
    """A connection. One task may read and one may write at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._buffer = bytearray()
        self._eof = False  # nothing more comes; what is sent may still arrive
        self._lost = False  # nothing goes either way
        self._fault: Optional[BaseException] = None
        self._held = self._full = False
        self._reader: Optional["asyncio.Future[None]"] = None
        self._writer: Optional["asyncio.Future[None]"] = None
        self._pouring: Optional["asyncio.Task[None]"] = None
        self._stopped = False  # nobody wants more to be poured
        self.unsent = False  # not all that was poured has gone
        self.of_caller: Optional[BaseException] = None  # what a source raised that was to be sent

    @classmethod
    async def connect(cls, address: Address, timeout: float, context: Optional[ssl.SSLContext]) -> "AsyncStream":
        """A new connection to a server. It raises OSError."""
        loop = asyncio.get_running_loop()
        if address.socket is not None:
            opening = loop.create_unix_connection(cls, address.socket)
        elif address.tls:
            opening = loop.create_connection(cls, address.host, address.port, ssl=context or ssl.create_default_context())
        else:
            opening = loop.create_connection(cls, address.host, address.port)
        try:
            _, stream = await asyncio.wait_for(opening, timeout)
        except asyncio.TimeoutError:
            raise TimeoutError("no connection in time") from None
        return stream

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            keep_alive(sock)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > HIGH and not self._held:
            self._held = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._eof = True
        self._wake()
        return not self._tls()  # a port may still be written to

    def connection_lost(self, exc: Optional[BaseException]) -> None:
        self._eof, self._lost, self._fault = True, True, exc
        self._wake()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    def _wake(self) -> None:
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    # What callers use.

    async def recv(self, timeout: Optional[float] = None) -> bytes:
        """What has come, at least a byte; nothing at the end."""
        while not self._buffer and not self._eof and self.of_caller is None:
            self._reader = self._loop.create_future()
            try:
                if timeout is None:
                    await self._reader
                else:
                    await asyncio.wait_for(self._reader, timeout)
            except asyncio.TimeoutError:
                raise TimeoutError("no sign of life") from None
            finally:
                self._reader = None
        if self.of_caller is not None:
            raise self.of_caller
        if not self._buffer and self._fault is not None:
            raise ConnectionResetError(str(self._fault)) from self._fault
        data = bytes(self._buffer)
        self._buffer.clear()
        if self._held:
            self._held = False
            if not self._eof:
                self._transport.resume_reading()
        return data

    async def send(self, data: bytes, until_answer: bool = False) -> bool:
        """Send all of it. With until_answer, stop and return False when an answer comes."""
        if self._transport.is_closing() or self._fault is not None:
            raise BrokenPipeError("the connection is closed")
        if until_answer and self.readable():
            return False
        self._transport.write(data)
        while self._full and not self._lost:
            if until_answer and self.readable():
                return False
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        return True

    def pour(self, source: AsyncIterator[bytes]) -> None:
        """Send what comes from a source while an answer is read, and let what the
        source raises be raised where that is."""
        self.unsent = True
        self._pouring = self._loop.create_task(self._pour(source))

    async def _pour(self, source: AsyncIterator[bytes]) -> None:
        while True:
            try:
                piece = await source.__anext__()
            except StopAsyncIteration:
                self.unsent = False
                return
            except BaseException as err:
                if not self._stopped:
                    self.of_caller = err
                    self._wake()
                if isinstance(err, Exception):
                    return
                raise
            try:
                await self.send(piece)
            except OSError:
                return  # who hangs up may have said why

    def stop_pouring(self) -> None:
        """Send no more of what was poured."""
        self._stopped = True
        if self._pouring is not None:
            self._pouring.cancel()

    def readable(self) -> bool:
        """Whether something has come, the end included, or nobody can use this any more."""
        if self._buffer or self._eof or self._loop is not asyncio.get_running_loop():
            return True
        if self._tls():
            return False  # what lies in its socket may be TLS's own
        # What has come while the loop was busy with something else counts, too.
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def finish(self) -> None:
        """End what is sent, and leave the other way open. It raises UnsupportedError over TLS."""
        if self._tls():
            raise one_way_over_tls()
        self._transport.write_eof()

    def _tls(self) -> bool:
        return self._transport.get_extra_info("ssl_object") is not None

    def leave(self) -> None:
        """Let go of what another process goes on using."""

    def abort(self) -> None:
        """Close it at once, also from another loop than its own."""
        try:
            if self._loop is _running():
                self._end()
            else:
                self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:  # its loop has ended, and it with that
            pass

    def _end(self) -> None:
        self.stop_pouring()
        self._transport.abort()


def _running() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class AsyncLock:
    """A lock that can be made outside of an event loop, and used in one after the other."""

    def __init__(self) -> None:
        self._lock: Optional[asyncio.Lock] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            self._lock, self._loop = asyncio.Lock(), loop
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()


async def blocking(do: Callable[[], T]) -> T:
    """Do something that waits without an await."""
    return await asyncio.get_running_loop().run_in_executor(None, do)


async def pause(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


def _waited_for(source: Source) -> Optional[int]:
    """The descriptor of a pipe, a terminal or the like, which may have nothing to read
    for ever; a thread that reads it then would keep the program from its end."""
    if not hasattr(source, "read1") and not isinstance(source, io.RawIOBase):
        return None  # it reads on until it has as much as was asked for
    try:
        fd: int = source.fileno()
        return None if stat.S_ISREG(os.fstat(fd).st_mode) else fd
    except (AttributeError, OSError, ValueError):
        return None


async def _readable(fd: int) -> None:
    """Wait until there is something to read, or its end."""
    loop = asyncio.get_running_loop()
    came: "asyncio.Future[None]" = loop.create_future()
    twin = os.dup(fd)  # the caller may look at this one in the same loop

    def tell() -> None:
        if not came.done():
            came.set_result(None)

    try:
        loop.add_reader(twin, tell)
        try:
            await came
        finally:
            loop.remove_reader(twin)
    except (OSError, NotImplementedError):
        pass  # such as /dev/null, which makes nobody wait
    finally:
        os.close(twin)


async def pieces(source: Source) -> AsyncIterator[bytes]:
    """What is to be sent, piece by piece; a file is never held whole."""
    if isinstance(source, str):
        source = piece_of(source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        for done in range(0, len(source), PIECE):
            yield bytes(source[done : done + PIECE])
    elif hasattr(source, "read"):
        # What is there is sent at once, where a file can say that.
        read, fd = getattr(source, "read1", source.read), _waited_for(source)
        while True:
            if fd is not None:
                await _readable(fd)
            piece = await blocking(lambda: read(PIECE))
            if not piece:
                return
            yield piece_of(piece)
    elif hasattr(source, "__aiter__"):
        async for piece in source:
            yield piece_of(piece)
    else:
        for piece in source:
            yield piece_of(piece)

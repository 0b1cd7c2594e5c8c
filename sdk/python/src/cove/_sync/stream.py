"""Bytes to and from a server, for callers that wait. cove._async.stream is its
counterpart in asyncio; both are written by hand, all that stands on them once."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, TypeVar

from .._address import Address, keep_alive
from .._errors import one_way_over_tls
from .._wire import piece_of

if TYPE_CHECKING:
    import ssl

PIECE = 64 << 10

T = TypeVar("T")

# What can be sent: bytes, a file that is open for reading, or pieces.
Source = Any


class Stream:
    """A connection. One thread may read and one may write at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pid = os.getpid()
        self._early: Optional[bytes] = None  # what was read to see whether there is anything
        self._source: Optional[Iterator[bytes]] = None  # what is poured
        self._rest = memoryview(b"")  # of the piece that it gave last
        self.unsent = False  # not all that was poured has gone
        self.of_caller: Optional[BaseException] = None  # what a source raised that was to be sent

    @classmethod
    def connect(cls, address: Address, timeout: float, context: Optional["ssl.SSLContext"]) -> "Stream":
        """A new connection to a server. It raises OSError."""
        if address.socket is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            try:
                sock.connect(address.socket)
            except BaseException:
                sock.close()
                raise
            return cls(sock)
        sock = socket.create_connection((address.host, address.port), timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(sock)
            if address.tls:
                import ssl

                sock = (context or ssl.create_default_context()).wrap_socket(sock, server_hostname=address.host)
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    def recv(self, timeout: Optional[float] = None) -> bytes:
        """What has come, at least a byte; nothing at the end."""
        if self._early is not None:
            early, self._early = self._early, None
            return early
        while self._source is not None and not self.readable():
            self._pour_on(self._source, timeout)
        if self._early is not None:
            return self.recv()
        self._sock.settimeout(timeout)
        try:
            return self._sock.recv(PIECE)
        except socket.timeout:
            raise TimeoutError("no sign of life") from None

    def send(self, data: bytes, until_answer: bool = False) -> bool:
        """Send all of it. With until_answer, stop and return False when an answer comes."""
        self._sock.settimeout(None)
        if not until_answer:
            self._sock.sendall(data)
            return True
        view = memoryview(data)
        while view:
            if self._ready(select.POLLIN | select.POLLOUT, None) & ~select.POLLOUT and self.readable():
                return False
            self._sock.settimeout(None)
            view = view[self._sock.send(view[:PIECE]) :]
        return True

    def pour(self, source: Iterator[bytes]) -> None:
        """Send what comes from a source while an answer is read, and let what the
        source raises be raised where that is. Who reads is who sends."""
        self.unsent = True
        self._source = source

    def _pour_on(self, source: Iterator[bytes], timeout: Optional[float]) -> None:
        """Send some of what is poured, unless something comes before there is room for it."""
        if not self._rest:
            try:
                self._rest = memoryview(next(source))
            except StopIteration:
                self._source, self.unsent = None, False
                return
            except BaseException as err:
                self.of_caller = err
                raise
        ready = self._ready(select.POLLIN | select.POLLOUT, None if timeout is None else timeout * 1000)
        if not ready:
            raise TimeoutError("no sign of life")
        if not ready & select.POLLOUT:
            return
        self._sock.settimeout(0)
        try:
            self._rest = self._rest[self._sock.send(self._rest[:PIECE]) :]
        except (BrokenPipeError, ConnectionResetError):
            self.stop_pouring()  # who hangs up may have said why
        except OSError as err:
            if not _later(err):
                raise

    def stop_pouring(self) -> None:
        """Send no more of what was poured."""
        self._source = None

    def _ready(self, events: int, wait: Optional[float]) -> int:
        poll = select.poll()
        poll.register(self._sock, events)
        found = poll.poll(wait)
        return found[0][1] if found else 0

    def readable(self) -> bool:
        """Whether something has come, the end included."""
        pending = getattr(self._sock, "pending", None)
        if self._early is not None or (pending is not None and pending()):
            return True
        if self._ready(select.POLLIN, 0) == 0:
            return False
        return pending is None or self._decrypted()

    def _decrypted(self) -> bool:
        """Whether what lies in a socket with TLS is for us and not TLS's own."""
        self._sock.settimeout(0)
        try:
            self._early = self._sock.recv(PIECE)
        except OSError as err:
            if _later(err):
                return False
            self._early = b""
        return True

    def finish(self) -> None:
        """End what is sent, and leave the other way open. It raises UnsupportedError over TLS."""
        if hasattr(self._sock, "pending"):
            raise one_way_over_tls()
        self._sock.shutdown(socket.SHUT_WR)

    def leave(self) -> None:
        """Let go of what another process goes on using."""
        self._sock.close()

    def abort(self) -> None:
        """Close it at once, also while another thread reads. A fork only lets go of it."""
        self.stop_pouring()
        if self._pid != os.getpid():
            self.leave()
            return
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()


def _later(err: OSError) -> bool:
    """Whether what could not be done at once can be done in a while."""
    if isinstance(err, BlockingIOError):
        return True
    import ssl

    return isinstance(err, (ssl.SSLWantReadError, ssl.SSLWantWriteError))


class Lock:
    """A lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def blocking(do: Callable[[], T]) -> T:
    """Do something that waits."""
    return do()


def pause(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)


def pieces(source: Source) -> Iterator[bytes]:
    """What is to be sent, piece by piece; a file is never held whole."""
    if isinstance(source, str):
        source = piece_of(source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        for done in range(0, len(source), PIECE):
            yield bytes(source[done : done + PIECE])
    elif hasattr(source, "read"):
        # What is there is sent at once, where a file can say that.
        read = getattr(source, "read1", source.read)
        while True:
            piece = read(PIECE)
            if not piece:
                return
            yield piece_of(piece)
    else:
        for piece in source:
            yield piece_of(piece)

"""Bytes to and from a server, for callers that wait. cove._async.stream is its
counterpart in asyncio; both are written by hand, all that stands on them once."""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, TypeVar

from .._address import Address

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
        self._early: Optional[bytes] = None  # what was read to see whether there is anything

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
            # A server that is gone without a word is noticed in the end.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
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
        import ssl

        self._sock.settimeout(0)
        try:
            self._early = self._sock.recv(PIECE)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            self._early = b""
        return True

    def finish(self) -> None:
        """End what is sent, and leave the other way open."""
        self._sock.shutdown(socket.SHUT_WR)

    def leave(self) -> None:
        """Let go of what another process goes on using."""
        self._sock.close()

    def abort(self) -> None:
        """Close it at once, also while another thread reads."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()


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
    if hasattr(source, "read"):
        while True:
            piece = source.read(PIECE)
            if not piece:
                return
            yield piece.encode() if isinstance(piece, str) else bytes(piece)
    else:
        for piece in source:
            yield bytes(piece)

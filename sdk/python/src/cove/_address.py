"""Where a server is."""

from __future__ import annotations

import socket
from typing import NamedTuple, Optional
from urllib.parse import unquote, urlsplit

from ._errors import ConfigurationError, configuration

# After so many seconds without a word a peer is asked whether it lives, so often, and so
# many times. It is as long as a silent stream is borne.
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPALIVE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}


class Address(NamedTuple):
    """A server: a host and a port, with TLS or without, or a unix socket."""

    name: str  # in messages
    host: str  # of the header Host
    port: int
    tls: bool
    prefix: str  # what every path is put after
    socket: Optional[str]  # the path of a unix socket
    remedy: str  # what to do when it cannot be reached


def _bad() -> ConfigurationError:
    return configuration("url", "must be http://host:port, https://host or unix:///path/to.sock, without a user or a query")


def parse_address(url: str) -> Address:
    """The server that a URL names. It raises ConfigurationError."""
    if not isinstance(url, str):
        raise _bad()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad() from None
    if port == 0 or parts.username or parts.password or parts.query or parts.fragment or any(ord(c) <= 0x20 or ord(c) > 0x7E for c in url):
        raise _bad()
    if parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/"):
        path = unquote(parts.path)
        if "\0" in path:
            raise _bad()
        return unix_address(path)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _bad()
    tls = parts.scheme == "https"
    base = url.rstrip("/")
    return Address(base, parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"), None, "check the URL, and that cove serve runs there")


def unix_address(path: str) -> Address:
    """The server behind a unix socket."""
    return Address("unix://" + path, "cove", 0, False, "", path, "start it with cove serve, or check the path of the socket")


def check_key(key: str) -> str:
    """The key, if it can be one. It raises ConfigurationError."""
    if not isinstance(key, str) or any(c <= " " or c > "~" for c in key):
        raise configuration("api_key", "is not a key: it holds spaces or characters that no key has")
    return key


def keep_alive(sock: socket.socket) -> None:
    """Notice a peer that is gone without a word, also while nobody sends. What the
    system gives no say in stays as it is."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():  # TCP_KEEPALIVE is TCP_KEEPIDLE, as macOS calls it
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)

# Made from _async/transport.py by mirror.py: change that, not this.
"""Requests to one server: connections that are used again, and faults in words.

Nothing is asked twice here. A connection that was idle is looked at before it
is used, so that one which the server has closed carries no request.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from typing import TYPE_CHECKING, Any, List, Mapping, NoReturn, Optional, Tuple
from urllib.parse import quote, urlencode

from .._errors import (
    CoveError,
    InvalidError,
    OutOfTimeError,
    ServerConnectionError,
    VersionWarning,
    from_problem,
    invalid_field,
    is_problem,
)
from .._local import Home
from .._settings import Target
from .._sse import Event, Parser, TooLarge
from .._version import VERSION
from .._wire import Json, encoded_text, loaded
from .http import Connection, Response, Body, BrokenOff, NotHTTP
from .stream import Stream, blocking, pause

if TYPE_CHECKING:
    import ssl

MAX_ANSWER = 64 << 20  # bytes of an answer that is held; files and streams are not
MAX_PROBLEM = 1 << 20
IDLE = 90.0  # seconds; the server closes after two minutes
MOST_IDLE = 64
GREET_TIME = 10.0  # seconds in which a server of this machine says how it is

JSON = "application/json"
EVENTS = "text/event-stream"
BYTES = "application/octet-stream"
TAR = "application/x-tar"


def at(*parts: str) -> str:
    """A path of fixed parts, the even ones, and names that callers give, the odd ones."""
    whole = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            whole += part
        elif not isinstance(part, str) and part is not None:
            raise InvalidError(f"an id or a name must be a text, and is {type(part).__name__}")
        elif not part:
            raise from_problem({"code": "not_found", "error": "no name was given, and nothing is without one", "reason": "no_such_session" if i == 1 else ""})
        elif part in (".", ".."):
            whole += part.replace(".", "%2E")  # a plain one would mean another path
        else:
            whole += quote(encoded_text("name", part), safe="")
    return whole


def once(key: Optional[str]) -> "dict[str, str]":
    """The header of a request that is done once for a key, unless there is none."""
    return {"Idempotency-Key": key} if key else {}


class Transport:
    """A server, and the connections to it."""

    def __init__(self, target: Target, connect_timeout: float, silence: float, request_timeout: Optional[float], context: "Optional[ssl.SSLContext]") -> None:
        self._target = target
        self._connect_timeout = connect_timeout
        self.silence = silence
        self._request_timeout = request_timeout
        self._context = context
        self._idle: List[Tuple[Connection, float]] = []
        self._pid = os.getpid()
        self._greeted = False
        self.version = ""
        a = target.address
        bare = f"[{a.host}]" if ":" in a.host else a.host
        self._host = bare if a.port in (0, 443 if a.tls else 80) else f"{bare}:{a.port}"

    def __getstate__(self) -> NoReturn:
        raise TypeError("a client has connections and a key, which are not copied: make another one where it is needed")

    @property
    def name(self) -> str:
        """The server, in messages."""
        return self._target.address.name

    def _connection(self) -> Connection:
        if self._pid != os.getpid():  # a fork shares the sockets of its parent
            for connection, _ in self._idle:
                connection.stream.leave()
            self._idle, self._pid = [], os.getpid()
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break
            if time.monotonic() - since < IDLE and not connection.stream.readable():
                return connection
            connection.stream.abort()
        home = self._target.home
        if home is None:
            return self._dial()
        home.check()
        reached = self._reached(home)
        if reached is not None:
            return reached
        blocking(home.start)  # nothing was asked yet, so nothing is asked twice
        return self._dial()

    def _dial(self) -> Connection:
        try:
            return Connection(Stream.connect(self._target.address, self._connect_timeout, self._context), self._host)
        except OSError as err:
            raise self._unreachable(err) from err

    def _reached(self, home: Home) -> Optional[Connection]:
        """A connection on which the server of this machine has said that it is well.
        None: nobody is there, or one who is about to end, and another can take its place."""
        try:
            connection = self._dial()
        except ServerConnectionError as err:
            if isinstance(err.__cause__, (FileNotFoundError, ConnectionError, BlockingIOError, TimeoutError)):
                return None
            raise
        try:
            response = connection.exchange("GET", "/health", self._headers(None, ""), None, GREET_TIME)
            body = loaded(response.read(MAX_PROBLEM, GREET_TIME))
            well = response.status == 200 and response.keep and (body["status"] == "healthy" or not home.on_demand())
        except (BrokenOff, NotHTTP, OSError, OverflowError, ValueError, TypeError, KeyError):
            well = False  # also where it hangs up on us
        except BaseException:
            connection.stream.abort()
            raise
        if well:
            return connection
        connection.stream.abort()
        return None

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        body: Body = None,
        accept: str = "",
    ) -> Response:
        """Make a request and return an answer that is a success. Who gets it ends it with over or drop."""
        self._greet()
        target = self._target.address.prefix + path
        if query:
            target += "?" + urlencode([(name, encoded_text(name, str(one))) for name, value in query.items() for one in (value if isinstance(value, list) else [value])])
        response = self._exchange(method, target, self._headers(headers, accept), body)
        if (200 <= response.status < 300 or response.status == 101) and response.media == (accept or response.media):
            return response
        response.connection.stream.stop_pouring()
        try:
            told = self._problem(response)
        except BaseException:
            self.drop(response)
            raise
        self.over(response)  # which drops what was not read to its end
        raise told

    def _headers(self, more: Optional[Mapping[str, str]], accept: str) -> "dict[str, str]":
        headers = {"User-Agent": "cove-python/" + VERSION}
        if accept:
            headers["Accept"] = accept
        if self._target.key:
            headers["Authorization"] = "Bearer " + self._target.key
        for name, value in (more or {}).items():
            if not isinstance(value, str) or any(c < " " and c != "\t" or c == "\x7f" or c > "\xff" for c in value):
                raise invalid_field(name, "holds characters that a header cannot have")
            headers[name] = value
        return headers

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: Body) -> Response:
        connection = self._connection()
        try:
            return connection.exchange(method, target, headers, body, self._request_timeout)
        except BaseException as err:
            # Also a caller that leaves: the server ends what it does for it.
            connection.stream.abort()
            if err is not connection.stream.of_caller:
                self.explain(err)
            raise

    def _greet(self) -> None:
        """Look once whether the server and this package fit."""
        if self._greeted:
            return
        response = self._exchange("GET", self._target.address.prefix + "/health", self._headers(None, ""), None)
        body = self._json(response)
        if not isinstance(body, dict) or "status" not in body:
            raise self._foreign(response)
        self._greeted = True
        self.version = str(body.get("version") or "")
        if not _fits(self.version):
            warnings.warn(
                f"cove at {self.name} is version {self.version} and this package is {VERSION}: what one of them does not know fails; install the package of the server's version",
                VersionWarning,
                stacklevel=2,
            )

    def over(self, response: Response) -> None:
        """Let go of an answer that was read; its connection is used again."""
        connection = response.connection
        if response.done and response.keep and len(self._idle) < MOST_IDLE and not connection.buffer and not connection.stream.unsent:
            self._idle.append((connection, time.monotonic()))
        else:
            self.drop(response)

    def drop(self, response: Response) -> None:
        """Let go of an answer that nobody wants the rest of."""
        response.connection.stream.abort()

    def _json(self, response: Response) -> Any:
        try:
            data = response.read(MAX_ANSWER, self._request_timeout)
        except BaseException as err:
            self.drop(response)
            self.explain(err)
            raise
        self.over(response)
        try:
            return loaded(data)
        except ValueError:
            raise self._foreign(response) from None

    def get(self, method: str, path: str, *, json_body: Any = None, query: Optional[Mapping[str, Any]] = None, headers: Optional[Mapping[str, str]] = None) -> Json:
        """Make a request and return its JSON answer."""
        sent, headers = encoded(json_body, headers)
        response = self.send(method, path, query=query, headers=headers, body=sent, accept=JSON)
        body = self._json(response)
        if not isinstance(body, dict):
            raise self._foreign(response)
        return body

    def tell(self, method: str, path: str, *, json_body: Any = None, body: Body = None, query: Optional[Mapping[str, Any]] = None, headers: Optional[Mapping[str, str]] = None) -> None:
        """Make a request that has no answer."""
        if body is None:
            body, headers = encoded(json_body, headers)
        response = self.send(method, path, query=query, headers=headers, body=body)
        if response.status != 204:
            self.drop(response)
            raise self._foreign(response)
        self.over(response)

    def follow(
        self, method: str, path: str, last: "tuple[str, ...]", *, json_body: Any = None, body: Body = None, query: Optional[Mapping[str, Any]] = None, headers: Optional[Mapping[str, str]] = None
    ) -> "Events":
        """Make a request whose answer is events, up to and with one that is named in last."""
        if body is None:
            body, headers = encoded(json_body, headers)
        return Events(self, self.send(method, path, query=query, headers=headers, body=body, accept=EVENTS), last, self.silence)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop()[0].stream.abort()
        pause(0)  # an event loop closes them in its next round

    # Faults in words.

    def explain(self, err: BaseException) -> None:
        """Raise what a caller is told of an exception on the way, if that is another one."""
        told = self.fault(err)
        if told is not None:
            raise told from err

    def explain_stream(self, err: BaseException) -> None:
        """As explain, where the time that is over is that for a sign of life."""
        if isinstance(err, TimeoutError) and not isinstance(err, CoveError):
            raise self.silent() from err
        self.explain(err)

    def fault(self, err: BaseException) -> Optional[CoveError]:
        """What a caller is told of an exception on the way; None: that one."""
        if isinstance(err, TimeoutError) and not isinstance(err, CoveError):
            return OutOfTimeError(f"cove at {self.name} gave no answer in {self._request_timeout:g} s" if self._request_timeout else f"cove at {self.name} gave no answer in time")
        if isinstance(err, NotHTTP):
            return ServerConnectionError(f"{self.name} does not speak HTTP", reason="connection", remedy="check the URL: another server, or one with TLS, may answer there")
        if isinstance(err, OverflowError):
            return ServerConnectionError(f"{self.name} answered with more than Cove ever does", reason="connection", remedy="check the URL")
        if isinstance(err, (BrokenOff, OSError)) and not isinstance(err, CoveError):
            return ServerConnectionError(
                f"the connection to {self.name} broke off before the answer was whole", reason="connection", remedy="look whether it was done before you ask again"
            )
        return None

    def silent(self) -> CoveError:
        """The exception of a stream without a sign of life."""
        return ServerConnectionError(f"cove at {self.name} has given no sign of life for {self.silence:g} s", reason="connection", remedy=self._target.address.remedy)

    def _unreachable(self, err: OSError) -> CoveError:
        # asyncio has words of its own in the place of the system's.
        said = os.strerror(err.errno) if isinstance(err, ConnectionError) and err.errno else err.strerror or str(err)
        why = f": {said}" if said else ""
        return ServerConnectionError(f"cove at {self.name} cannot be reached{why}", reason="connection", remedy=self._target.address.remedy)

    def _foreign(self, response: Response) -> CoveError:
        return ServerConnectionError(
            f"{self.name} answered {response.status} with {response.media[:60]!r}, which is not what Cove answers",
            reason="connection",
            remedy="check the URL: another server, a proxy or another version may answer there",
        )

    def strange(self, what: str) -> CoveError:
        """The exception of an answer that lacks what Cove's have."""
        return ServerConnectionError(f"{self.name} answered with {what} that Cove does not give", reason="connection", remedy="check the URL and the version of the server")

    def _problem(self, response: Response) -> CoveError:
        if response.status == 431:
            return InvalidError("a name, a pattern or a header of the request is too long")
        if response.media != "application/problem+json":
            return self._foreign(response)
        try:
            data = response.read(MAX_PROBLEM, self._request_timeout)
        except (BrokenOff, OSError, OverflowError) as err:
            return self.fault(err) or self._foreign(response)
        try:
            body = loaded(data)
        except ValueError:
            return self._foreign(response)
        if not is_problem(body):
            return self._foreign(response)
        told = from_problem(body)
        if told.code in ("invalid", "not_found") and not _fits(self.version):
            told.remedy = (told.remedy + "; " if told.remedy else "") + f"the server is version {self.version} and this package {VERSION}"
        return told


class Events:
    """The events of an answer."""

    def __init__(self, transport: Transport, response: Response, last: "tuple[str, ...]", silence: float) -> None:
        self._transport = transport
        self._response = response
        self._last = last
        self._silence = silence
        self._parser = Parser()
        self._ready: List[Event] = []
        self.ended = False

    def next(self) -> Optional[Event]:
        """The next event, or None after the last one. An error of the server is raised."""
        if self.ended and not self._ready:
            return None
        try:
            while not self._ready:
                piece = self._response.piece(self._silence)
                if not piece:
                    raise BrokenOff()
                self._ready = self._parser.feed(piece)
            event = self._ready.pop(0)
            if event.name == "error":
                raise self._told(event)
        except BaseException as err:
            self.close()
            if err is self._response.connection.stream.of_caller:
                raise
            if isinstance(err, TooLarge):
                raise self._transport.strange("an event") from err
            self._transport.explain_stream(err)
            raise
        if event.name in self._last:
            self._ready = []
            self._end()
        return event

    def _end(self) -> None:
        """Read on to the end of the body, which is there, so that the connection stays."""
        self._response.connection.stream.stop_pouring()
        try:
            while not self._response.connection.stream.unsent and self._response.piece(1.0):
                pass
        except (BrokenOff, OSError):
            pass
        if not self.ended:
            self.ended = True
            self._transport.over(self._response)

    def _told(self, event: Event) -> CoveError:
        try:
            body = loaded(event.data)
        except ValueError:
            body = None
        return from_problem(body) if is_problem(body) else self._transport.strange("an error")

    def parsed(self, event: Event) -> Json:
        """The data of an event."""
        try:
            body = loaded(event.data)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise self._transport.strange(f"an event {event.name[:40]!r}")
        return body

    def close(self) -> None:
        """Leave. The server ends what it does for this caller alone."""
        if not self.ended:
            self.ended = True
            self._transport.drop(self._response)


def encoded(body: Any, headers: Optional[Mapping[str, str]]) -> "tuple[Optional[bytes], Mapping[str, str]]":
    """A request in JSON, with the header that says so."""
    if body is None:
        return None, headers or {}
    try:
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as err:
        raise InvalidError(f"the request cannot be put in JSON: {err}") from err
    return data, {**(headers or {}), "Content-Type": JSON}


def _fits(version: str) -> bool:
    """Whether a server of this version and this package know the same. Only
    releases can be told apart; before 1.0.0 a minor version may change things."""
    theirs, ours = _release(version), _release(VERSION)
    if theirs is None or ours is None:
        return True
    return theirs[0] == ours[0] and (ours[0] > 0 or theirs[1] == ours[1])


def _release(version: str) -> Optional[Tuple[int, int]]:
    parts = version[1:].split(".") if version.startswith("v") else version.split(".")
    if len(parts) < 3 or not parts[0].isdigit() or not parts[1].isdigit():
        return None
    return int(parts[0]), int(parts[1])

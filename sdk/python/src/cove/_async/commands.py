"""Programs in a sandbox."""

from __future__ import annotations

import codecs
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union

from .._errors import NotFoundError, ServerConnectionError, UnavailableError, invalid_field
from .._models import Chunk, Execution, OutputPage, ProcessInfo, chunk, execution, output_page, process_info
from .. import _wire
from .._wire import Json, called_back, command_of, encoded_text, text_or_base64, without_none
from .http import AsyncFollowing
from .stream import Source, pause, pieces
from .transport import AsyncEvents, at, encoded, once

if TYPE_CHECKING:
    from types import TracebackType

    from .sandbox import AsyncSandbox

SHELL = "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi"
INLINE = 1 << 20  # bytes of input that go along in a request
EXEC = "application/x-cove-exec"  # a request on one line, and the input after it
Command = Union[str, Sequence[str]]
OnText = Callable[[str], None]


class Texts:
    """Hands pieces of output on as text, also where a character is cut in two."""

    def __init__(self, on_stdout: Optional[OnText], on_stderr: Optional[OnText]) -> None:
        called_back("on_stdout", on_stdout)
        called_back("on_stderr", on_stderr)
        make = codecs.getincrementaldecoder("utf-8")
        self._to = {name: (to, make("replace")) for name, to in (("stdout", on_stdout), ("stderr", on_stderr)) if to}
        self.told = False

    def take(self, piece: Chunk) -> None:
        """Hand one piece on."""
        if piece.stream in self._to:
            to, decoder = self._to[piece.stream]
            text = decoder.decode(piece.data)
            if text:
                self.told = True
                to(text)

    def end(self) -> None:
        """Hand on what a cut left."""
        for to, decoder in self._to.values():
            text = decoder.decode(b"", True)
            if text:
                to(text)


class AsyncOutput:
    """The output of a background program as it comes: pieces, in the order written.

    When all of it has come, result is how the program ended. With resume, a
    stream that breaks off is opened again where it was, for so many seconds: the
    program and what it writes stay while a server restarts.
    """

    def __init__(self, opened: Callable[[int], "Awaitable[AsyncEvents]"], offset: int, resume: float) -> None:
        self._open = opened
        self._resume = resume
        self._events: Optional[AsyncEvents] = None
        self.offset = offset  # of what comes next
        self.result: Optional[Execution] = None

    def __aiter__(self) -> "AsyncOutput":
        return self

    async def __anext__(self) -> Chunk:
        while True:
            event = await self._next()
            if event is None:
                raise StopAsyncIteration
            assert self._events is not None
            if event.name in ("stdout", "stderr"):
                piece = chunk(event.name, self._events.parsed(event))
                self.offset = piece.next
                return piece
            if event.name == "exit":
                self.result = execution(self._events.parsed(event))

    async def _next(self) -> Any:
        give_up: Optional[float] = None
        wait = 0.05
        while True:
            try:
                if self._events is None:
                    self._events = await self._open(self.offset)
                return await self._events.next()
            except UnavailableError as err:
                if err.reason and not isinstance(err, ServerConnectionError):
                    raise  # what lacks is not the server: one that shuts down gives no reason
                self._events = None
                now = time.monotonic()
                give_up = give_up or now + self._resume
                if now >= give_up:
                    raise
            await pause(wait)
            wait = min(2 * wait, 2.0)

    async def aclose(self) -> None:
        """Stop looking. The program goes on."""
        if self._events is not None:
            await self._events.aclose()

    async def __aenter__(self) -> "AsyncOutput":
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        await self.aclose()


class AsyncProcess:
    """A background program. It goes on when nobody looks, and ends with the session
    that it was started in: another one that takes its place has programs of its own."""

    def __init__(self, sandbox: "AsyncSandbox", session_id: str, info: ProcessInfo) -> None:
        self._transport = sandbox.client.transport
        self._session_id = session_id
        self.info = info
        self.pid = info.pid

    def _at(self, rest: str = "") -> str:
        return at("/api/sandboxes/", self._session_id, "/processes/", str(self.pid), rest)

    def output(self, offset: int = 0, *, resume: float = 0.0) -> AsyncOutput:
        """Its output from an offset on, to its end."""

        async def opened(offset: int) -> AsyncEvents:
            return await self._transport.follow("GET", self._at(), ("exit", "end"), query={"offset": offset})

        return AsyncOutput(opened, offset, resume)

    async def wait(self, *, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None, resume: float = 0.0) -> Execution:
        """Wait for its end, and hand its output on meanwhile."""
        texts = Texts(on_stdout, on_stderr)
        if not self.pid and self.info.result is not None:  # policy did not let it begin
            return self.info.result
        if on_stdout is None and on_stderr is None and not resume:
            return execution(await self._transport.get("GET", self._at("/wait")))
        async with self.output(resume=resume) as output:
            async for piece in output:
                texts.take(piece)
        texts.end()
        return output.result or execution(await self._transport.get("GET", self._at("/wait")))

    async def send_stdin(self, data: Union[str, bytes], *, eof: bool = False) -> None:
        """Write to its input, and close that with eof. Long input goes in several requests."""
        if not isinstance(data, (str, bytes, bytearray, memoryview)):
            raise invalid_field("data", "must be text or bytes")
        whole = encoded_text("data", data) if isinstance(data, str) else bytes(data)
        # Nothing is sent as well: it closes the input, and says whether the program is there.
        for done in range(0, len(whole) or 1, INLINE):
            body = text_or_base64("data", whole[done : done + INLINE])
            if eof and done + INLINE >= len(whole):
                body["eof"] = True
            await self._transport.tell("POST", self._at("/input"), json_body=body)

    async def close_stdin(self) -> None:
        """Close its input."""
        await self.send_stdin(b"", eof=True)

    async def signal(self, name: Union[str, int]) -> None:
        """Send a signal, such as TERM or 15."""
        await self._transport.tell("POST", self._at("/signal"), json_body={"signal": str(name)})

    async def kill(self) -> None:
        """End it at once."""
        await self.signal("KILL")

    async def resize(self, cols: int, rows: int) -> None:
        """Give its terminal another size. One without a terminal raises UnsupportedError."""
        await self._transport.tell("POST", self._at("/resize"), json_body={"cols": cols, "rows": rows})


class AsyncTerminal(AsyncProcess):
    """A background program with a terminal."""


def asked(command: Command, workdir: Optional[str], env: Optional[Mapping[str, str]], timeout: Optional[float], **more: Any) -> Json:
    """The request for a program."""
    words, fits = command_of(command)
    if not fits:
        raise invalid_field("command", "must be a line for the shell or a list of words")
    return without_none({"command": words, "workdir": workdir, "env": _wire.texts("env", env), "timeout": timeout, **more})


def _with_input(request: Json, stdin: Source) -> AsyncFollowing:
    """A request on one line, with the input after it while the program runs."""
    head, _ = encoded(request, None)

    async def all_of_it() -> AsyncIterator[bytes]:
        yield (head or b"") + b"\n"
        async for piece in pieces(stdin):
            yield piece

    return AsyncFollowing(all_of_it())


class AsyncCommands:
    """Programs in one sandbox."""

    def __init__(self, sandbox: "AsyncSandbox") -> None:
        self._sandbox = sandbox

    def _at(self, rest: str, session_id: Optional[str] = None) -> str:
        return at("/api/sandboxes/", session_id or self._sandbox.sandbox_id, rest)

    async def run(
        self,
        command: Command,
        *,
        workdir: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        stdin: Optional[Source] = None,
        max_output: Union[int, str, None] = None,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        auto_retry: Optional[bool] = None,
    ) -> Execution:
        """Run a program to its end: a line for the shell, or a list of words.

        One that fails is a result. Who leaves ends it. Input is text, bytes, an open
        file or pieces; what is not in memory is never held whole. It is sent while
        output comes; without asyncio none is handed on while a source makes us wait.
        """
        request = asked(command, workdir, env, timeout, max_output=max_output)
        if isinstance(stdin, (str, bytes, bytearray, memoryview)) and len(stdin) <= INLINE:
            request.update(text_or_base64("stdin", stdin if isinstance(stdin, str) else bytes(stdin)))
            stdin = None
        elif stdin is not None and not any(hasattr(stdin, name) for name in ("read", "__aiter__", "__iter__")):
            raise invalid_field("stdin", "must be text, bytes, an open file or pieces of bytes")
        texts = Texts(on_stdout, on_stderr)
        streamed = on_stdout is not None or on_stderr is not None or stdin is not None

        async def attempt(session_id: str, headers: Dict[str, str]) -> Execution:
            path = self._at("/execute", session_id)
            if not streamed:
                return execution(await self._sandbox.client.transport.get("POST", path, json_body=request, headers=headers))
            return await self._streamed(path, request, headers, texts, stdin)

        # Input that was read from somewhere is not there a second time.
        return await self._sandbox.once(attempt, lambda: not texts.told and stdin is None, auto_retry)

    async def _streamed(self, path: str, request: Json, headers: Dict[str, str], texts: Texts, stdin: Optional[Source]) -> Execution:
        transport = self._sandbox.client.transport
        if stdin is None:
            events = await transport.follow("POST", path, ("exit",), json_body=request, headers=headers)
        else:
            events = await transport.follow("POST", path, ("exit",), body=_with_input(request, stdin), headers={**headers, "Content-Type": EXEC})
        try:
            while True:
                event = await events.next()
                if event is None:
                    raise transport.strange("no end")
                if event.name in ("stdout", "stderr"):
                    texts.take(chunk(event.name, events.parsed(event)))
                elif event.name == "exit":
                    texts.end()
                    return execution(events.parsed(event))
        finally:
            await events.aclose()

    async def start(
        self,
        command: Command,
        *,
        workdir: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        stdin: Union[str, bytes, None] = None,
        keep_stdin: bool = False,
        max_output: Union[int, str, None] = None,
        tag: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> AsyncProcess:
        """Start a program in the background. It goes on whoever leaves."""
        request = asked(command, workdir, env, timeout, max_output=max_output, tag=tag, keep_stdin=keep_stdin or None)
        if stdin is not None:
            request.update(text_or_base64("stdin", stdin))
        return await self._start(request, idempotency_key)

    async def _start(self, request: Json, idempotency_key: Optional[str]) -> AsyncProcess:
        session_id = self._sandbox.sandbox_id
        body = await self._sandbox.client.transport.get("POST", self._at("/processes", session_id), json_body=request, headers=once(idempotency_key))
        return AsyncProcess(self._sandbox, session_id, process_info(body))

    async def list(self) -> "List[ProcessInfo]":
        """Background programs, ended ones included."""
        return await self._listed(self._sandbox.sandbox_id)

    async def _listed(self, session_id: str) -> "List[ProcessInfo]":
        return [process_info(item) async for item in self._sandbox.client.pages(self._at("/processes", session_id))]

    async def connect(self, pid: int) -> AsyncProcess:
        """A background program by its number."""
        session_id = self._sandbox.sandbox_id
        for info in await self._listed(session_id):
            if info.pid == pid:
                return AsyncProcess(self._sandbox, session_id, info)
        raise NotFoundError(f"there is no process {pid} in this session", remedy="list has those that there are")

    async def output(
        self, output_id: str, *, stream: Optional[str] = None, offset: int = 0, limit: Optional[int] = None, grep: Optional[str] = None
    ) -> OutputPage:
        """A part of what a program wrote, such as the rest of what an answer cut."""
        query = without_none({"stream": stream, "offset": offset or None, "limit": limit, "grep": grep})
        path = at("/api/sandboxes/", self._sandbox.sandbox_id, "/output/", output_id)
        return output_page(await self._sandbox.client.transport.get("GET", path, query=query))


class AsyncTerminals:
    """Terminals in one sandbox."""

    def __init__(self, sandbox: "AsyncSandbox") -> None:
        self._sandbox = sandbox

    async def create(
        self,
        *,
        cols: int = 80,
        rows: int = 24,
        command: Command = SHELL,
        workdir: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> AsyncTerminal:
        """Start a program, a shell unless another is named, with a terminal."""
        request = asked(command, workdir, env, timeout, tty={"cols": cols, "rows": rows}, keep_stdin=True)
        session_id = self._sandbox.sandbox_id
        body = await self._sandbox.client.transport.get("POST", at("/api/sandboxes/", session_id, "/processes"), json_body=request, headers=once(idempotency_key))
        return AsyncTerminal(self._sandbox, session_id, process_info(body))

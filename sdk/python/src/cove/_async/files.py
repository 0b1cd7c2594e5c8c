"""Files of a sandbox. Relative paths start in the workspace."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, AsyncIterator, Callable, List, Optional, Type, Union

from .._errors import NotFoundError, ResourceLimitError, SessionNotFoundError, invalid_field
from .._models import FileChange, FileInfo, Link, file_change, file_info, pick
from .._wire import Json, called_back, encoded_text, path_of, text_or_base64, without_none
from .http import AsyncResponse, Body, number
from .stream import PIECE, Source, blocking, pieces
from .transport import BYTES, TAR, AsyncEvents, at

if TYPE_CHECKING:
    from types import TracebackType

    from .sandbox import AsyncSandbox

# Called with the bytes that have passed, and with all of them where that is known.
OnProgress = Callable[[int, Optional[int]], None]
MOST_HELD = 1 << 30  # bytes of a file that are held in memory; a sandbox can make one that is far longer
MOST_LISTED = 100_000  # files of a list
LocalPath = Union[str, "os.PathLike[str]"]
RemotePath = Union[str, "os.PathLike[str]"]


class AsyncDownload:
    """The bytes of a file as they come."""

    def __init__(self, sandbox: "AsyncSandbox", response: AsyncResponse) -> None:
        self._transport = sandbox.client.transport
        self._response = response
        self.size: Optional[int] = number(response.headers.get("content-length", ""))
        self._over = False

    def __aiter__(self) -> "AsyncDownload":
        return self

    async def __anext__(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        try:
            piece = await self._response.piece(self._transport.silence)
        except BaseException as err:
            await self.aclose()
            self._transport.explain_stream(err)
            raise
        if not piece:
            self._over = True
            self._transport.over(self._response)
            raise StopAsyncIteration
        return piece

    async def read(self) -> bytes:
        """All that is left."""
        held = bytearray()
        async for piece in self:
            held += piece
            if len(held) > MOST_HELD:
                await self.aclose()
                raise ResourceLimitError(f"the file has more than {MOST_HELD} bytes, which are not held in memory", remedy="take it piece by piece with open, or use download")
        return bytes(held)

    async def aclose(self) -> None:
        """Leave the rest."""
        if not self._over:
            self._over = True
            self._transport.drop(self._response)

    async def __aenter__(self) -> "AsyncDownload":
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        await self.aclose()


class AsyncWatch:
    """Changes below a directory, as they happen."""

    def __init__(self, events: AsyncEvents) -> None:
        self._events = events

    def __aiter__(self) -> "AsyncWatch":
        return self

    async def __anext__(self) -> FileChange:
        while True:
            event = await self._events.next()
            if event is None:
                raise StopAsyncIteration
            if event.name == "change":
                return file_change(self._events.parsed(event))

    async def aclose(self) -> None:
        """Stop looking."""
        await self._events.aclose()

    async def __aenter__(self) -> "AsyncWatch":
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        await self.aclose()


class AsyncFiles:
    """Files of one sandbox."""

    def __init__(self, sandbox: "AsyncSandbox") -> None:
        self._sandbox = sandbox
        self._transport = sandbox.client.transport

    def _at(self, rest: str) -> str:
        return at("/api/sandboxes/", self._sandbox.sandbox_id, rest)

    async def read(self, path: RemotePath) -> str:
        """A file as text in UTF-8."""
        return (await self.read_bytes(path)).decode()

    async def read_bytes(self, path: RemotePath, *, offset: int = 0, length: Optional[int] = None) -> bytes:
        """A file, or a part of it."""
        if length == 0:  # which the server refuses
            await self.stat(path)
            return b""
        async with await self.open(path, offset=offset, length=length) as download:
            return await download.read()

    async def open(self, path: RemotePath, *, offset: int = 0, length: Optional[int] = None) -> AsyncDownload:
        """A file piece by piece, so that it need not fit in memory."""
        if length == 0:
            raise invalid_field("length", "must be above 0; left out, it is up to the end")
        query = without_none({"path": path_of(path), "offset": offset or None, "length": length})
        return AsyncDownload(self._sandbox, await self._transport.send("GET", self._at("/files"), query=query, accept=BYTES))

    async def write(self, path: RemotePath, data: Source, *, mode: Union[int, str, None] = None, on_progress: Optional[OnProgress] = None) -> None:
        """Replace a file: it is there whole or not at all. Data is text, bytes, an
        open file or pieces; what is not in memory is never held whole."""
        headers = {"Content-Type": BYTES}
        if mode is not None:
            if not isinstance(mode, (int, str)):
                raise invalid_field("mode", f"must be a number or a text in octal, and is {type(mode).__name__}")
            headers["X-File-Mode"] = mode if isinstance(mode, str) else f"{mode:04o}"
        await self._transport.tell("PUT", self._at("/files"), body=counted(data, on_progress), query={"path": path_of(path)}, headers=headers)

    async def upload(self, local: LocalPath, path: Optional[RemotePath] = None, *, on_progress: Optional[OnProgress] = None) -> str:
        """Copy a file of this machine into the sandbox, and return its path there."""
        name = path_of(path or os.path.basename(os.fspath(local)))
        with await blocking(lambda: open(local, "rb")) as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            await self.write(name, file, mode=mode, on_progress=on_progress)
        return name

    async def download(self, path: RemotePath, local: LocalPath, *, on_progress: Optional[OnProgress] = None) -> None:
        """Copy a file out of the sandbox. The local file is there whole or not at all."""
        called_back("on_progress", on_progress)
        part = os.path.join(os.path.dirname(os.path.abspath(local)), f".cove-{os.urandom(8).hex()}")
        async with await self.open(path) as download:
            # With the permissions that this user's files have.
            to = await blocking(lambda: open(part, "xb"))
            try:
                with to:
                    await self._saved(download, to, on_progress)
                os.replace(part, local)
            except BaseException:
                os.unlink(part)
                raise

    async def _saved(self, download: AsyncDownload, to: IO[bytes], on_progress: Optional[OnProgress]) -> None:
        done = 0
        async for piece in download:
            to.write(piece)
            done += len(piece)
            if on_progress is not None:
                on_progress(done, download.size)

    async def list(self, path: RemotePath = "", *, depth: int = 1) -> List[FileInfo]:
        """What is below a directory."""
        found: List[FileInfo] = []
        events = await self._transport.follow("GET", self._at("/files/list"), ("end",), query={"path": path_of(path) or "/workspace", "depth": depth})
        try:
            while True:
                event = await events.next()
                if event is None:
                    return found
                if event.name == "file":
                    if len(found) >= MOST_LISTED:
                        raise ResourceLimitError(f"there are more than {MOST_LISTED} files, which are not held in memory", remedy="list a directory in it, or use a program")
                    found.append(file_info(events.parsed(event)))
        finally:
            await events.aclose()

    async def stat(self, path: RemotePath) -> FileInfo:
        """What is at a path."""
        return file_info(await self._transport.get("GET", self._at("/files/stat"), query={"path": path_of(path)}))

    async def exists(self, path: RemotePath) -> bool:
        """Whether something is at a path."""
        try:
            await self.stat(path)
        except SessionNotFoundError:
            raise
        except NotFoundError:
            return False
        return True

    async def make_dir(self, path: RemotePath) -> None:
        """Make a directory and those above it."""
        await self._transport.tell("POST", self._at("/files/mkdir"), json_body=text_or_base64("path", path_of(path)))

    async def move(self, old: RemotePath, new: RemotePath) -> None:
        """Give a file another name."""
        body: Json = {**text_or_base64("from", path_of(old)), **text_or_base64("to", path_of(new))}
        await self._transport.tell("POST", self._at("/files/move"), json_body=body)

    async def remove(self, path: RemotePath) -> None:
        """Delete a file or a whole directory."""
        await self._transport.tell("DELETE", self._at("/files"), query={"path": path_of(path)})

    async def watch(self, path: RemotePath = "") -> AsyncWatch:
        """Follow the changes below a directory."""
        return AsyncWatch(await self._transport.follow("GET", self._at("/files/watch"), (), query={"path": path_of(path) or "/workspace"}))

    async def archive(self, path: RemotePath = "") -> AsyncDownload:
        """A directory as a tar."""
        return AsyncDownload(self._sandbox, await self._transport.send("GET", self._at("/archive"), query={"path": path_of(path) or "/workspace"}, accept=TAR))

    async def unpack(self, tar: Source, path: RemotePath = "", *, on_progress: Optional[OnProgress] = None) -> None:
        """Extract a tar into a directory. Each file in it is whole or not there."""
        await self._transport.tell("PUT", self._at("/archive"), body=counted(tar, on_progress), query={"path": path_of(path) or "/workspace"}, headers={"Content-Type": TAR})

    async def url(self, path: RemotePath, *, method: str = "GET", ttl_seconds: Optional[float] = None) -> Link:
        """A link that reads (GET) or replaces (PUT) a file without a key, for a while."""
        body = without_none({**text_or_base64("path", path_of(path)), "method": method, "ttl_seconds": ttl_seconds})
        return pick(Link, await self._transport.get("POST", self._at("/files/url"), json_body=body))


def counted(data: Source, on_progress: Optional[OnProgress]) -> Body:
    """What is to be sent, with somebody told of what has gone."""
    called_back("on_progress", on_progress)
    if isinstance(data, str):
        data = encoded_text("data", data)
    if isinstance(data, (bytearray, memoryview)):
        data = bytes(data)
    if isinstance(data, bytes):
        if len(data) <= PIECE and on_progress is None:
            return data
        return _counting(data, len(data), on_progress)
    if not any(hasattr(data, name) for name in ("read", "__aiter__", "__iter__")):
        raise invalid_field("data", "must be text, bytes, an open file or pieces of bytes")
    total: Optional[int] = None
    if hasattr(data, "fileno"):
        try:
            total = os.fstat(data.fileno()).st_size
        except (OSError, ValueError):
            pass
    return _counting(data, total, on_progress)


async def _counting(source: Source, total: Optional[int], on_progress: Optional[OnProgress]) -> AsyncIterator[bytes]:
    done = 0
    async for piece in pieces(source):
        yield piece
        done += len(piece)
        if on_progress is not None:
            on_progress(done, total)

"""What the platform answers with, as values that do not change.

Each has raw, the answer as it came: a server that is newer than this package
says more than the fields here.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Tuple, Type, TypeVar, cast

from ._errors import CodeExecutionError, CommandExecutionError, CoveError, ServerConnectionError
from ._wire import Json, data_of, name_of, text_of

M = TypeVar("M", bound=Callable[..., Any])


def told_by_a_server(make: M) -> M:
    """What makes a value of an answer, so that one that Cove does not give is told as that."""

    def made(*args: Any, **more: Any) -> Any:
        try:
            return make(*args, **more)
        except (AttributeError, TypeError, ValueError):
            raise ServerConnectionError(
                "the server answered with something that Cove does not give", reason="connection", remedy="check the URL and the version of the server"
            ) from None

    made.__doc__ = make.__doc__
    return cast(M, made)


class Record:
    """A value with the fields that its class names. It is made from keywords.

    It is not a dataclass: making those takes longer than all other imports.
    """

    raw: Json
    _names: ClassVar[Tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._names += tuple(cls.__annotations__)

    def __init__(self, **given: Any) -> None:
        for name in self._names:
            if name not in given:
                default = getattr(type(self), name)  # AttributeError: it must be given
                given[name] = default.copy() if isinstance(default, (list, dict)) else default
        given.setdefault("raw", {})
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self._names)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, n) == getattr(other, n) for n in self._names)

    __hash__ = None  # type: ignore[assignment]


R = TypeVar("R", bound=Record)


@told_by_a_server
def pick(kind: Type[R], body: Mapping[str, Any], **more: Any) -> R:
    """A value of a kind from the fields of an answer that bear its names."""
    given = {name: body[name] for name in kind._names if body.get(name) is not None}
    given.update(more, raw=dict(body))
    return kind(**given)


def changed(value: R, **fields: Any) -> R:
    """A value with other fields; raw has them as well."""
    return type(value)(**{**value.__dict__, **fields, "raw": {**value.raw, **fields}})


class Execution(Record):
    """A program that has ended. One that failed is a result, too."""

    exit_code: int  # 128+n for a signal; -1 when its time was over
    status: str  # success, error, timeout or blocked
    outcome: str  # exited, signaled, timed_out, out_of_memory, output_limit, blocked or killed
    stdout: str = ""
    stderr: str = ""
    signal: str = ""
    truncated: bool = False  # something was cut; output_id has the rest
    output_id: str = ""
    execution_time_ms: float = 0.0
    cpu_time_ms: float = 0.0
    peak_memory_bytes: int = 0
    session_id: str = ""
    session_recreated: bool = False  # it ran in a new session: files may be gone
    session_restarted: bool = False  # the session was stopped and started again: files are kept, variables and programs that ran are gone
    provider: str = ""
    pid: int = 0
    refusal: Optional[Json] = None  # why it was blocked

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.status == "success"

    @property
    def stdout_data(self) -> bytes:
        """What it wrote, byte for byte."""
        return data_of(self.raw, "stdout")

    @property
    def stderr_data(self) -> bytes:
        """What it wrote, byte for byte."""
        return data_of(self.raw, "stderr")

    def raise_for_status(self) -> "Execution":
        """Make an exception of a program that failed; otherwise return the result."""
        if not self.ok:
            raise failure(CommandExecutionError, "the program", "command_failed", self, _last_line(self.stderr))
        return self


@told_by_a_server
def execution(body: Mapping[str, Any]) -> Execution:
    """The Execution in an answer."""
    return pick(Execution, body, stdout=text_of(body, "stdout"), stderr=text_of(body, "stderr"))


class CodeError(Record):
    """What code raised."""

    name: str
    value: str = ""
    traceback: str = ""
    line: int = 0


class Result(Dict[str, str]):
    """A value that code showed, in all its forms: text, html, png, json and so on."""

    @property
    def text(self) -> str:
        """The form for people."""
        return self.get("text", "")


class CodeResult(Execution):
    """Code that has run."""

    success: bool = False  # it ran to its end and raised nothing
    context_id: str = ""
    context_fresh: bool = False  # the interpreter remembers nothing of earlier calls
    results: List[Result] = []
    main_result: int = 0  # which of the values is that of the last expression, from 1
    error: Optional[CodeError] = None
    template: str = ""
    session_created: bool = False
    meta: Json = {}

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and raised nothing."""
        return self.success

    @property
    def text(self) -> str:
        """The value of the last expression as text, or nothing."""
        return self.results[self.main_result - 1].text if 0 < self.main_result <= len(self.results) else ""

    def raise_for_status(self) -> "CodeResult":
        """Make an exception of code that failed; otherwise return the result."""
        if not self.success:
            said = f"{self.error.name}: {self.error.value}" if self.error else _last_line(self.stderr)
            raise failure(CodeExecutionError, "the code", "code_failed", self, said)
        return self


@told_by_a_server
def code_result(body: Mapping[str, Any]) -> CodeResult:
    """The CodeResult in an answer."""
    error = body.get("error")
    return pick(
        CodeResult,
        body,
        stdout=text_of(body, "stdout"),
        stderr=text_of(body, "stderr"),
        results=[Result(r) for r in body.get("results") or []],
        error=pick(CodeError, error) if error else None,
    )


_FAILURES = {
    "timed_out": ("timeout", "{} ran out of time after {:g}s"),
    "out_of_memory": ("exhausted", "{} needed more memory than it may have"),
    "output_limit": ("exhausted", "{} wrote more than it may"),
    "blocked": ("denied", "{} was not run: policy does not allow it"),
    "killed": ("canceled", "{} was killed"),
}


def failure(kind: Type[CoveError], what: str, reason: str, x: Execution, said: str) -> CoveError:
    """How what ran came to its end, as an exception."""
    code, words = _FAILURES.get(x.outcome, ("invalid", "{} ended as " + x.outcome))
    message = words.format(what, x.execution_time_ms / 1000)
    if x.outcome == "exited":
        message = f"{what} failed with exit code {x.exit_code}"
    elif x.outcome == "signaled":
        message = f"{what} ended by the signal {x.signal}"
    elif x.outcome == "blocked" and x.refusal:
        message = f"{what} was not run: {x.refusal.get('reason', '')}"
    if said and code != "denied":
        message += ": " + said[:200]
    return kind(message, code=code, reason=reason, details={"exit_code": x.exit_code, "outcome": x.outcome, "result": x})


def _last_line(text: str) -> str:
    lines = text[-3200:].strip().splitlines()
    return "".join(c for c in lines[-1] if c.isprintable()) if lines else ""


class Session(Record):
    """The record of a session."""

    session_id: str
    status: str  # creating, running, paused, stopped, error or ended
    provider: str = ""
    created: bool = False  # this very request made it
    busy: bool = False
    template: str = ""
    flavor: str = ""
    project_name: str = ""
    user_id: str = ""
    thread_id: str = ""
    workspace_path: str = ""
    created_at: str = ""
    last_activity: str = ""
    expires_at: str = ""
    cause: str = ""  # why it is stopped, paused, in error or has ended
    instead_of: str = ""
    isolation: Json = {}
    resource_limits: Json = {}
    spec: Json = {}


class FileInfo(Record):
    """What is at a path."""

    path: str
    type: str  # file, dir, symlink, pipe, socket, device, char_device or other
    size: int = 0
    mode: str = ""  # permissions in octal
    modified: str = ""
    link: str = ""
    meta: Dict[str, str] = {}

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.type == "dir"


@told_by_a_server
def file_info(body: Mapping[str, Any]) -> FileInfo:
    """The FileInfo in an answer."""
    return pick(FileInfo, body, path=name_of(body, "path"), link=name_of(body, "link"))


class FileChange(Record):
    """A change below a directory that is watched."""

    kind: str
    path: str


@told_by_a_server
def file_change(body: Mapping[str, Any]) -> FileChange:
    """The FileChange in an answer."""
    return pick(FileChange, body, path=name_of(body, "path"))


class Chunk(NamedTuple):
    """A piece of output, in the order written."""

    stream: str  # stdout or stderr
    offset: int  # bytes of both streams before it
    data: bytes

    @property
    def text(self) -> str:
        """The data as text; half a character at an edge has a mark in its place."""
        return self.data.decode("utf-8", "replace")

    @property
    def next(self) -> int:
        """The offset after it, where another stream goes on."""
        return self.offset + len(self.data)


@told_by_a_server
def chunk(stream: str, body: Mapping[str, Any]) -> Chunk:
    """The Chunk in an event."""
    return Chunk(stream, int(body.get("offset") or 0), data_of(body, "data"))


class ProcessInfo(Record):
    """A background program."""

    command: str
    running: bool
    pid: int = 0  # 0 for one that policy did not let begin
    argv: List[str] = []
    workdir: str = ""
    tag: str = ""
    tty: bool = False
    started_at: str = ""
    output_id: str = ""
    result: Optional[Execution] = None  # when it has ended


@told_by_a_server
def process_info(body: Mapping[str, Any]) -> ProcessInfo:
    """The ProcessInfo in an answer."""
    ended = body.get("result")
    return pick(ProcessInfo, body, result=execution(ended) if ended else None)


class OutputPage(Record):
    """A part of what a program wrote."""

    data: bytes
    offset: int
    next: int  # where to go on; -1 at the end
    total: int
    dropped: int = 0


@told_by_a_server
def output_page(body: Mapping[str, Any]) -> OutputPage:
    """The OutputPage in an answer."""
    return pick(OutputPage, body, data=data_of(body, "data"))


class Context(Record):
    """An interpreter that remembers."""

    id: str
    language: str
    cwd: str = ""
    busy: bool = False
    created_at: str = ""


class Snapshot(Record):
    """The files of a session as they were."""

    snapshot_id: str
    session_id: str = ""
    name: str = ""
    provider: str = ""
    template: str = ""
    size_bytes: int = 0
    node_id: str = ""  # which one has the files, where there are several
    created_at: str = ""


class Link(Record):
    """A URL that is good for a while, for whoever holds it."""

    url: str
    expires_at: str = ""


class Usage(Record):
    """What a session consumes."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    peak_memory_bytes: int = 0
    pids: int = 0
    disk_bytes: int = 0
    files: int = 0


class ProviderShare(Record):
    """What the sessions of one provider were promised, and use as far as they were measured lately."""

    active_sessions: int = 0  # those with a sandbox
    sessions_by_status: Dict[str, int] = {}
    total_memory_mb: float = 0.0  # promised
    total_cpus: float = 0.0  # promised
    used_memory_mb: float = 0.0
    used_cpus: float = 0.0  # CPU time in a second
    measured_sessions: int = 0  # how many were measured; it is done while somebody asks
    measured_at: str = ""


class Stats(Record):
    """The platform in numbers."""

    active_sessions: int = 0
    max_sessions: int = 0
    sessions_by_flavor: Dict[str, int] = {}
    total_memory_mb: float = 0.0
    max_memory_mb: float = 0.0
    total_cpus: float = 0.0
    uptime_seconds: float = 0.0
    pool_size: int = 0
    pool_available: int = 0
    session_reuse_rate: float = 0.0
    provider: str = ""
    by_provider: Dict[str, ProviderShare] = {}


@told_by_a_server
def stats_of(body: Mapping[str, Any]) -> Stats:
    """The numbers in an answer."""
    return pick(Stats, body, by_provider={name: pick(ProviderShare, share) for name, share in (body.get("by_provider") or {}).items()})


class NodeProvider(Record):
    """A provider of a node."""

    name: str
    boundary: str = ""
    default: bool = False


class Node(Record):
    """One server of a cluster."""

    node_id: str
    state: str = ""  # ready, cordoned, away or gone; only one that is ready is given new sessions
    region: str = ""
    address: str = ""  # where other nodes reach it
    version: str = ""
    providers: List[NodeProvider] = []  # those that are ready
    templates: List[str] = []
    max_sessions: int = 0  # with a sandbox at once; 0 is no bound
    max_memory_mb: float = 0.0
    active_sessions: int = 0  # those with a sandbox
    total_memory_mb: float = 0.0  # promised to those
    pool_available: int = 0
    sessions: int = 0  # that it answers for, stopped ones too
    started_at: str = ""
    seen_at: str = ""


@told_by_a_server
def node_of(body: Mapping[str, Any]) -> Node:
    """The node in an answer."""
    return pick(Node, body, providers=[pick(NodeProvider, p) for p in body.get("providers") or []])


class Health(Record):
    """How a server is."""

    status: str
    message: str = ""
    version: str = ""
    node_id: str = ""  # of a node of a cluster

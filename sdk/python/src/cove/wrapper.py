"""Code and commands in sandboxes of several sizes, for MCP servers and agents.

    async with MicrosandboxWrapper() as wrapper:
        result = await wrapper.execute_code("print('hello')")

It has the shape of a wrapper that others wrote around microsandbox, and works on
every provider.
"""

from __future__ import annotations

import enum
import json
import os
import textwrap
from typing import TYPE_CHECKING, Awaitable, Callable, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from ._async.client import AsyncClient
from ._async.sandbox import AsyncSandbox, volume_of
from ._errors import CoveError, NotFoundError, ResourceLimitError, configuration
from ._models import CodeResult, Execution, Record, Session, Stats, changed
from ._wire import Json, without_none

if TYPE_CHECKING:
    from types import TracebackType

X = TypeVar("X", CodeResult, Execution)


class SandboxFlavor(enum.Enum):
    """Sizes of sandboxes."""

    SMALL = "small"  # 1 CPU, 1 GB
    MEDIUM = "medium"  # 2 CPUs, 2 GB
    LARGE = "large"  # 4 CPUs, 4 GB


# What runs in a template when nothing else is said.
LANGUAGES = {"python": "python", "data": "python", "node": "node", "nodejs": "node", "javascript": "node", "typescript": "typescript", "bash": "bash"}
TEMPLATES = {"nodejs": "node", "javascript": "node", "typescript": "node", "bash": "base"}


class WrapperConfig:
    """How a wrapper works. Values that do not fit are refused when it is made."""

    def __init__(
        self,
        server_url: Optional[str] = None,
        api_key: Optional[str] = None,
        max_concurrent_sessions: int = 0,
        session_timeout: float = 1800,
        default_flavor: Union[SandboxFlavor, str] = SandboxFlavor.SMALL,
        shared_volume_mappings: Sequence[str] = (),
        default_execution_timeout: Optional[float] = None,
        raise_on_failure: bool = False,
    ) -> None:
        if not (_finite(session_timeout) and session_timeout > 0):
            raise configuration("session_timeout", "must be above 0 seconds")
        if default_execution_timeout is not None and not (_finite(default_execution_timeout) and default_execution_timeout > 0):
            raise configuration("default_execution_timeout", "must be above 0 seconds", "leave it out for that of the server")
        if not isinstance(max_concurrent_sessions, int) or max_concurrent_sessions < 0:
            raise configuration("max_concurrent_sessions", "must be a whole number from 0 on", "0 leaves the bound to the server")
        if isinstance(shared_volume_mappings, str):
            raise configuration("shared_volume_mappings", "is one text and no list of mappings", 'write ["/host/path:/path/inside"]')
        self.server_url = server_url  # None: as COVE_URL says, or this machine
        self.api_key = api_key
        self.max_concurrent_sessions = max_concurrent_sessions  # of this wrapper; 0: the server's
        self.session_timeout = session_timeout
        self.default_flavor = flavor_of(default_flavor)
        self.shared_volume_mappings = list(shared_volume_mappings)
        self.default_execution_timeout = default_execution_timeout
        self.raise_on_failure = raise_on_failure  # make an exception of code and commands that fail

    @classmethod
    def from_env(cls, env: Optional[Mapping[str, str]] = None) -> "WrapperConfig":
        """What the variables MSB_… say."""
        given = os.environ if env is None else env
        return cls(
            server_url=given.get("MSB_SERVER_URL") or None,
            api_key=given.get("MSB_API_KEY") or None,
            max_concurrent_sessions=int(_number(given, "MSB_MAX_SESSIONS", 0)),
            session_timeout=_number(given, "MSB_SESSION_TIMEOUT", 1800),
            default_flavor=given.get("MSB_DEFAULT_FLAVOR") or SandboxFlavor.SMALL,
            shared_volume_mappings=_mappings(given.get("MSB_SHARED_VOLUME_PATH", "")),
            default_execution_timeout=_number(given, "MSB_EXECUTION_TIMEOUT", 0) or None,
        )


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = float("nan")
    if not _finite(value):
        raise configuration(name, f"{text!r} is no number")
    return value


def _finite(value: object) -> bool:
    """Whether something is a number that can be counted to."""
    return isinstance(value, (int, float)) and abs(value) < float("inf")


def _mappings(text: str) -> List[str]:
    if not text.strip():
        return []
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise configuration("MSB_SHARED_VOLUME_PATH", "is no list of mappings", 'write ["/host/path:/path/inside"]')
    return [one.strip() for one in found]


def flavor_of(flavor: Union[SandboxFlavor, str]) -> SandboxFlavor:
    """A size by its name. It raises ConfigurationError."""
    try:
        return SandboxFlavor(flavor)
    except ValueError:
        raise configuration("flavor", f"{flavor!r} is no size", "use small, medium or large") from None


class SessionInfo(Record):
    """A session, in the wrapper's words."""

    session_id: str
    template: str
    flavor: SandboxFlavor
    status: str
    created_at: str = ""
    last_accessed: str = ""


def _info(session: Session) -> SessionInfo:
    known = session.flavor in {f.value for f in SandboxFlavor}
    return SessionInfo(
        session_id=session.session_id,
        template=session.template,
        flavor=SandboxFlavor(session.flavor) if known else SandboxFlavor.SMALL,
        status=session.status,
        created_at=session.created_at,
        last_accessed=session.last_activity,
        raw=session.raw,
    )


class MicrosandboxWrapper:
    """Runs code and commands; makes sessions, and ends those that it made when it is left."""

    def __init__(
        self, config: Optional[WrapperConfig] = None, *, server_url: Optional[str] = None, api_key: Optional[str] = None, client: Optional[AsyncClient] = None
    ) -> None:
        self.config = config or WrapperConfig.from_env()
        self._owns = client is None
        self.client = client or AsyncClient(server_url or self.config.server_url, api_key or self.config.api_key)
        self._made: "dict[str, AsyncSandbox]" = {}
        self._opening = 0  # sessions that have been asked for, and count

    async def __aenter__(self) -> "MicrosandboxWrapper":
        await self.start()
        return self

    async def __aexit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        await self.stop()

    async def start(self) -> None:
        """Find out now whether the server can be reached."""
        await self.client.health()

    async def stop(self) -> None:
        """End the sessions that this wrapper made, and let go of the connections. One
        that cannot be ended keeps no other from that; why is raised at the end."""
        failed: Optional[CoveError] = None
        tried: "set[str]" = set()
        try:
            while True:
                left = [one for one in self._made if one not in tried]
                if not left:
                    break
                tried.add(left[0])
                try:
                    await self.stop_session(left[0])
                except CoveError as err:
                    failed = failed or err
        finally:
            if self._owns:
                await self.client.aclose()
        if failed is not None:
            raise failed

    async def _sandbox(self, template: Optional[str], flavor: Union[SandboxFlavor, str, None], session_id: Optional[str]) -> "tuple[AsyncSandbox, bool]":
        if session_id is not None:
            found = self._made.get(session_id)
            return found if found is not None else await AsyncSandbox.connect(session_id, client=self.client), False
        size = self.config.default_flavor if flavor is None else flavor_of(flavor)
        most = self.config.max_concurrent_sessions
        if most and len(self._made) + self._opening >= most:
            raise ResourceLimitError(
                f"this wrapper has {most} sessions, as many as it may", reason="capacity", remedy="name session_id to use one of them, stop one, or raise max_concurrent_sessions"
            )
        self._opening += 1  # before anybody else gets a turn
        try:
            sandbox = await AsyncSandbox.create(
                TEMPLATES.get(template or "", template),
                client=self.client,
                flavor=size.value,
                timeout_minutes=self.config.session_timeout / 60,
                volumes=await self._volumes(),
            )
            self._made[sandbox.sandbox_id] = sandbox
        finally:
            self._opening -= 1
        return sandbox, True

    async def _run(
        self, template: str, flavor: Union[SandboxFlavor, str, None], session_id: Optional[str], call: "Callable[[AsyncSandbox], Awaitable[X]]"
    ) -> "tuple[X, bool]":
        """What a call gives in a session, and whether that was made for it. One that
        was made for a call without a result goes with it: nobody hears of it."""
        sandbox, created = await self._sandbox(template, flavor, session_id)
        was = sandbox.sandbox_id
        try:
            result = await call(sandbox)
        except BaseException:
            self._keep(sandbox, was)
            if created:
                await self._end(sandbox)
            raise
        self._keep(sandbox, was)
        return result, created

    def _keep(self, sandbox: AsyncSandbox, was: str) -> None:
        """Know a session by its new id, if it was opened again."""
        if sandbox.sandbox_id != was and self._made.get(was) is sandbox:
            del self._made[was]
            self._made[sandbox.sandbox_id] = sandbox

    async def _end(self, sandbox: AsyncSandbox) -> None:
        try:
            await self.stop_session(sandbox.sandbox_id)
        except CoveError:
            pass  # the first exception is the one to tell; stop tries once more

    async def _volumes(self) -> List[Json]:
        """The mappings that must be asked for: those that the server gives to all are there already."""
        if not self.config.shared_volume_mappings:
            return []
        given = {(v.get("source"), v.get("target")) for v in await self.client.volumes()}
        asked = [_writable(v) for v in self.config.shared_volume_mappings]
        return [v for v in asked if (v["source"], v["target"]) not in given]

    async def execute_code(
        self,
        code: str,
        template: str = "python",
        session_id: Optional[str] = None,
        flavor: Union[SandboxFlavor, str, None] = None,
        timeout: Optional[float] = None,
        language: Optional[str] = None,
    ) -> CodeResult:
        """Run code in a session, or in a new one: the result has its session_id.
        Python may be indented as a whole, as where it stands in a program."""
        spoken, limit = language or LANGUAGES.get(template, template), timeout or self.config.default_execution_timeout
        text = textwrap.dedent(code) if spoken == "python" else code
        result, created = await self._run(template, flavor, session_id, lambda sandbox: sandbox.code.run(text, language=spoken, timeout=limit))
        result = changed(result, session_created=True) if created else result
        return result.raise_for_status() if self.config.raise_on_failure else result

    async def execute_command(
        self,
        command: str,
        args: Optional[Sequence[str]] = None,
        template: str = "python",
        session_id: Optional[str] = None,
        flavor: Union[SandboxFlavor, str, None] = None,
        timeout: Optional[float] = None,
    ) -> Execution:
        """Run a line for the shell, or with args a program and its words."""
        words, limit = command if args is None else [command, *args], timeout or self.config.default_execution_timeout
        result, _ = await self._run(template, flavor, session_id, lambda sandbox: sandbox.commands.run(words, timeout=limit))
        return result.raise_for_status() if self.config.raise_on_failure else result

    async def get_sessions(self, session_id: Optional[str] = None) -> List[SessionInfo]:
        """The sessions of this caller, or the one that is named."""
        if session_id is not None:
            return [_info(await self.client.session(session_id))]
        return [_info(s) for s in await self.client.sessions()]

    async def stop_session(self, session_id: str) -> bool:
        """End a session. The answer is False for one that was gone already."""
        try:
            await self.client.end(session_id)
            there = True
        except NotFoundError:
            there = False
        self._made.pop(session_id, None)
        return there

    async def get_resource_stats(self) -> Stats:
        """The platform in numbers."""
        return await self.client.stats()

    async def get_volume_mappings(self) -> List[Json]:
        """The paths of the host that sessions can have."""
        return await self.client.volumes()

    async def pause_background_tasks(self) -> Json:
        """Hold expiry, cleaning and the rest."""
        return await self.client.maintenance("pause")

    async def resume_background_tasks(self) -> Json:
        """Let them go on."""
        return await self.client.maintenance("resume")

    async def restart_background_tasks(self) -> Json:
        """Start them over."""
        return await self.client.maintenance("restart")

    async def get_background_task_status(self) -> Json:
        """How they are: overall_status, and tasks by their names."""
        return await self.client.maintenance()

    async def cleanup_orphan_sandboxes(self) -> int:
        """Remove sandboxes that belong to no session. The answer is how many went."""
        return int((await self.client.maintenance("cleanup")).get("orphans_removed") or 0)


def _writable(mapping: str) -> Json:
    """A mapping of this wrapper can be written to where the server's own list lets it."""
    volume = volume_of(mapping)
    if mapping.count(":") == 1:
        volume["write"] = True
    return without_none(volume)

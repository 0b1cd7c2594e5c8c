# Made from _async/sandbox.py by mirror.py: change that, not this.
"""A sandbox, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from .._errors import CoveError, NotFoundError, invalid_field
from .._models import Execution, Session, Snapshot, Usage, changed, pick
from .._wire import Json, elements, pairs, texts, without_none
from .client import Client
from .code import Code
from .commands import Commands, Terminals
from .files import Files
from .ports import Ports
from .stream import Lock
from .transport import at, once

if TYPE_CHECKING:
    from types import TracebackType

X = TypeVar("X", bound=Execution)

# For which reasons a session is opened again, and what became of it: nothing ran then.
GONE = {"session_expired": "the session has expired", "node_lost": "the session was lost with what held it"}


class Sandbox:
    """A session and what is in it: commands, files, code, terminals, ports, snapshots.

    Make one with create, or find one with connect. As a context manager it ends
    the session. One that expired or was lost is opened again by what runs in it next,
    once, and the answer says so in session_recreated: its files are gone then.
    """

    def __init__(self, client: Client, session: Session, request: Optional[Json] = None, owns_client: bool = False) -> None:
        self.client = client
        self.session = session  # as it was when it was last asked for
        self._request = request
        self._owns_client = owns_client
        self._untold = False
        self._reopening = Lock()
        self.commands = Commands(self)
        self.files = Files(self)
        self.code = Code(self)
        self.terminals = Terminals(self)
        self.ports = Ports(self)
        self.snapshots = Snapshots(self)

    @classmethod
    def create(
        cls,
        template: Optional[str] = None,
        *,
        client: Optional[Client] = None,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        mode: Optional[str] = None,
        provider: Optional[str] = None,
        flavor: Optional[str] = None,
        project_name: Optional[str] = None,
        user_id: Optional[str] = None,
        thread_id: Optional[str] = None,
        memory_limit: Union[str, int, None] = None,
        cpu_limit: Union[str, float, None] = None,
        timeout_minutes: Optional[float] = None,
        lifetime_minutes: Optional[float] = None,
        on_end: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        volumes: Sequence[Union[str, Mapping[str, Any]]] = (),
        network: Union[str, Mapping[str, Any], None] = None,
        policy: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        ports: Sequence[int] = (),
        snapshot: Union[str, Snapshot, None] = None,
        on_full: Optional[str] = None,
        on_queue: Optional[Callable[[int], None]] = None,
        idempotency_key: Optional[str] = None,
        **more: Any,
    ) -> "Sandbox":
        """Open a session: the live one of this user and thread, or a new one.

        When its time is over it is stopped and keeps its files, and it is started again
        when it is used; with on_end close it ends, with pause it keeps its memory, too.
        Fields of a request that have no argument here, such as workspace or require,
        go along by their names.
        """
        request = without_none(
            {
                "template": template,
                "provider": provider,
                "flavor": flavor,
                "project_name": project_name,
                "user_id": user_id,
                "thread_id": thread_id,
                "memory_limit": memory_limit,
                "cpu_limit": cpu_limit,
                "timeout_minutes": timeout_minutes,
                "lifetime_minutes": lifetime_minutes,
                "on_end": on_end,
                "env": texts("env", env),
                "volumes": [volume_of(v) for v in elements("volumes", volumes) or []] or None,
                "network": {"mode": network} if isinstance(network, str) else network,
                "policy": policy,
                "metadata": texts("metadata", metadata),
                "ports": elements("ports", ports),
                "snapshot": snapshot.snapshot_id if isinstance(snapshot, Snapshot) else snapshot,
                "on_full": on_full,
                **more,
            }
        )
        used = client or Client(url, api_key, mode=mode)
        try:
            session = used.open(request, idempotency_key=idempotency_key, on_queue=on_queue)
        except BaseException:
            if client is None:
                used.close()
            raise
        return cls(used, session, request, client is None)

    @classmethod
    def connect(
        cls, session_id: str, *, client: Optional[Client] = None, url: Optional[str] = None, api_key: Optional[str] = None, mode: Optional[str] = None
    ) -> "Sandbox":
        """Find a session by its id. One that was not made here is not opened again when it expires or is lost."""
        used = client or Client(url, api_key, mode=mode)
        try:
            return cls(used, used.session(session_id), None, client is None)
        except BaseException:
            if client is None:
                used.close()
            raise

    @property
    def sandbox_id(self) -> str:
        """The id of the session; another one after the session was opened again."""
        return self.session.session_id

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        try:
            self.kill()
        except NotFoundError:
            pass  # it has ended already
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the connections; the session stays."""
        if self._owns_client:
            self.client.close()

    def kill(self, *, keep_workspace: bool = False) -> str:
        """End the session. With keep_workspace the answer is the snapshot with its files."""
        self._request = None  # what was ended is not opened again
        return self.client.end(self.sandbox_id, keep_workspace=keep_workspace)

    def _did(self, verb: str, body: Optional[Json] = None) -> Session:
        self.session = self.client.act(self.sandbox_id, verb, body)
        return self.session

    def info(self) -> Session:
        """The record of the session as it is now."""
        self.session = self.client.session(self.sandbox_id)
        return self.session

    def renew(self, timeout_minutes: Optional[float] = None) -> Session:
        """Move the end of the session."""
        return self._did("renew", without_none({"timeout_minutes": timeout_minutes}))

    def stop(self) -> Session:
        """Give the sandbox back and keep its files."""
        return self._did("stop")

    def start(self) -> Session:
        """Bring a stopped session back. One that the server stopped comes back by itself when it is used."""
        return self._did("start")

    def pause(self) -> Session:
        """Freeze all that runs."""
        return self._did("pause")

    def resume(self) -> Session:
        """Let a paused session go on."""
        return self._did("resume")

    def stats(self) -> Usage:
        """What the session consumes."""
        return pick(Usage, self.client.transport.get("GET", at("/api/sandboxes/", self.sandbox_id, "/stats")))

    def set_network(self, network: Union[str, Mapping[str, Any]]) -> Session:
        """Replace what the session may reach; one that takes its place reaches the same."""
        body = {"mode": network} if isinstance(network, str) else pairs("network", network) or {}
        answer = self.client.transport.get("PUT", at("/api/sandboxes/", self.sandbox_id, "/network"), json_body=body)
        if self._request is not None:
            self._request = {**self._request, "network": body}
        self.session = pick(Session, answer)
        return self.session

    def fork(
        self,
        *,
        user_id: Optional[str] = None,
        thread_id: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> "Sandbox":
        """Open a second session with the same files."""
        body = without_none({"user_id": user_id, "thread_id": thread_id, "metadata": texts("metadata", metadata)})
        return type(self)(self.client, self.client.act(self.sandbox_id, "fork", body, once(idempotency_key)))

    def once(self, run: "Callable[[str, Dict[str, str]], X]", repeatable: Callable[[], bool], auto_retry: Optional[bool]) -> X:
        """Run something in the session, and once more in another that is opened in
        its place where that one has expired or was lost, which says that nothing ran."""
        was = self.sandbox_id
        retry = self.client.auto_retry if auto_retry is None else auto_retry
        try:
            result = run(was, {})
        except CoveError as err:
            if err.code != "not_found" or err.reason not in GONE or not retry or self._request is None or not repeatable():
                raise
            self._reopen(was, err.reason)
            result = run(self.sandbox_id, {"Cove-Retry": err.reason})
            self._untold = True
        if self._untold:
            self._untold = False
            result = changed(result, session_recreated=True)
        return result

    def _reopen(self, was: str, reason: str) -> None:
        """Open the session again; of many who want that at once, one does."""
        with self._reopening:
            if self.sandbox_id != was or self._request is None:
                return
            try:
                self.session = self.client.open(self._request, retried=reason)
            except CoveError as err:
                err.message = GONE[reason] + ", and a new one cannot be opened in its place: " + err.message
                raise
            self._untold = True


class Snapshots:
    """Snapshots of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def create(self, name: Optional[str] = None, *, idempotency_key: Optional[str] = None) -> Snapshot:
        """Save the files."""
        path = at("/api/sandboxes/", self._sandbox.sandbox_id, "/snapshot")
        return pick(Snapshot, self._sandbox.client.transport.get("POST", path, json_body=without_none({"name": name}), headers=once(idempotency_key)))

    def list(self) -> List[Snapshot]:
        """The snapshots of this sandbox."""
        return self._sandbox.client.snapshots(session_id=self._sandbox.sandbox_id)

    def delete(self, snapshot: Union[str, Snapshot]) -> None:
        """Forget a snapshot."""
        self._sandbox.client.delete_snapshot(snapshot.snapshot_id if isinstance(snapshot, Snapshot) else snapshot)


def checked(sandbox: Any) -> Sandbox:
    """A sandbox that somebody is to work in, if it is one that is used in this way: the
    other kind would run what it is told, and give no answer."""
    if not isinstance(sandbox, Sandbox):
        raise invalid_field("sandbox", f"must be of the class {Sandbox.__name__}, and is of {type(sandbox).__name__}")
    return sandbox


def volume_of(volume: Union[str, Mapping[str, Any]]) -> Json:
    """A volume as it travels, from a mapping or from source:target[:rw]."""
    if not isinstance(volume, str):
        return pairs("volumes", volume) or {}
    parts = volume.split(":")
    if len(parts) not in (2, 3) or not parts[0] or not parts[1] or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise invalid_field("volumes", f"{volume!r} is not source:target, source:target:ro or source:target:rw")
    return {"source": parts[0], "target": parts[1], "write": True} if parts[2:] == ["rw"] else {"source": parts[0], "target": parts[1]}

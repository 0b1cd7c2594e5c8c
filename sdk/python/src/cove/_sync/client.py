# Made from _async/client.py by mirror.py: change that, not this.
"""A server as one caller sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Callable, Dict, List, Mapping, Optional, Type, TypeVar

from .._errors import InvalidError, configuration, invalid_field
from .._models import Health, Node, Session, Snapshot, Stats, node_of, pick, stats_of
from .._settings import choose
from .._wire import Json, called_back, text_field, without_none
from .transport import Transport, at, once

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

T = TypeVar("T")
PAGE = 500
MOST_SECONDS = 24 * 3600.0


class Client:
    """A platform, bound to the caller whose key it shows.

    Without arguments it is the server that COVE_URL names, or else the one of
    COVE_HOME on this machine, which is started when it is first asked. It keeps
    connections and is safe for concurrent use: make one and share it. What a caller
    abandons, by an exception or a cancellation, the server ends as well.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        mode: Optional[str] = None,
        auto_retry: bool = True,
        home: Optional[str] = None,
        cove_bin: Optional[str] = None,
        connect_timeout: float = 30.0,
        request_timeout: Optional[float] = None,
        silence: float = 60.0,
        ssl_context: "Optional[ssl.SSLContext]" = None,
    ) -> None:
        for name, seconds in (("connect_timeout", connect_timeout), ("request_timeout", request_timeout), ("silence", silence)):
            # Also what is no number is not above 0.
            if not (seconds is None and name == "request_timeout") and not (isinstance(seconds, (int, float)) and 0 < seconds <= MOST_SECONDS):
                raise configuration(name, f"{seconds!r} is no time", "use seconds above 0, up to a day")
        self.auto_retry = auto_retry
        self.transport = Transport(choose(mode, url, api_key, home, cove_bin), connect_timeout, silence, request_timeout, ssl_context)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections. Calls that are under way go on."""
        self.transport.close()

    def open(self, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None, on_queue: Optional[Callable[[int], None]] = None, retried: str = "") -> Session:
        """Open a session: the live one of this user and thread, or a new one."""
        called_back("on_queue", on_queue)
        body = without_none(request)
        headers: Dict[str, str] = once(idempotency_key)
        if retried:
            headers["Cove-Retry"] = retried
        if on_queue is None or body.get("on_full") != "wait":
            return self._session(self.transport.get("POST", "/api/sandboxes", json_body=body, headers=headers))
        events = self.transport.follow("POST", "/api/sandboxes", ("session",), json_body=body, headers=headers)
        try:
            while True:
                event = events.next()
                if event is None:
                    raise self.transport.strange("no session")
                if event.name == "queue":
                    on_queue(int(events.parsed(event).get("position") or 0))
                elif event.name == "session":
                    return self._session(events.parsed(event))
        finally:
            events.close()

    def _session(self, body: Json) -> Session:
        if not isinstance(body, dict) or not body.get("session_id") or not body.get("status"):
            raise self.transport.strange("a session")
        return pick(Session, body)

    def session(self, session_id: str) -> Session:
        """Get the record of a session."""
        return self._session(self.transport.get("GET", at("/api/sandboxes/", session_id)))

    def act(self, session_id: str, verb: str, body: Optional[Json] = None, headers: Optional[Mapping[str, str]] = None) -> Session:
        """Do something to a session whose answer is its record, such as stop or pause."""
        return self._session(self.transport.get("POST", at("/api/sandboxes/", session_id, "/" + verb), json_body=body, headers=headers))

    def end(self, session_id: str, *, keep_workspace: bool = False) -> str:
        """End a session. With keep_workspace the answer is the snapshot with its files."""
        body = self.transport.get("DELETE", at("/api/sandboxes/", session_id), query={"keep_workspace": "true"} if keep_workspace else None)
        return str(body.get("snapshot_id") or "")

    def sessions(
        self,
        *,
        project_name: Optional[str] = None,
        user_id: Optional[str] = None,
        thread_id: Optional[str] = None,
        status: Optional[str] = None,
        node_id: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        limit: int = 0,
        after: Optional[str] = None,
    ) -> List[Session]:
        """List sessions, those that fit alone, and up to limit where that is not 0; the
        list goes on after the session with the id after."""
        query = without_none({"project_name": project_name, "user_id": user_id, "thread_id": thread_id, "status": status, "node_id": node_id, "cursor": after})
        if metadata:
            query["label"] = [f"{k}={v}" for k, v in metadata.items()]
        return [self._session(item) for item in self.pages("/api/sandboxes", query, limit)]

    def snapshots(self, *, session_id: Optional[str] = None, limit: int = 0, after: Optional[str] = None) -> List[Snapshot]:
        """List snapshots, up to limit where that is not 0; the list goes on after the one with the id after."""
        return [pick(Snapshot, item) for item in self.pages("/api/snapshots", without_none({"session_id": session_id, "cursor": after}), limit)]

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Forget a snapshot."""
        self.transport.tell("DELETE", at("/api/snapshots/", snapshot_id))

    def pages(self, path: str, query: Optional[Mapping[str, Any]] = None, most: int = 0) -> Iterator[Json]:
        """The elements of a list, a page at a time, up to most where that is not 0."""
        if not isinstance(most, int) or most < 0:
            raise invalid_field("limit", f"{most!r} is no number of things; 0 means all")
        asked = dict(query or {})
        left = most
        while True:
            asked["limit"] = min(PAGE, left) if most else PAGE
            page = self.transport.get("GET", path, query=asked)
            items = page.get("items")
            if not isinstance(items, list):
                raise self.transport.strange("a list")
            for item in items:
                yield item
            left -= len(items)
            # A cursor with nothing before it would keep us here for ever.
            if not page.get("next_cursor") or not items or (most and left <= 0):
                return
            asked["cursor"] = page["next_cursor"]

    def health(self) -> Health:
        """How the server is. It needs no key."""
        return pick(Health, self.transport.get("GET", "/health"))

    def stats(self) -> Stats:
        """The platform in numbers."""
        return stats_of(self.transport.get("GET", "/api/stats"))

    def volumes(self) -> List[Json]:
        """The paths of the host that can be mounted."""
        return list((self.transport.get("GET", "/api/volumes")).get("items") or [])

    def nodes(self) -> List[Node]:
        """The servers of the cluster; one that is alone is the only one."""
        return [node_of(item) for item in (self.transport.get("GET", "/api/nodes")).get("items") or []]

    def drain_node(self, node: str) -> Node:
        """Have a node take no new sessions and give away those that can move. nodes says
        how far it is: active_sessions are those that it still has a sandbox for."""
        return node_of(self.transport.get("POST", at("/api/nodes/", node, "/drain")))

    def uncordon_node(self, node: str) -> Node:
        """Let a node take new sessions again."""
        return node_of(self.transport.get("POST", at("/api/nodes/", node, "/uncordon")))

    def maintenance(self, verb: Optional[str] = None, *, task: Optional[str] = None) -> Json:
        """See the background tasks, or pause, resume, restart or clean up with them."""
        if verb is None:
            return self.transport.get("GET", "/api/maintenance")
        if verb not in ("pause", "resume", "restart", "cleanup"):
            raise InvalidError(f"verb: {verb!r} is none of pause, resume, restart and cleanup")
        return self.transport.get("POST", "/api/maintenance/" + verb, query=without_none({"task": task}))

    def run_python(self, code: str, *, timeout: Optional[float] = None, session_id: Optional[str] = None, template: Optional[str] = None) -> Json:
        """Run Python code for a model: the answer has a text, whatever happens."""
        body = without_none({"code": text_field("code", code), "timeout": timeout, "session_id": session_id, "template": template})
        return self.transport.get("POST", "/api/tools/run_python_code", json_body=body)

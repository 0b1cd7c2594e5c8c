# Made from _async/sessions.py by mirror.py: change that, not this.
"""Sessions of users and threads behind one client, with plain dictionaries as answers."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Type, Union

from .._errors import ConflictError, InvalidError
from .._wire import Json
from .client import Client
from .commands import Command, OnText
from .files import LocalPath, OnProgress
from .sandbox import Sandbox
from .stream import Lock

if TYPE_CHECKING:
    from types import TracebackType

MOST = 1024  # sessions that one client remembers
CLOSE = "close"  # what becomes of a session when its time is over

# The session that a thread or task works in, for each client by its token. None: it
# asked for one and has not got it, so it works in no other.
_NOW: "ContextVar[Dict[object, Optional[Sandbox]]]" = ContextVar("cove_sessions")

REMEDY = "call get_or_create_session in this thread or task first, or name session_id"


class SandboxClient:
    """A sandbox for each conversation.

    get_or_create_session says whose turn it is: what is called after it, in the
    same thread or task, happens in that session. One client can serve any number of
    conversations at once, and none gets into the sandbox of another: where it is not
    clear which session is meant, or it could not be opened, the call is refused. Only
    a client that never heard of a user or a thread opens a session for itself, in
    which all calls happen that name no other.

    mode is "local", a server on this machine that starts by itself, or "remote",
    the one at server_url. Without one, SANDBOX_MODE and SANDBOX_URL, or COVE_URL, say it.
    """

    def __init__(self, mode: Optional[str] = None, server_url: Optional[str] = None, api_key: Optional[str] = None, *, client: Optional[Client] = None, **connect: Any) -> None:
        self._owns = client is None
        self.client = client or Client(server_url, api_key, mode=mode, **connect)
        self._sandboxes: Dict[str, Sandbox] = {}
        self._own: Optional[Sandbox] = None  # made by a call that named no session
        self._opening_own = Lock()
        self._converses = False  # a user or a thread was named
        self._token = object()

    def __enter__(self) -> "SandboxClient":
        return self

    def __exit__(self, kind: "Optional[Type[BaseException]]", err: Optional[BaseException], trace: "Optional[TracebackType]") -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections. Sessions stay until their time is up: another
        client with the same user and thread finds them."""
        self._sandboxes.clear()
        self._own = None
        self._work_in_none()
        if self._owns:
            self.client.close()

    def _work_in(self, sandbox: Optional[Sandbox]) -> None:
        _NOW.set({**_NOW.get({}), self._token: sandbox})

    def _work_in_none(self) -> None:
        _NOW.set({token: one for token, one in _NOW.get({}).items() if token is not self._token})

    def _remember(self, sandbox: Sandbox) -> None:
        while len(self._sandboxes) >= MOST:
            self._sandboxes.pop(next(iter(self._sandboxes)), None)
        self._sandboxes[sandbox.sandbox_id] = sandbox

    def get_or_create_session(self, user_id: Optional[str] = None, thread_id: Optional[str] = None, timeout_minutes: Optional[float] = None, **spec: Any) -> Json:
        """The session of a user and a thread, and make it the one that this thread or
        task works in. spec has what Sandbox.create takes, such as policy or flavor.

        A session that nothing happens in for timeout_minutes ends, and its files with it,
        unless on_end says otherwise, or others opened it."""
        self._work_in(None)  # if this fails, nothing goes on in the session of somebody else
        self._converses = self._converses or user_id is not None or thread_id is not None
        asked = {**spec, "user_id": user_id, "thread_id": thread_id, "timeout_minutes": timeout_minutes}
        try:
            sandbox = Sandbox.create(client=self.client, **{"on_end": CLOSE, **asked})
        except ConflictError as err:
            if "on_end" in spec or err.details.get("fields") != ["on_end"]:
                raise
            sandbox = Sandbox.create(client=self.client, **asked)  # others opened it, and said how it ends
        known = self._sandboxes.get(sandbox.sandbox_id)
        if known is None:
            self._remember(sandbox)
        else:
            known.session = sandbox.session
            sandbox = known
        self._work_in(sandbox)
        return dict(sandbox.session.raw)

    def _sandbox(self, session_id: Optional[str]) -> Sandbox:
        if session_id is not None:
            found = self._sandboxes.get(session_id)
            return found if found is not None else Sandbox.connect(session_id, client=self.client)
        now = _NOW.get({})
        if self._token not in now:
            return self._for_itself()
        sandbox = now[self._token]
        if sandbox is None:
            raise InvalidError("session_id: there is none, since get_or_create_session did not succeed here", remedy=REMEDY)
        return sandbox

    def _for_itself(self) -> Sandbox:
        """The session of the client itself; of many who want one at once, one opens it."""
        with self._opening_own:
            if self._own is None:
                if self._converses:
                    raise InvalidError("session_id: it is not clear which session is meant", remedy=REMEDY)
                self._own = Sandbox.create(client=self.client, on_end=CLOSE)
                self._remember(self._own)
            return self._own

    def execute(
        self,
        command: Command,
        timeout: Optional[float] = None,
        auto_retry: bool = True,
        *,
        session_id: Optional[str] = None,
        working_dir: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Any = None,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
    ) -> Json:
        """Run a command: exit_code, stdout, stderr, execution_time_ms and more.

        With auto_retry a session that has expired or was lost is opened again, and the
        command run in that, once; session_recreated says so. A command that fails is an answer.
        """
        sandbox = self._sandbox(session_id)
        was = sandbox.sandbox_id
        x = sandbox.commands.run(
            command, timeout=timeout, workdir=working_dir, env=env, stdin=stdin, on_stdout=on_stdout, on_stderr=on_stderr, auto_retry=auto_retry
        )
        if sandbox.sandbox_id != was:  # the old id leads to the new session as well
            self._remember(sandbox)
        return {**x.raw, "stdout": x.stdout, "stderr": x.stderr}

    def upload_file(self, local_path: LocalPath, remote_path: Optional[str] = None, *, session_id: Optional[str] = None, on_progress: Optional[OnProgress] = None) -> Json:
        """Copy a file of this machine into the workspace. It is streamed."""
        sandbox = self._sandbox(session_id)
        path = sandbox.files.upload(local_path, remote_path, on_progress=on_progress)
        return dict((sandbox.files.stat(path)).raw)

    def upload_bytes(self, data: Union[bytes, str], remote_path: str, *, session_id: Optional[str] = None) -> Json:
        """Write bytes to a file of the workspace."""
        sandbox = self._sandbox(session_id)
        sandbox.files.write(remote_path, data)
        return dict((sandbox.files.stat(remote_path)).raw)

    def download_file(self, remote_path: str, local_path: Optional[LocalPath] = None, *, session_id: Optional[str] = None, on_progress: Optional[OnProgress] = None) -> bytes:
        """A file of the workspace. With local_path it goes to that file, piece by
        piece, and the answer is empty."""
        sandbox = self._sandbox(session_id)
        if local_path is None:
            return sandbox.files.read_bytes(remote_path)
        sandbox.files.download(remote_path, os.fspath(local_path), on_progress=on_progress)
        return b""

    def list_files(self, path: str = "", depth: int = 1, *, session_id: Optional[str] = None) -> List[Json]:
        """What is below a directory, the workspace unless another is named."""
        sandbox = self._sandbox(session_id)
        return [dict(info.raw) for info in sandbox.files.list(path, depth=depth)]

    def close_session(self, session_id: Optional[str] = None) -> None:
        """End a session and its files. Where none was opened or named, there is nothing to end."""
        if session_id is None and self._own is None and not self._converses and self._token not in _NOW.get({}):
            return
        sandbox = self._sandbox(session_id)
        for name in [name for name, one in self._sandboxes.items() if one is sandbox]:
            del self._sandboxes[name]
        if self._own is sandbox:
            self._own = None
        if _NOW.get({}).get(self._token) is sandbox:
            self._work_in_none()
        sandbox.kill()

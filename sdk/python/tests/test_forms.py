"""Goes through all that the SDK can ask, at a server that is as docs/openapi.json
describes one and answers with every field (sdk/wiretest). The server says what was asked
that is not described; here is looked at what was read."""

from __future__ import annotations

import inspect
import os
import tempfile
import typing
import unittest
from typing import Any, Callable, Iterator

from cove import Client, Process, Sandbox
from cove._models import Record
from cove._sync.ports import Port

# A value for each parameter, by its name, and where that means two things, by the method's too.
GIVEN = {
    "after": "a", "code": "1", "command": ["true"], "context": "c", "cols": 80, "cpu_limit": "1.0", "cwd": "/", "data": b"\xff", "depth": 2, "env": {"A": "b"}, "eof": True,
    "flavor": "small", "grep": "x", "headers": {}, "id": "i", "idempotency_key": "k", "imports": "warn", "keep_stdin": True, "keep_workspace": True,
    "language": "python", "length": 1, "lifetime_minutes": 1.5, "limit": 1, "max_output": "1k", "memory_limit": "1g", "metadata": {"a": "b"}, "method": "GET",
    "name": "n", "node": "n", "node_id": "n", "network": {"mode": "allow", "allow": ["example.com"]}, "new": "b", "offset": 1, "old": "a", "on_end": "close", "on_full": "wait", "output_id": "o", "path": "p", "pid": 1,
    "policy": "agent-bash", "port": 80, "ports": [80], "project_name": "p", "provider": "local", "request": {}, "resume": 1.0, "retried": "session_expired",
    "rows": 24, "session_id": "s", "snapshot": "n", "snapshot_id": "n", "status": "running", "stdin": b"\xff", "stream": "stdout", "tag": "t", "tar": b"t", "task": "expiry",
    "template": "base", "thread_id": "t", "timeout": 1.5, "timeout_minutes": 1.5, "ttl_seconds": 1.5, "user_id": "u", "verb": "pause", "volumes": ["/a:/b:rw"], "workdir": "/",
    "auto_retry": False, "write.mode": 0o644, "signal.name": 15,
}  # fmt: skip
# Which server it is, and what the rest of the package is made with.
NOT_ASKED = {"client", "url", "api_key", "mode"}
INSIDE = {"close", "act", "pages", "once"}
# What the package itself says of an answer.
OURS = {"CodeResult.session_created"}


def called(method: Callable[..., Any], local: str, fully: bool) -> Any:
    """What comes of a method with all its arguments, or with those that it needs."""
    given = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if name == "local":
            given[name] = local
        elif f"{method.__name__}.{name}" in GIVEN:
            given[name] = GIVEN[f"{method.__name__}.{name}"]
        elif parameter.default is not parameter.empty and not fully:
            continue
        elif name.startswith("on_") and name not in GIVEN:
            given[name] = lambda *_: None
        else:
            given[name] = GIVEN[name]  # KeyError: a new parameter needs a value above
    return method(**given)


def records(value: Any) -> Iterator[Record]:
    """The answers in what a call returned, to the end of what goes on."""
    if isinstance(value, Record):
        yield value
        for name in value._names:
            yield from records(getattr(value, name))
    elif isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from records(one)
    elif hasattr(value, "__next__"):
        with value:
            for one in value:
                yield from records(one)
                if type(value).__name__ == "Watch":
                    return
        yield from records(getattr(value, "result", None))
    elif isinstance(value, Port):
        value.close()
    elif isinstance(value, (Process, Sandbox)):
        yield value.info if isinstance(value, Process) else value.session


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that its class says."""
    kind = typing.get_origin(hint) or hint
    if kind is typing.Union:
        return any(fits(value, one) for one in typing.get_args(hint))
    if kind in (list, dict) and typing.get_args(hint):
        inside = value.values() if isinstance(value, dict) else value
        return isinstance(value, kind) and all(fits(one, typing.get_args(hint)[-1]) for one in inside)
    return kind is Any or isinstance(value, (int, float) if kind is float else kind)


class Forms(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(os.environ["COVE_DESCRIBED"], "key")
        self.addCleanup(self.client.close)

    def check(self, record: Record) -> None:
        kind = type(record)
        for name, hint in typing.get_type_hints(kind).items():
            if name == "raw" or name.startswith("_"):
                continue
            where = f"{kind.__name__}.{name}"
            self.assertTrue(name in record.raw or where in OURS, f"{where} is in no answer")
            self.assertTrue(fits(getattr(record, name), hint), f"{where} is {getattr(record, name)!r} and not {hint}")

    def owners(self) -> "Iterator[Any]":
        """All that has methods which ask."""
        sandbox = Sandbox.connect("s", client=self.client)
        yield self.client
        yield from (sandbox.commands, sandbox.files, sandbox.code, sandbox.terminals, sandbox.ports, sandbox.snapshots)
        yield from (sandbox.commands.start("true"), sandbox.terminals.create(), sandbox)

    def test_all(self) -> None:
        seen = set()
        with tempfile.NamedTemporaryFile() as local:
            for owner in self.owners():
                for name, _ in inspect.getmembers(type(owner), inspect.isfunction):
                    if name.startswith("_") or name in INSIDE:
                        continue
                    for fully in (False, True):
                        with self.subTest(f"{type(owner).__name__}.{name}", fully=fully):
                            for record in records(called(getattr(owner, name), local.name, fully)):
                                seen.add(type(record).__name__)
                                self.check(record)
        every = {kind.__name__ for kind in Record.__subclasses__()} | {"CodeResult"}
        self.assertEqual(seen, every)

    def test_create(self) -> None:
        parameters = inspect.signature(Sandbox.create).parameters.keys() - NOT_ASKED - {"on_queue", "more"}
        queued = []
        more = {"pids_limit": 9, "workspace": {"kind": "disk", "size_mb": 1.5, "files": 9, "moves": True}, "require": {"isolation": "none"}}
        sandbox = Sandbox.create(client=self.client, on_queue=queued.append, **{name: GIVEN[name] for name in parameters}, **more)
        self.check(sandbox.session)
        self.assertEqual(queued, [1])


if __name__ == "__main__":
    unittest.main()

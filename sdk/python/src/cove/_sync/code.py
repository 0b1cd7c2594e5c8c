# Made from _async/code.py by mirror.py: change that, not this.
"""Code that remembers, in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Optional, Union

from .. import _wire
from .._models import CodeResult, Context, Result, chunk, code_result, pick
from .._wire import Json, called_back, text_field, without_none
from .commands import OnText, Texts
from .transport import at, once

if TYPE_CHECKING:
    from .sandbox import Sandbox

OnResult = Callable[[Result], None]


class Code:
    """Interpreters of one sandbox. Each language has one, and there can be more by name."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self._sandbox = sandbox

    def _at(self, name: str, rest: str = "") -> str:
        return at("/api/sandboxes/", self._sandbox.sandbox_id, "/contexts/", name, rest)

    def run(
        self,
        code: str,
        *,
        language: Optional[str] = None,
        context: Union[str, Context, None] = None,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        max_output: Union[int, str, None] = None,
        imports: Optional[str] = None,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        on_result: Optional[OnResult] = None,
        auto_retry: Optional[bool] = None,
    ) -> CodeResult:
        """Run code, in Python unless another language is named. Variables, imports and
        the directory stay for the next call.

        Code that raises is a result, with the error in it. A context belongs to one
        language, which is left to it.
        """
        called_back("on_result", on_result)
        named = _id(context) if context else None
        streamed = on_stdout is not None or on_stderr is not None or on_result is not None
        request = without_none(
            {
                "code": text_field("code", code),
                "language": language or ("python" if named is None else None),
                "context_id": named,
                "timeout": timeout,
                "env": _wire.texts("env", env),
                "max_output": max_output,
                "imports": imports,
                "values": True if on_result is not None else None,
            }
        )
        texts = Texts(on_stdout, on_stderr)

        def attempt(session_id: str, headers: Dict[str, str]) -> CodeResult:
            path = at("/api/sandboxes/", session_id, "/code")
            if not streamed:
                return code_result(self._sandbox.client.transport.get("POST", path, json_body=request, headers=headers))
            return self._streamed(path, request, headers, texts, on_result)

        # A context that was opened by name is gone with its session.
        return self._sandbox.once(attempt, lambda: not texts.told and named is None, auto_retry)

    def _streamed(self, path: str, request: Json, headers: Dict[str, str], texts: Texts, on_result: Optional[OnResult]) -> CodeResult:
        events = self._sandbox.client.transport.follow("POST", path, ("result",), json_body=request, headers=headers)
        try:
            while True:
                event = events.next()
                if event is None:
                    raise self._sandbox.client.transport.strange("no result")
                body = events.parsed(event)
                if event.name in ("stdout", "stderr"):
                    texts.take(chunk(event.name, body))
                elif event.name == "value" and on_result is not None:
                    texts.told = True
                    on_result(Result(body.get("forms") or {}))
                elif event.name == "result":
                    texts.end()
                    return code_result(body)
        finally:
            events.close()

    def create_context(
        self, *, language: str = "python", cwd: Optional[str] = None, id: Optional[str] = None, idempotency_key: Optional[str] = None  # noqa: A002: the field's name
    ) -> Context:
        """Open an interpreter beside the one that each language has."""
        body = without_none({"language": language, "cwd": cwd, "id": id})
        path = at("/api/sandboxes/", self._sandbox.sandbox_id, "/contexts")
        return pick(Context, self._sandbox.client.transport.get("POST", path, json_body=body, headers=once(idempotency_key)))

    def contexts(self) -> List[Context]:
        """The interpreters that are there."""
        return [pick(Context, item) for item in self._sandbox.client.pages(at("/api/sandboxes/", self._sandbox.sandbox_id, "/contexts"))]

    def restart(self, context: Union[str, Context]) -> None:
        """Make an interpreter forget all."""
        self._sandbox.client.transport.tell("POST", self._at(_id(context), "/restart"))

    def interrupt(self, context: Union[str, Context]) -> None:
        """Stop what runs in an interpreter, which forgets nothing."""
        self._sandbox.client.transport.tell("POST", self._at(_id(context), "/interrupt"))

    def remove_context(self, context: Union[str, Context]) -> None:
        """Close an interpreter."""
        self._sandbox.client.transport.tell("DELETE", self._at(_id(context)))


def _id(context: Union[str, Context]) -> str:
    return context.id if isinstance(context, Context) else context

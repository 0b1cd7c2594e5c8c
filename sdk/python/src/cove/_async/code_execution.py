"""Anthropic's code execution, in a sandbox of ours."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from .._errors import CoveError, InvalidError, NotFoundError, ResourceLimitError
from .._shapes import BASH, CODE, EDITOR, TOOLS, Call, answer, call_of, error, ran, replaced, seen, view
from .._told import EDITED, MOST, bound, cut, edited
from .._wire import Json
from .sandbox import AsyncSandbox, checked


class AsyncCodeExecution:
    """Answers calls of code_execution, bash_code_execution and text_editor_code_execution.

    A server_tool_use block is answered by the block that Anthropic's own sandbox would
    give, for who stands in its place; a tool_use block by a tool_result with the same
    content as JSON, for who gives tools to the model. Files that code leaves in
    /workspace are named in the answer: a file_id is a path in the sandbox.
    """

    def __init__(self, sandbox: AsyncSandbox, *, timeout: Optional[float] = None, most: int = MOST) -> None:
        self.sandbox = checked(sandbox)
        self.timeout = timeout
        self.most = bound(most)
        self._seen: Optional[Dict[str, Tuple[int, str]]] = None
        self._made: Set[str] = set()
        self._used: Set[str] = set()  # the languages that something was run in

    @property
    def tools(self) -> List[Json]:
        """The tools for a request, where the model is to call them with tool_use."""
        return [dict(tool) for tool in TOOLS]

    @property
    def files(self) -> List[str]:
        """The paths of what code has left in /workspace, of all calls."""
        return sorted(self._made.intersection(self._seen or ()))

    async def answer(self, block: Any) -> Json:
        """The block that answers a call. What went wrong is an answer, too; only what
        is no call of these tools is an InvalidError."""
        call = call_of(block)
        return answer(call, await self.content(call))

    async def content(self, call: Call) -> Json:
        """What is in the answer to a call."""
        try:
            if call.name == EDITOR:
                return await self._edit(call)
            return await self._run(call)
        except CoveError as err:
            return error(call.name, err)

    async def _run(self, call: Call) -> Json:
        code = call.text("code") if call.name == CODE else call.text("command")
        if self._seen is None:  # what is there already was not made by what runs now
            self._seen = await self._files()
        language = "bash" if call.name == BASH else "python"
        again = language in self._used
        self._used.add(language)
        x = await self.sandbox.code.run(code, language=language, timeout=self.timeout)
        before, self._seen = self._seen, await self._files()
        made = sorted(path for path, stamp in self._seen.items() if before.get(path) != stamp)
        self._made.update(made)
        return ran(call.name, x, made, self.most, again)

    async def _files(self) -> Dict[str, Tuple[int, str]]:
        try:
            return seen(await self.sandbox.files.list())
        except (NotFoundError, ResourceLimitError):  # a session that is gone, which code opens again, or too many to tell
            return {}

    async def _edit(self, call: Call) -> Json:
        command, path = call.text("command"), call.text("path")
        files = self.sandbox.files
        if command == "create":
            there = await files.exists(path)
            await files.write(path, call.text("file_text"))
            return {"type": EDITOR + "_create_result", "is_file_update": there}
        if command == "view" and (await files.stat(path)).is_dir:
            names = sorted(info.path + "/" * info.is_dir for info in await files.list(path))
            return {"type": EDITOR + "_view_result", "file_type": "text", "content": cut("\n".join(names), self.most)}
        if command not in ("view", "str_replace"):
            raise InvalidError(f"{call.name}: {command[:40]!r} is none of view, create and str_replace")
        data = await files.read_bytes(path, length=EDITED + 1)
        if command == "view":
            return view(data[:EDITED], len(data) <= EDITED, call.input.get("view_range"), self.most)
        old, new = call.text("old_str"), call.text("new_str", "")
        mode = (await files.stat(path)).mode
        await files.write(path, edited(path, data, old, new), mode=mode or None)
        return replaced(data, old, new, self.most)

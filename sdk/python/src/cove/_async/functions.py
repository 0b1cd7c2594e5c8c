"""Functions of a sandbox that a model may call: Python, bash and files."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Set, Union

from .._errors import CoveError
from .._told import EDITED, MOST, arguments_of, bound, cut, edited, failed, joined, part_of, schemas, told
from .._wire import Json
from .sandbox import AsyncSandbox, checked

NOTE = 80  # characters at the end of a part of a file


class AsyncFunctions:
    """The tools of a model in one sandbox.

    schemas says which there are, in the words of the model's API, and call runs one
    of them. An answer has at most so many characters, and a run so many seconds where
    timeout says so; otherwise as many as the server gives.
    """

    def __init__(self, sandbox: AsyncSandbox, *, timeout: Optional[float] = None, most: int = MOST) -> None:
        self.sandbox = checked(sandbox)
        self.timeout = timeout
        self.most = bound(most)
        self._used: Set[str] = set()  # the languages that something was run in

    def schemas(self, shape: str = "chat") -> List[Json]:
        """The tools for a request: chat for OpenAI's chat/completions and all that
        speak it, responses for its Responses, anthropic for Anthropic's Messages."""
        return schemas(shape)

    async def call(self, name: str, arguments: Union[str, Mapping[str, Any], None] = None) -> str:
        """Run a tool by what the model said, with the arguments as JSON or as an object.

        It never fails: what the model, the sandbox or the platform did wrong is a
        text, too.
        """
        try:
            given = arguments_of(name, arguments)
            return cut(await getattr(self, "_" + name)(**given), self.most)
        except CoveError as err:
            return cut(failed(err), self.most)

    async def restart(self, language: str) -> None:
        """Make the interpreter of a language forget all; files stay."""
        for context in await self.sandbox.code.contexts():
            if context.id == language:
                await self.sandbox.code.restart(context)
        self._used.discard(language)

    async def _python(self, code: str) -> str:
        return await self._ran(code, "python")

    async def _bash(self, command: str) -> str:
        return await self._ran(command, "bash")

    async def _ran(self, code: str, language: str) -> str:
        again = language in self._used
        self._used.add(language)
        return told(await self.sandbox.code.run(code, language=language, timeout=self.timeout), self.most, again)

    async def _read_file(self, path: str, offset: int = 0) -> str:
        most = self.most - NOTE
        return part_of(await self.sandbox.files.read_bytes(path, offset=offset, length=most + 1), offset, most)

    async def _write_file(self, path: str, content: str) -> str:
        await self.sandbox.files.write(path, content)
        return f"{path} is written."

    async def _edit_file(self, path: str, old: str, new: str) -> str:
        mode = (await self.sandbox.files.stat(path)).mode
        data = await self.sandbox.files.read_bytes(path, length=EDITED + 1)
        await self.sandbox.files.write(path, edited(path, data, old, new), mode=mode or None)
        return f"{path} is changed."

    async def _list_files(self, path: str = "") -> str:
        found = sorted(await self.sandbox.files.list(path), key=lambda info: info.path)
        lines = [info.path + "/" if info.is_dir else f"{info.path} ({info.size} bytes)" for info in found]
        return joined(*lines) or "(nothing)"

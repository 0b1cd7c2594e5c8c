"""The shapes of Anthropic's code execution: calls that come in, and blocks that answer them."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ._errors import CoveError, InvalidError, NotFoundError, SessionNotFoundError
from ._models import CodeResult, FileInfo
from ._told import MOST, cut, joined, renewed
from ._wire import Json

CODE, BASH, EDITOR = "code_execution", "bash_code_execution", "text_editor_code_execution"
FILES = 100  # that one answer names at most

_TEXT = {"type": "string"}
TOOLS: Tuple[Json, ...] = (
    {
        "name": CODE,
        "description": "Runs Python code in a sandbox, in an interpreter that remembers. Files that it leaves in /workspace are named in the answer.",
        "input_schema": {"type": "object", "properties": {"code": _TEXT}, "required": ["code"]},
    },
    {
        "name": BASH,
        "description": "Runs a command in bash in the sandbox. Files that it leaves in /workspace are named in the answer.",
        "input_schema": {"type": "object", "properties": {"command": _TEXT}, "required": ["command"]},
    },
    {
        "name": EDITOR,
        "description": "Views, creates and changes text files of the sandbox.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "create", "str_replace"]},
                "path": _TEXT,
                "view_range": {"type": "array", "items": {"type": "integer"}, "description": "the first and the last line of a view; -1 is the last of all"},
                "file_text": {"type": "string", "description": "of a file that is created"},
                "old_str": {"type": "string", "description": "a text that is in the file exactly once"},
                "new_str": {"type": "string", "description": "what takes its place"},
            },
            "required": ["command", "path"],
        },
    },
)


class Call(NamedTuple):
    """A block in which a model calls a tool."""

    id: str
    name: str
    input: Mapping[str, Any]
    hosted: bool  # it is as if Anthropic ran the tool

    def text(self, field: str, otherwise: Optional[str] = None) -> str:
        """An argument that is a text."""
        value = self.input.get(field, otherwise)
        if not isinstance(value, str):
            raise InvalidError(f"{self.name}: {field} must be a text")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidError(f"{self.name}: {field} is not Unicode") from None
        return value


def call_of(block: Any) -> Call:
    """The call in a tool_use or server_tool_use block, as an object of the SDK or as a
    mapping. It raises InvalidError for what is none."""
    fields = ("type", "id", "name", "input")
    kind, id, name, given = [block.get(f) for f in fields] if isinstance(block, Mapping) else [getattr(block, f, None) for f in fields]
    if kind not in ("tool_use", "server_tool_use") or not isinstance(id, str) or name not in (CODE, BASH, EDITOR):
        names = f"{CODE}, {BASH} or {EDITOR}"
        raise InvalidError("the block is no call of a tool for code", remedy=f"hand on tool_use and server_tool_use blocks that name {names}")
    return Call(id, name, given if isinstance(given, Mapping) else {}, kind == "server_tool_use")


def answer(call: Call, content: Json) -> Json:
    """The block that answers a call: as Anthropic's own would be, or a tool_result
    with the same content as JSON."""
    if call.hosted:
        if call.name != EDITOR:  # their shape has no field for it
            content = {name: value for name, value in content.items() if name != "error_message"}
        return {"type": call.name + "_tool_result", "tool_use_id": call.id, "content": content}
    block: Json = {"type": "tool_result", "tool_use_id": call.id, "content": json.dumps(content, ensure_ascii=False)}
    if content["type"].endswith("_error"):
        block["is_error"] = True
    return block


_CODES = {"invalid": "invalid_tool_input", "exhausted": "too_many_requests", "timeout": "execution_time_exceeded"}


def error(name: str, err: CoveError) -> Json:
    """The content of an answer that says what did not work."""
    code = _CODES.get(err.code, "unavailable")
    if name == EDITOR and isinstance(err, NotFoundError) and not isinstance(err, SessionNotFoundError):
        code = "file_not_found"
    return {"type": name + "_tool_result_error", "error_code": code, "error_message": cut(str(err), MOST)}


def ran(name: str, x: CodeResult, made: List[str], most: int, again: bool) -> Json:
    """The content of an answer about code that ran. Again is as in told."""
    if x.outcome == "timed_out":
        said = f"it ran out of time after {x.execution_time_ms / 1000:g}s"
        return {"type": name + "_tool_result_error", "error_code": "execution_time_exceeded", "error_message": cut(joined(x.stdout, x.stderr, said), most)}
    return {
        "type": name + "_result",
        "stdout": cut(joined(x.stdout, *[value.text for value in x.results]), most),
        "stderr": cut(joined(x.stderr, _raised(x), renewed(x, again)), most),
        "return_code": x.exit_code,
        "content": [{"type": name + "_output", "file_id": path} for path in made[:FILES]],
    }


def _raised(x: CodeResult) -> str:
    if x.error is None:
        return ""
    return x.error.traceback or f"{x.error.name}: {x.error.value}"


def seen(files: List[FileInfo]) -> Dict[str, Tuple[int, str]]:
    """What tells a file from what it was before. A name that is not Unicode is no id."""
    return {info.path: (info.size, info.modified) for info in files if info.type == "file" and info.path == cut(info.path, len(info.path))}


def view(data: bytes, whole: bool, wanted: Any, most: int) -> Json:
    """The content of an answer that shows a file, or some lines of it."""
    if b"\0" in data:
        raise InvalidError("the file is no text", remedy="look at it with a program")
    lines = data.decode("utf-8", "replace").splitlines()
    first, last = 1, len(lines)
    if wanted is not None:
        if not (isinstance(wanted, (list, tuple)) and len(wanted) == 2 and all(isinstance(n, int) for n in wanted)) or wanted[0] < 1:
            raise InvalidError("view_range must be the first and the last line, from 1 on")
        first, last = wanted[0], len(lines) if wanted[1] == -1 else min(wanted[1], len(lines))
    shown = lines[first - 1 : last]
    content: Json = {"type": EDITOR + "_view_result", "file_type": "text", "content": cut("\n".join(shown), most), "num_lines": len(shown), "start_line": first}
    if whole:
        content["total_lines"] = len(lines)
    return content


def replaced(data: bytes, old: str, new: str, most: int) -> Json:
    """The content of an answer about a text that took the place of another."""
    start = data[: data.find(old.encode())].count(b"\n") + 1
    was, now = old.splitlines() or [""], new.splitlines()
    lines = cut("\n".join(["-" + line for line in was] + ["+" + line for line in now]), most).split("\n")
    return {
        "type": EDITOR + "_str_replace_result",
        "old_start": start,
        "old_lines": len(was),
        "new_start": start,
        "new_lines": len(now),
        "lines": lines,
    }

"""What a model is told: the tools that it has, and texts of a bounded size, whatever happens.

A model can read why something did not work and try again; it cannot handle an
exception. So what it did wrong, what policy refused, time that ran out and a
platform that is down are all texts.
"""

from __future__ import annotations

import codecs
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Union

from ._errors import CommandExecutionError, CoveError, InvalidError, invalid_field
from ._models import CodeResult, Execution, Result, failure
from ._wire import Json

MOST = 20_000  # characters of an answer
LEAST = 200  # characters that an answer must be allowed to have
EDITED = 1 << 20  # bytes of a file that can be edited in one piece

NEW_SANDBOX = "[This is a new sandbox: what earlier calls left is gone.]"
STARTED_AGAIN = "[The sandbox had been stopped and was started again: its files are kept, variables and programs that ran are gone.]"
NEW_INTERPRETER = "[The interpreter was started again: variables are gone, files are still there.]"


class Tool(NamedTuple):
    """A function that a model may call."""

    name: str
    description: str
    parameters: Json  # a JSON schema


def _tool(name: str, description: str, required: Mapping[str, str], optional: Mapping[str, Json]) -> Tool:
    properties: Json = {field: {"type": "string", "description": text} for field, text in required.items()}
    properties.update(optional)
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False})


TOOLS = (
    _tool(
        "python",
        "Runs Python code in a sandbox, in an interpreter that remembers variables and imports from call to call. "
        "Returns what it prints and the value of its last expression.",
        {"code": "Python code"},
        {},
    ),
    _tool(
        "bash",
        "Runs a command in bash in a sandbox. Files, the directory and variables stay for the next call.",
        {"command": "a line, or a script"},
        {},
    ),
    _tool(
        "read_file",
        "Reads a text file of the sandbox. A long one comes in parts, by offset.",
        {"path": "relative to /workspace, or below it or /tmp"},
        {"offset": {"type": "integer", "description": "bytes before the part that is wanted"}},
    ),
    _tool(
        "write_file",
        "Writes a text file in the sandbox, in the place of one that is there.",
        {"path": "relative to /workspace, or below it or /tmp", "content": "all of its text"},
        {},
    ),
    _tool(
        "edit_file",
        "Replaces a text that occurs exactly once in a file of the sandbox.",
        {"path": "relative to /workspace, or below it or /tmp", "old": "the text, with enough around it to be the only one", "new": "the text in its place"},
        {},
    ),
    _tool(
        "list_files",
        "Lists a directory of the sandbox.",
        {},
        {"path": {"type": "string", "description": "relative to /workspace, or below it or /tmp; left out, /workspace"}},
    ),
)

BY_NAME: Dict[str, Tool] = {tool.name: tool for tool in TOOLS}


def schemas(shape: str) -> List[Json]:
    """The tools as a request to a model has them: to OpenAI's chat/completions
    (chat) or Responses (responses), or to Anthropic's Messages (anthropic)."""
    if shape == "chat":
        return [{"type": "function", "function": tool._asdict()} for tool in TOOLS]
    if shape == "responses":
        return [{"type": "function", **tool._asdict()} for tool in TOOLS]
    if shape == "anthropic":
        return [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in TOOLS]
    raise invalid_field("shape", f"{shape!r} is none of chat, responses and anthropic")


def arguments_of(name: str, given: Union[str, Mapping[str, Any], None]) -> Json:
    """The arguments of a call, as JSON or as an object, held to the schema of the tool."""
    tool = BY_NAME.get(str(name))
    if tool is None:
        raise InvalidError(f"there is no tool {str(name)[:60]!r}", remedy="use one of " + ", ".join(BY_NAME))
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except (ValueError, RecursionError):
            raise InvalidError(f"{name}: the arguments are not JSON") from None
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidError(f"{name}: the arguments are not an object")
    properties = tool.parameters["properties"]
    for field, value in given.items():
        if field not in properties:
            raise InvalidError(f"{name}: there is no argument {str(field)[:60]!r}", remedy="use " + ", ".join(properties))
        _fits(f"{name}: {field}", properties[field]["type"], value)
    for field in tool.parameters["required"]:
        if field not in given:
            raise InvalidError(f"{name}: {field} is missing")
    return dict(given)


def _fits(what: str, kind: str, value: Any) -> None:
    if kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
            raise InvalidError(f"{what} must be a whole number from 0 on")
        return
    if not isinstance(value, str):
        raise InvalidError(f"{what} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, which JSON can say and no file can hold
        raise InvalidError(f"{what} is not Unicode") from None


def bound(most: int) -> int:
    """How long an answer may be, as somebody asked for it."""
    if not isinstance(most, int) or most < LEAST:
        raise invalid_field("most", f"must be {LEAST} characters or more")
    return most


def cut(text: str, most: int) -> str:
    """A text of at most so many characters: the head and the tail of one that is longer.
    It is Unicode, also where it has a name of a file that is not."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= most:
        return text
    gap = "\n[… {} characters are cut here …]\n"
    half = (most - len(gap) - 10) // 2
    if half < 1:
        return text[: max(most, 0)]
    return text[:half] + gap.format(len(text) - 2 * half) + text[-half:]


def failed(err: CoveError) -> str:
    """What did not work, for a model."""
    return f"Error ({err.code}): {err}"


def ended(x: Execution) -> str:
    """How it came to its end, where that is not just the end of what was asked for."""
    if x.outcome == "blocked":
        return f"blocked by policy, and nothing ran: {(x.refusal or {}).get('reason') or 'it is not allowed'}"
    if x.ok or (x.outcome == "exited" and isinstance(x, CodeResult) and x.error is not None):
        return ""
    return failure(CommandExecutionError, "it", "", x, "").message


def told(x: Execution, most: int, again: bool = False) -> str:
    """What came of a program or of code, for a model. Again says that an interpreter
    that was used before has run it."""
    notes = [note for note in (renewed(x, again),) if note]
    parts = [x.stdout]
    end = ended(x)
    if isinstance(x, CodeResult):
        parts += [_shown(value) for value in x.results]
    if x.outcome != "blocked":  # the streams repeat it
        parts.append(x.stderr)
    if isinstance(x, CodeResult) and x.error is not None:
        parts.append(x.error.traceback or f"{x.error.name}: {x.error.value}")
    if x.truncated:
        notes.append("[The output is cut. Send it to a file and look at parts of that.]")
    if end:
        notes.append(f"[{end}]")
    after = "\n".join(notes)
    return joined(cut(joined(*parts), most - len(after) - 1), after) or "(no output)"


def renewed(x: Execution, again: bool = False) -> str:
    """Which memory is gone, where some is."""
    if x.session_recreated:
        return NEW_SANDBOX
    if x.session_restarted:
        return STARTED_AGAIN
    return NEW_INTERPRETER if again and isinstance(x, CodeResult) and x.context_fresh else ""


def _shown(value: Result) -> str:
    others = [form for form in value if form != "text"]
    return joined(value.text, "" if value.text and "png" not in others else f"[a value as {', '.join(others)[:80]}]")


def joined(*parts: str) -> str:
    """What is not empty, each on lines of its own."""
    return "\n".join(part for part in (part.rstrip("\n") for part in parts) if part)


def part_of(data: bytes, offset: int, most: int) -> str:
    """A part of a file as text, of which one byte more was asked for than is shown."""
    if b"\0" in data:
        return "[This is no text. Look at it with a program.]"
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[:most], final=len(data) <= most)
    if len(data) > most:
        left = len(decoder.getstate()[0])  # of a character that the edge goes through
        return joined(text, f"[There is more: go on with offset {offset + most - left}.]")
    return text or "(nothing)"


def edited(path: str, data: bytes, old: str, new: str) -> bytes:
    """A file with a text in the place of another, which must be in it exactly once."""
    if len(data) > EDITED:
        raise InvalidError(f"{path}: is longer than {EDITED} bytes", remedy="change it with a program")
    if not old:
        raise InvalidError("old: is empty", remedy="name the text that is to be replaced")
    found = data.count(old.encode())
    if found != 1:
        raise InvalidError(
            f"{path}: the text is in it {found} times, and not once",
            remedy="read the file and copy the text as it is" if found == 0 else "take more of what is around it",
        )
    return data.replace(old.encode(), new.encode())

"""Between Python values and the JSON that travels."""

from __future__ import annotations

import binascii
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ._errors import invalid_field

Json = Dict[str, Any]
_COROUTINE = 0x80  # of the flags of a function's code, as inspect has it, which takes long to import


def loaded(data: bytes) -> Any:
    """What is in JSON. It raises ValueError, also where that is nested beyond all measure."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("too deep") from None


def encoded_text(name: str, text: str) -> bytes:
    """A text as it travels; what os.fsdecode made of bytes is those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise invalid_field(name, "holds half a character, which is no text") from None


def path_of(path: "Union[str, os.PathLike[str]]") -> str:
    """The name of a file in a sandbox."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise invalid_field("path", f"must be a text, and is {type(path).__name__}")
    encoded_text("path", name)
    return name


def called_back(name: str, to: Optional[Callable[..., Any]]) -> None:
    """Demand that who is told of something meanwhile is a function that nobody has to await."""
    if to is None:
        return
    code = getattr(to, "__code__", None) or getattr(getattr(to, "__call__", None), "__code__", None)
    if not callable(to) or getattr(code, "co_flags", 0) & _COROUTINE:
        raise invalid_field(name, "must be a function, and one without async, since nobody waits for it")


def text_field(name: str, text: Any) -> str:
    """An argument that is a text."""
    if not isinstance(text, str):
        raise invalid_field(name, f"must be a text, and is {type(text).__name__}")
    return text


def pairs(name: str, given: Any) -> Optional[Json]:
    """A mapping as it travels; an empty one is none."""
    if given is not None and not isinstance(given, Mapping):
        raise invalid_field(name, f"must be a mapping, and is {type(given).__name__}")
    return dict(given) if given else None


def texts(name: str, given: Any) -> Optional[Json]:
    """A mapping of texts as it travels; an empty one is none."""
    found = pairs(name, given)
    for key, value in (found or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise invalid_field(f"{name}.{key}", f"must be a text, and is {type(value).__name__}")
    return found


def piece_of(piece: Any) -> bytes:
    """A piece of what is to be sent. A number is none, though bytes can be made of it."""
    if isinstance(piece, str):
        return encoded_text("data", piece)
    if not isinstance(piece, (bytes, bytearray, memoryview)):
        raise invalid_field("data", f"must come in pieces of bytes or text, and not of {type(piece).__name__}")
    return bytes(piece)


def elements(name: str, given: Any) -> Optional[List[Any]]:
    """A list as it travels; an empty one is none."""
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise invalid_field(name, f"must be a list, and is {type(given).__name__}")
    return list(given) or None


def text_or_base64(name: str, data: Union[str, bytes]) -> Json:
    """Bytes as the text field of this name, or as its sibling in base64."""
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError:
            return text_or_base64(name, encoded_text(name, data))
        return {name: data}
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise invalid_field(name, f"must be text or bytes, and is {type(data).__name__}")
    try:
        return {name: bytes(data).decode()}
    except UnicodeDecodeError:
        return {name + "_base64": binascii.b2a_base64(data, newline=False).decode()}


def data_of(body: Mapping[str, Any], name: str) -> bytes:
    """The bytes of a field that is text or base64."""
    raw = body.get(name + "_base64")
    if raw:
        return binascii.a2b_base64(raw)
    text: str = body.get(name) or ""
    return text.encode("utf-8", "surrogatepass")


def text_of(body: Mapping[str, Any], name: str) -> str:
    """The text of a field; bytes that are no text have a mark in their place."""
    raw = body.get(name + "_base64")
    if raw:
        return binascii.a2b_base64(raw).decode("utf-8", "replace")
    return body.get(name) or ""


def name_of(body: Mapping[str, Any], name: str) -> str:
    """The name of a file, as os.fsdecode makes one of bytes."""
    raw = body.get(name + "_base64")
    if raw:
        return binascii.a2b_base64(raw).decode("utf-8", "surrogateescape")
    return body.get(name) or ""


def without_none(body: Mapping[str, Any]) -> Json:
    """A request without what nobody asked for."""
    return {name: value for name, value in body.items() if value is not None}


def command_of(command: Any) -> Tuple[Any, bool]:
    """A line or a list of words as it travels, and whether it is one of them."""
    if isinstance(command, str):
        return command, True
    if isinstance(command, (list, tuple)) and all(isinstance(word, str) for word in command):
        return list(command), True
    return None, False

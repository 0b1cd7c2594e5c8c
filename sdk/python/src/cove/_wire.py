"""Between Python values and the JSON that travels."""

from __future__ import annotations

import binascii
from typing import Any, Dict, Mapping, Tuple, Union

Json = Dict[str, Any]


def text_or_base64(name: str, data: Union[str, bytes]) -> Json:
    """Bytes as the text field of this name, or as its sibling in base64."""
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError:  # bytes of a name that os.fsdecode made
            return text_or_base64(name, data.encode("utf-8", "surrogateescape"))
        return {name: data}
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

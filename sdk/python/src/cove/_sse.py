"""Events out of the bytes of a text/event-stream, without reading any."""

from __future__ import annotations

from typing import List, NamedTuple

MOST = 64 << 20  # bytes of one event


class Event(NamedTuple):
    """One event: its name, its id, and its data as they came."""

    name: str
    id: str
    data: bytes


class TooLarge(Exception):
    """An event is larger than anybody should hold."""


class Parser:
    """Takes bytes as they come and gives the events that are whole.

    Comments are left out, and so is an event that the bytes end in the middle
    of. Lines end in LF, CR or both; a CR at the end of a piece waits for the next.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rest = bytearray()
        self._name = self._id = ""
        self._data: List[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> List[Event]:
        """The events that are whole with this piece. It raises TooLarge."""
        waiting = self._rest[-1:] == b"\r"
        self._rest += piece
        events: List[Event] = []
        # Only a piece with an end of line can complete anything.
        if not waiting and b"\n" not in piece and b"\r" not in piece:
            self._bound()
            return events
        cut = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r", 0, len(self._rest) - 1)) + 1
        whole = bytes(self._rest[:cut])
        del self._rest[:cut]
        for line in whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]:
            if line:
                self._line(line)
            elif self._data:
                events.append(Event(self._name, self._id, b"\n".join(self._data)))
                self._reset()
            else:
                self._reset()
        self._bound()
        return events

    def _bound(self) -> None:
        if len(self._rest) > self._most or self._size > self._most:
            raise TooLarge()

    def _reset(self) -> None:
        self._name, self._data, self._size = "", [], 0

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._bound()

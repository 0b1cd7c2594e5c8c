"""A call that goes on while others are made, in a thread."""

from __future__ import annotations

import threading
from typing import Any, Callable, List


class Begun:
    def __init__(self, call: "Callable[[], Any]") -> None:
        self._came: List[Any] = []
        self._thread = threading.Thread(target=lambda: self._came.append(call()), daemon=True)
        self._thread.start()

    def result(self, timeout: float) -> Any:
        """What came of it, when it is over."""
        self._thread.join(timeout)
        if not self._came:
            raise AssertionError("it does not end")
        return self._came[0]

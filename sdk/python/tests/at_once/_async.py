"""A call that goes on while others are made, in asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Coroutine


class AsyncBegun:
    def __init__(self, call: "Callable[[], Coroutine[Any, Any, Any]]") -> None:
        self._task = asyncio.ensure_future(call())

    async def result(self, timeout: float) -> Any:
        """What came of it, when it is over."""
        return await asyncio.wait_for(self._task, timeout)

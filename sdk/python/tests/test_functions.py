"""The tools of a model, which need real programs: a server of the provider local."""

from __future__ import annotations

import asyncio
import unittest

import both_ways
import cove
import functions
from cove.adapters.functions import AsyncFunctions

Tools, Executions = functions.Tools, functions.Executions
_waiting = both_ways.waiting("functions")


class WaitingTools(_waiting.Tools):  # type: ignore[name-defined,misc]
    pass


class WaitingExecutions(_waiting.Executions):  # type: ignore[name-defined,misc]
    pass


class AtOnce(unittest.IsolatedAsyncioTestCase):
    async def test_calls_of_one_shell_wait_for_each_other(self) -> None:
        async with await cove.AsyncSandbox.create() as sandbox:
            tools = AsyncFunctions(sandbox)
            await tools.call("bash", {"command": "n=0"})
            await asyncio.gather(*[tools.call("bash", {"command": "m=$n; sleep 0.02; n=$((m+1))"}) for _ in range(5)])
            self.assertEqual(await tools.call("bash", {"command": "echo $n"}), "5")

    async def test_a_call_can_be_cancelled(self) -> None:
        async with await cove.AsyncSandbox.create() as sandbox:
            tools = AsyncFunctions(sandbox)
            await tools.call("bash", {"command": "x=1"})
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(tools.call("bash", {"command": "sleep 60"}), 0.3)
            self.assertIn("went", await tools.call("bash", {"command": "echo went on"}))


if __name__ == "__main__":
    unittest.main()

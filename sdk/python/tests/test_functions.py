"""The tools of a model, which need real programs: a server of the provider local."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

import both_ways
import cove
import functions
from cove._async.code_execution import AsyncCodeExecution
from cove._sync.code_execution import CodeExecution
from cove.adapters.functions import AsyncFunctions, Functions

Tools, Executions = functions.Tools, functions.Executions
_waiting = both_ways.waiting("functions")


class WaitingTools(_waiting.Tools):  # type: ignore[name-defined,misc]
    pass


class WaitingExecutions(_waiting.Executions):  # type: ignore[name-defined,misc]
    pass


class Kinds(unittest.TestCase):
    def test_a_sandbox_of_the_other_way_is_refused(self) -> None:
        waiting, asynchronous = cove.Sandbox.__new__(cove.Sandbox), cove.AsyncSandbox.__new__(cove.AsyncSandbox)
        one: Any
        other: Any
        for one, other in ((Functions, asynchronous), (CodeExecution, asynchronous), (AsyncFunctions, waiting), (AsyncCodeExecution, waiting), (Functions, "x")):
            with self.subTest(one), self.assertRaises(cove.InvalidError) as caught:
                one(other)
            self.assertIn(type(other).__name__, caught.exception.message)


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

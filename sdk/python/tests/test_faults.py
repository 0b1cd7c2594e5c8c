"""What goes wrong between a caller and a server, both ways, and what only one of them has."""

from __future__ import annotations

import asyncio
import os
import threading
import unittest
from typing import AsyncIterator

import both_ways
import faults
from cove import AsyncClient, AsyncSandbox, Client, Sandbox
from serving import Server

Strangers, Servers = faults.Strangers, faults.Servers
_waiting = both_ways.waiting("faults")


class WaitingStrangers(_waiting.Strangers):  # type: ignore[name-defined,misc]
    pass


class WaitingServers(_waiting.Servers):  # type: ignore[name-defined,misc]
    pass


class Cancellation(unittest.IsolatedAsyncioTestCase):
    async def test_a_task_that_is_cancelled_ends_the_program(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client:
            sandbox = await AsyncSandbox.create(client=client)
            ways = {
                "plain": lambda: sandbox.commands.run("sleep 600"),
                "streamed": lambda: sandbox.commands.run("echo on; sleep 600", on_stdout=lambda _: None),
                "with input": lambda: sandbox.commands.run("cat; sleep 600", stdin=[b"x"]),
                "code": lambda: sandbox.code.run("loop", language="calc"),
            }
            for name, way in ways.items():
                task = asyncio.ensure_future(way())
                await self.until(client, sandbox, True, name)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError, msg=name):
                    await task
                await self.until(client, sandbox, False, name)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(sandbox.commands.run("sleep 600"), 0.3)
            await self.until(client, sandbox, False, "wait_for")

    async def until(self, client: AsyncClient, sandbox: AsyncSandbox, busy: bool, name: str) -> None:
        for _ in range(400):
            if (await client.session(sandbox.sandbox_id)).busy == busy:
                return
            await asyncio.sleep(0.05)
        self.fail(f"{name}: busy is not {busy}")

    async def test_others_go_on(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client:
            sandbox = await AsyncSandbox.create(client=client)
            go = asyncio.Event()

            async def held() -> AsyncIterator[bytes]:
                await go.wait()
                yield b"go\n"

            tasks = [asyncio.ensure_future(sandbox.commands.run(f"read x; echo {i}", stdin=held())) for i in range(20)]
            await self.until(client, sandbox, True, "all")
            for task in tasks[::2]:
                task.cancel()
            go.set()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual([x.stdout for x in done[1::2]], [f"{i}\n" for i in range(1, 20, 2)])  # type: ignore[union-attr]
            self.assertTrue(all(isinstance(x, asyncio.CancelledError) for x in done[::2]))


class Sharing(unittest.TestCase):
    def test_one_client_in_many_threads(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        wrong: "list[str]" = []
        with Client(server.url, server.key) as client:
            sandbox = Sandbox.create(client=client)

            def work(n: int) -> None:
                for i in range(20):
                    out = sandbox.commands.run(["echo", f"{n}.{i}"]).stdout
                    if out != f"{n}.{i}\n":
                        wrong.append(out)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(wrong, [])

    def test_one_client_in_a_child_of_this_process(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        with Client(server.url, server.key) as client:
            sandbox = Sandbox.create(client=client)
            sandbox.commands.run("true")
            child = os.fork()
            if child == 0:
                os._exit(0 if sandbox.commands.run("echo child").stdout == "child\n" else 1)
            self.assertEqual(sandbox.commands.run("echo parent").stdout, "parent\n")
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_one_client_in_two_loops(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        client = AsyncClient(server.url, server.key)

        async def once() -> str:
            async with await AsyncSandbox.create(client=client) as sandbox:
                said = (await sandbox.commands.run("echo hi")).stdout
            await client.aclose()
            return said

        self.assertEqual([asyncio.run(once()), asyncio.run(once())], ["hi\n", "hi\n"])


if __name__ == "__main__":
    unittest.main()

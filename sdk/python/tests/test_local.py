"""Local mode: a server that nobody started."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import shutil
import signal
import tempfile
import threading
import unittest
from unittest import mock

import cove
from serving import Server


class Local(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="cove")
        self.addCleanup(shutil.rmtree, self.dir)
        self.addCleanup(self.end)
        self.home = self.dir + "/home"
        settings = {"COVE_HOME": self.home, "SANDBOX_PROVIDER": "fake", "POOL_SIZE": "0", "COVE_DAEMON_IDLE": "60"}
        patch = mock.patch.dict(os.environ, settings)
        patch.start()
        self.addCleanup(patch.stop)

    def pid(self) -> int:
        return int(json.loads(pathlib.Path(self.home, "cove.lock").read_text())["pid"])

    def end(self) -> None:
        """End the server that was started on our behalf, and wait for its end."""
        try:
            pid = self.pid()
            handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
            os.kill(pid, signal.SIGTERM)
        except (OSError, ValueError):
            return
        if handle is not None:
            import select

            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(30_000)
            os.close(handle)

    def test_a_server_starts_by_itself_and_again(self) -> None:
        with cove.Sandbox.create() as sandbox:
            self.assertEqual(sandbox.commands.run("echo here").stdout, "here\n")
            first = self.pid()
        with cove.SandboxClient(mode="local") as client:
            client.get_or_create_session(user_id="u", thread_id="t")
            self.assertEqual(client.execute("echo there")["stdout"], "there\n")
            self.assertEqual(self.pid(), first)
            self.end()
            client.get_or_create_session(user_id="u", thread_id="t2")
            self.assertEqual(client.execute("echo again")["stdout"], "again\n")
            self.assertNotEqual(self.pid(), first)

    def test_many_at_once_start_one(self) -> None:
        seen: "list[str]" = []

        def work() -> None:
            with cove.Sandbox.create() as sandbox:
                seen.append(sandbox.session.raw["node_id"] + str(self.pid()))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((len(seen), len(set(seen))), (6, 1))

    def test_in_asyncio(self) -> None:
        async def once() -> str:
            async with await cove.AsyncSandbox.create(mode="local") as sandbox:
                return (await sandbox.commands.run("echo async")).stdout

        self.assertEqual(asyncio.run(once()), "async\n")

    def test_a_server_with_an_address_is_used_as_well(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        client = cove.Client(mode="local", home=server.dir + "/home")
        self.assertEqual(client.health().status, "healthy")
        client.close()
        self.assertFalse(os.path.exists(self.home))

    def test_what_keeps_a_server_from_starting_is_said(self) -> None:
        with mock.patch.dict(os.environ, {"SANDBOX_PROVIDER": "toaster"}), self.assertRaises(cove.CoveError) as caught:
            cove.Sandbox.create()
        self.assertIn("toaster", str(caught.exception))


if __name__ == "__main__":
    unittest.main()

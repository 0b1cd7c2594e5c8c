"""Local mode: a server that nobody started."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

import cove
from serving import Server

NOBODY = (1 << 22) + 1  # more than any process has


class Dying(threading.Thread):
    """Who serves a home on demand, and goes when somebody is about to start another."""

    def __init__(self, home: str, answer: bytes) -> None:
        super().__init__(daemon=True)
        self._home, self._answer = home, answer
        self._lock = open(home + "/cove.lock", "w")
        self._lock.write(json.dumps({"pid": NOBODY, "on_demand": True, "address": f"unix://{home}/cove.sock"}))
        self._lock.flush()
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(home + "/cove.sock")
        self._listener.listen()
        self._listener.settimeout(0.05)
        self.start()

    def run(self) -> None:
        while not os.path.exists(self._home + "/cove.spawn"):
            try:
                connection, _ = self._listener.accept()
            except socket.timeout:
                continue
            with connection:
                connection.settimeout(60)
                if connection.recv(65536) and self._answer:
                    connection.sendall(self._answer)
        self._listener.close()
        os.unlink(self._home + "/cove.sock")
        time.sleep(1)  # who was told how it is looks whether it still serves
        self._lock.close()


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

    def test_a_server_that_hangs_up_is_replaced(self) -> None:
        os.mkdir(self.home, 0o700)
        Dying(self.home, b"")
        with cove.Sandbox.create() as sandbox:
            self.assertEqual(sandbox.commands.run("echo here").stdout, "here\n")

    def test_a_server_that_is_about_to_end_is_replaced(self) -> None:
        os.mkdir(self.home, 0o700)
        body = b'{"status": "degraded"}'
        Dying(self.home, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        async def once() -> str:
            async with await cove.AsyncSandbox.create(mode="local") as sandbox:
                return (await sandbox.commands.run("echo here")).stdout

        self.assertEqual(asyncio.run(once()), "here\n")

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

"""What the server stopped by itself comes back when it is used: a server with room for
one session, of the provider fake, whose one language is calc."""

from __future__ import annotations

import unittest

from cove import Client, ConflictError, MicrosandboxWrapper, Sandbox, SandboxClient, WrapperConfig
from cove._sync.functions import Functions
from cove._told import told
from serving import Server


class Evicted(unittest.IsolatedAsyncioTestCase):
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(MSB_MAX_SESSIONS="1")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()

    def setUp(self) -> None:
        self.client = Client(self.server.url, self.server.key)
        self.addCleanup(self.client.close)

    def _evict(self, session_id: str) -> None:
        """Open another session for a moment, for which the server stops this one."""
        with Sandbox.create(client=self.client):
            session = self.client.session(session_id)
            self.assertEqual((session.status, session.cause), ("stopped", "evicted"))

    def test_a_sandbox(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            sandbox.files.write("kept", "x")
            self._evict(sandbox.sandbox_id)
            x = sandbox.commands.run("cat kept")
            self.assertEqual((x.stdout, x.session_restarted, x.session_recreated), ("x", True, False))
            self.assertFalse(sandbox.commands.run("true").session_restarted)
            self._evict(sandbox.sandbox_id)
            self.assertEqual(sandbox.files.read("kept"), "x")
            self.assertTrue(sandbox.code.run("1", language="calc").session_restarted)
            sandbox.stop()
            with self.assertRaises(ConflictError) as refused:
                sandbox.commands.run("true")
            self.assertIn("cove sandbox start", str(refused.exception.remedy))
            sandbox.start()
            self.assertFalse(sandbox.commands.run("true").session_restarted)

    def test_a_client_for_conversations(self) -> None:
        client = SandboxClient(client=self.client)
        session = client.get_or_create_session(user_id="ada", thread_id="one")
        self.assertEqual(session["spec"]["on_end"], "close")
        client.execute("echo x > kept")
        self._evict(session["session_id"])
        x = client.execute("cat kept")
        self.assertEqual((x["stdout"], x.get("session_restarted")), ("x\n", True))
        client.close_session()
        with Sandbox.create(client=self.client, user_id="ada", thread_id="two") as other:  # how it ends is not this client's to say
            self.assertEqual(client.get_or_create_session(user_id="ada", thread_id="two")["session_id"], other.sandbox_id)
            with self.assertRaises(ConflictError):
                client.get_or_create_session(user_id="ada", thread_id="two", on_end="close")

    async def test_a_wrapper(self) -> None:
        async with MicrosandboxWrapper(WrapperConfig(server_url=self.server.url, api_key=self.server.key)) as wrapper:
            first = await wrapper.execute_code("x = 42", template="base", language="calc")
            self._evict(first.session_id)
            x = await wrapper.execute_command("echo here", session_id=first.session_id)
            self.assertEqual((x.stdout, x.session_restarted), ("here\n", True))

    def test_functions_of_a_model(self) -> None:
        with Sandbox.create(client=self.client) as sandbox:
            functions = Functions(sandbox)
            functions.call("write_file", {"path": "kept", "content": "x"})
            self._evict(sandbox.sandbox_id)
            self.assertEqual(functions.call("read_file", {"path": "kept"}), "x")
            self.assertIn("[The sandbox had been stopped and was started again: its files are kept,", told(sandbox.commands.run("true"), 1000))
            self.assertEqual(told(sandbox.commands.run("true"), 1000), "(no output)")

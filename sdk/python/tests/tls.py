"""A server with TLS, in asyncio; test_tls runs it both ways. COVE_CA names whom to trust."""

from __future__ import annotations

import os
import ssl
import unittest

from cove import AsyncClient, AsyncSandbox, ServerConnectionError


class TLS(unittest.IsolatedAsyncioTestCase):
    async def test_a_server_with_tls(self) -> None:
        context = ssl.create_default_context(cafile=os.environ["COVE_CA"])
        async with AsyncClient(ssl_context=context) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                self.assertEqual((await sandbox.commands.run("echo safe")).stdout, "safe\n")
                piece = os.urandom(1 << 20)
                await sandbox.files.write("large", [piece] * 16)
                self.assertEqual(await sandbox.files.read_bytes("large"), piece * 16)
                heard = []
                await sandbox.commands.run("echo 1; echo 2", on_stdout=heard.append)
                self.assertEqual("".join(heard), "1\n2\n")
                # Input is sent while output comes, in one stream of TLS.
                heard.clear()
                await sandbox.commands.run("cat", stdin=[b"0123456789abcdef" * 4096] * 64, max_output=64 << 20, on_stdout=heard.append)
                self.assertEqual(sum(map(len, heard)), 4 << 20)

    async def test_nobody_else_is_trusted(self) -> None:
        async with AsyncClient() as client:
            with self.assertRaises(ServerConnectionError):
                await client.stats()

    async def test_tls_that_is_not_spoken(self) -> None:
        async with AsyncClient(os.environ["COVE_URL"].replace("https", "http")) as client:
            with self.assertRaises(ServerConnectionError):
                await client.stats()

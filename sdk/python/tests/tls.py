"""A server with TLS, in asyncio; test_tls runs it both ways. COVE_CA names whom to trust."""

from __future__ import annotations

import logging
import os
import ssl
import unittest
from typing import List

from cove import AsyncClient, AsyncSandbox, ServerConnectionError, UnsupportedError
from cove._address import parse_address
from cove._async.stream import AsyncStream


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

    async def test_a_connection_has_one_end(self) -> None:
        context = ssl.create_default_context(cafile=os.environ["COVE_CA"])
        said: List[logging.LogRecord] = []
        listens = logging.Handler()
        listens.emit = said.append  # type: ignore[assignment,method-assign]
        logging.getLogger().addHandler(listens)
        self.addCleanup(logging.getLogger().removeHandler, listens)
        stream = await AsyncStream.connect(parse_address(os.environ["COVE_URL"]), 30.0, context)
        with self.assertRaises(UnsupportedError) as caught:
            stream.finish()
        self.assertTrue(caught.exception.remedy)
        await stream.send(b"GET /health HTTP/1.1\r\nHost: cove\r\nConnection: close\r\n\r\n")
        got = b""
        while True:
            piece = await stream.recv(30.0)
            if not piece:
                break
            got += piece
        stream.abort()
        self.assertIn(b"200 OK", got)
        self.assertEqual([one.getMessage() for one in said if one.levelno >= logging.WARNING and "Executing" not in one.getMessage()], [])

    async def test_nobody_else_is_trusted(self) -> None:
        async with AsyncClient() as client:
            with self.assertRaises(ServerConnectionError):
                await client.stats()

    async def test_tls_that_is_not_spoken(self) -> None:
        async with AsyncClient(os.environ["COVE_URL"].replace("https", "http")) as client:
            with self.assertRaises(ServerConnectionError):
                await client.stats()

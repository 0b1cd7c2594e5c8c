"""What needs real programs, in asyncio; test_programs runs it both ways."""

from __future__ import annotations

import unittest
from typing import List

from cove import AsyncSandbox, CodeExecutionError, ServerConnectionError
from cove._async.stream import pause

SERVER = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8123, bind='127.0.0.1')"


class Programs(unittest.IsolatedAsyncioTestCase):
    async def test_python_remembers(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            self.assertTrue((await sandbox.code.run("import math\nx = 49")).success)
            r = await sandbox.code.run("print('root'); math.sqrt(x)")
            self.assertEqual((r.stdout, r.text), ("root\n", "7.0"))
            with self.assertRaises(CodeExecutionError) as caught:
                (await sandbox.code.run("{}['k']")).raise_for_status()
            self.assertIn("KeyError", str(caught.exception))
            late = await sandbox.code.run("import time; time.sleep(60)", timeout=0.5)
            self.assertEqual((late.status, late.exit_code), ("timeout", -1))

    async def test_output_comes_while_the_program_runs(self) -> None:
        heard: List[str] = []
        async with await AsyncSandbox.create() as sandbox:
            process = await sandbox.commands.start("echo ready; read x; echo $x", keep_stdin=True)
            async with process.output() as output:
                async for piece in output:
                    heard.append(piece.text)
                    if "ready" in piece.text:
                        await process.send_stdin("go\n")
        self.assertEqual("".join(heard), "ready\ngo\n")

    async def test_input_and_output_pass_each_other(self) -> None:
        piece, heard = b"0123456789abcdef" * (1 << 12), [0]

        def count(text: str) -> None:
            heard[0] += len(text)

        async with await AsyncSandbox.create() as sandbox:
            # More than all buffers on the way hold: who sends must listen meanwhile.
            x = await sandbox.commands.run("cat", stdin=(piece for _ in range(256)), max_output=64 << 20, on_stdout=count)
            self.assertEqual((x.exit_code, heard[0]), (0, 256 * len(piece)))
            # A program that wants no more ends, however much there is.
            x = await sandbox.commands.run("head -c 5", stdin=(piece for _ in range(1 << 20)))
            self.assertEqual((x.exit_code, x.stdout), (0, "01234"))
            self.assertTrue((await sandbox.commands.run("true")).ok)

    async def test_a_terminal(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            terminal = await sandbox.terminals.create(cols=111, rows=33)
            await terminal.send_stdin("stty size; exit 6\n")
            x = await terminal.wait()
            self.assertEqual(x.exit_code, 6)
            self.assertIn("33 111", x.stdout)

    async def test_a_port(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            await sandbox.files.write("hello.txt", "from inside")
            await sandbox.commands.start(["python3", "-c", SERVER])
            for _ in range(200):
                try:
                    port = await sandbox.ports.connect(8123)
                    break
                except Exception as err:
                    self.assertNotIsInstance(err, ServerConnectionError)
                await pause(0.05)
            else:
                self.fail("nobody listens")
            async with port:
                await port.send(b"GET /hello.txt HTTP/1.0\r\n\r\n")
                data = b""
                while True:
                    piece = await port.recv(10.0)
                    if not piece:
                        break
                    data += piece
            self.assertIn(b"200 OK", data)
            self.assertTrue(data.endswith(b"from inside"))

"""What needs real programs: a server of the provider local."""

from __future__ import annotations

import asyncio
import os
import signal
import unittest
from typing import AsyncIterator

import both_ways
import cove
import programs
from serving import Server

Programs = programs.Programs
_waiting = both_ways.waiting("programs")


class WaitingPrograms(_waiting.Programs):  # type: ignore[name-defined,misc]
    pass


class Following(unittest.IsolatedAsyncioTestCase):
    async def test_input_that_depends_on_output(self) -> None:
        ready = asyncio.Event()

        async def answer() -> AsyncIterator[bytes]:
            await ready.wait()
            yield b"it\n"

        async with await cove.AsyncSandbox.create() as sandbox:
            x = await sandbox.commands.run("echo ready; read x; echo got $x", stdin=answer(), on_stdout=lambda _: ready.set())
            self.assertEqual(x.stdout, "ready\ngot it\n")


class Restart(unittest.TestCase):
    """Programs and their output outlive a server that is killed, and one that is told to end."""

    def setUp(self) -> None:
        self.server = Server("local")
        self.addCleanup(self.server.close)
        self.client = cove.Client(self.server.url, self.server.key)
        self.addCleanup(self.client.close)

    def restarted(self, process: cove.Process, with_signal: int) -> None:
        self.server.end(with_signal)
        self.server.start()
        process.send_stdin("go\n")

    def test_output_goes_on(self) -> None:
        with cove.Sandbox.create(client=self.client) as sandbox:
            # Who tells it to end waits until it cuts the stream, which is 10 s.
            for how in (signal.SIGKILL, signal.SIGTERM):
                heard = b""
                process = sandbox.commands.start("echo one; read x; echo two; exit 3", keep_stdin=True)
                with process.output(resume=60.0) as output:
                    for piece in output:
                        heard += piece.data
                        if heard == b"one\n":
                            self.restarted(process, how)
                assert output.result is not None
                self.assertEqual((heard, output.result.exit_code, output.offset), (b"one\ntwo\n", 3, 8), how)

    def test_a_wait_goes_on(self) -> None:
        with cove.Sandbox.create(client=self.client) as sandbox:
            process = sandbox.commands.start("echo one; read x; echo two; exit 3", keep_stdin=True)

            def told(text: str) -> None:
                if text == "one\n":
                    self.restarted(process, signal.SIGKILL)

            x = process.wait(on_stdout=told, resume=60.0)
            self.assertEqual((x.stdout, x.exit_code), ("one\ntwo\n", 3))


class Tool(unittest.TestCase):
    def test_a_model_gets_a_text(self) -> None:
        self.assertIn("42", cove.run_python_code("print(6 * 7)", timeout=20))
        self.assertIn("timed out", cove.run_python_code("while True: pass", timeout=1))
        self.assertIn("syntax error", cove.run_python_code("print(", timeout=20))
        self.assertIn("blocked import: subprocess", cove.run_python_code("import subprocess", timeout=20))

    def test_a_result(self) -> None:
        with cove.get_sandbox("local") as sandbox:
            r = sandbox.execute("import sys; print('out'); print('err', file=sys.stderr)", timeout=20)
            self.assertEqual((r.stdout, r.exit_code, r.success), ("out\n", 0, True))
            self.assertIn("err", r.stderr)
            self.assertEqual(r.meta["runtime"], "local")
            self.assertEqual(sandbox.execute("raise SystemExit(3)").exit_code, 3)
            with open(os.devnull, "w") as nothing:
                print(sandbox.execute("open('kept', 'w').close()").text, file=nothing)
            self.assertIn("FileNotFoundError", sandbox.execute("open('kept')").stderr)


class Flavors(unittest.IsolatedAsyncioTestCase):
    async def test_two_languages(self) -> None:
        async with cove.MicrosandboxWrapper(cove.WrapperConfig(server_url=os.environ["COVE_URL"])) as wrapper:
            one = await wrapper.execute_code("print('py')", template="python", flavor=cove.SandboxFlavor.MEDIUM)
            two = await wrapper.execute_code("console.log('js')", template="node")
            self.assertEqual((one.stdout, two.stdout), ("py\n", "js\n"))


if __name__ == "__main__":
    unittest.main()

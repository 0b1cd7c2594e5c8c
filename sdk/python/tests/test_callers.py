"""What callers do that nobody asked them to, both ways, and how processes end that use the SDK."""

from __future__ import annotations

import ast
import asyncio
import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import unittest
from typing import Any, List

import both_ways
import callers
import cove
from cove import _errors, _models
from cove._async.stream import AsyncLock

Endings, Arguments, Transfers = callers.Endings, callers.Arguments, callers.Transfers
_waiting = both_ways.waiting("callers")
SOURCE = pathlib.Path(cove.__file__).parent
END_TIME = 60.0  # seconds


class WaitingEndings(_waiting.Endings):  # type: ignore[name-defined,misc]
    pass


class WaitingArguments(_waiting.Arguments):  # type: ignore[name-defined,misc]
    pass


class WaitingTransfers(_waiting.Transfers):  # type: ignore[name-defined,misc]
    pass


WAITING = """
import sys, cove
sandbox = cove.Sandbox.connect(sys.argv[1])
{}
"""
ASYNCIO = """
import asyncio, sys, cove
async def main():
    sandbox = await cove.AsyncSandbox.connect(sys.argv[1])
    {}
asyncio.run(main())
"""
# What is left open in each way.
STREAMS = ["commands.run('true')", "files.open('big')", "files.watch()"]


class Callbacks(unittest.IsolatedAsyncioTestCase):
    async def test_who_has_to_be_awaited_is_told_of_nothing(self) -> None:
        class Told:
            async def method(self, *_: object) -> None: ...

            async def __call__(self, *_: object) -> None: ...

        async with await cove.AsyncSandbox.create() as sandbox:
            for to in (Told().method, Told()):
                calls: List[Any] = [
                    lambda: sandbox.commands.run("touch ran", on_stdout=to),
                    lambda: sandbox.code.run("1", language="calc", on_result=to),
                    lambda: sandbox.files.write("ran", b"x", on_progress=to),
                    lambda: sandbox.files.download("ran", "/nowhere/ran", on_progress=to),
                    lambda: cove.AsyncSandbox.create(client=sandbox.client, on_queue=to),
                ]
                for call in calls:
                    with self.assertRaises(cove.InvalidError) as caught:
                        await call()
                    self.assertIn("async", caught.exception.message)
            self.assertEqual(await sandbox.files.list(), [])


class Processes(unittest.TestCase):
    """Programs of their own, as users have them."""

    def setUp(self) -> None:
        self.sandbox = cove.Sandbox.create()
        self.addCleanup(self.sandbox.close)
        self.addCleanup(self.sandbox.kill)

    def began(self, code: str) -> "subprocess.Popen[bytes]":
        env = {**os.environ, "PYTHONWARNINGS": ""}
        return subprocess.Popen([sys.executable, "-c", code, self.sandbox.sandbox_id], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def until(self, busy: bool) -> None:
        for _ in range(600):
            if self.sandbox.info().busy == busy:
                return
            threading.Event().wait(0.05)
        self.fail(f"busy is not {busy}")

    def test_ctrl_c_ends_what_runs(self) -> None:
        for code in (
            WAITING.format("sandbox.commands.run('echo > on; sleep 600')"),
            WAITING.format("sandbox.commands.run('echo > on; sleep 600', on_stdout=print)"),
            WAITING.format("sandbox.commands.start('echo > on; sleep 600').wait()"),
            ASYNCIO.format("await sandbox.commands.run('echo > on; sleep 600')"),
            ASYNCIO.format("await sandbox.commands.run('echo > on; sleep 600', stdin=[b'x'])"),
        ):
            with self.subTest(code), self.began(code) as program:
                for _ in range(600):
                    if self.sandbox.files.exists("on"):
                        break
                    threading.Event().wait(0.05)
                program.send_signal(signal.SIGINT)
                _, said = program.communicate(timeout=END_TIME)
                self.assertIn(b"KeyboardInterrupt", said.splitlines()[-1])
                self.assertNotEqual(program.returncode, 0)
                for left in self.sandbox.commands.list():
                    if left.running:
                        self.sandbox.commands.connect(left.pid).kill()
                self.until(busy=False)
                self.sandbox.files.remove("on")

    def test_a_program_that_ends_with_streams_open(self) -> None:
        self.sandbox.files.write("big", b"x" * (8 << 20))
        waiting = "\n".join(f"kept{i} = sandbox.{one}" for i, one in enumerate(STREAMS))
        in_asyncio = "\n    ".join(f"kept{i} = await sandbox.{one}" for i, one in enumerate(STREAMS))
        follow = "follow = sandbox.commands.start('echo one; sleep 600').output(); next(follow)"
        follow_async = "follow = (await sandbox.commands.start('echo one; sleep 600')).output(); await follow.__anext__()"
        for code in (WAITING.format(waiting + "\n" + follow), ASYNCIO.format(in_asyncio + "\n    " + follow_async)):
            with self.subTest(code), self.began(code) as program:
                out, said = program.communicate(timeout=END_TIME)
                self.assertEqual((program.returncode, out, said), (0, b"", b""))

    def test_memory_stays_as_it_is_however_long_a_file_is(self) -> None:
        # A child's most is at first that of who made it: only what is beyond it counts.
        head = "import resource\nmost = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\npiece = b'x' * (1 << 16)\n"
        waiting = "sandbox.files.write('warm', [piece]); was = most()\nsandbox.files.write('long', (piece for _ in range(1024)))\n"
        waiting += "n = sum(map(len, sandbox.files.open('long')))\nsandbox.commands.run('cat', stdin=(piece for _ in range(256)))\nprint(n, most() - was)"
        in_asyncio = "await sandbox.files.write('warm', [piece]); was = most()\n    await sandbox.files.write('long', (piece for _ in range(1024)))\n"
        in_asyncio += "    n = sum([len(p) async for p in await sandbox.files.open('long')])\n    await sandbox.commands.run('cat', stdin=(piece for _ in range(256)))\n    print(n, most() - was)"
        for code in (head + WAITING.format(waiting), head + ASYNCIO.format(in_asyncio)):
            with self.began(code) as program:
                out, said = program.communicate(timeout=END_TIME)
            size, more = map(int, out.split() or [0, 0])
            self.assertEqual(size, 64 << 20, said)
            self.assertLess(more, 16 << 10, "KiB")

    def test_input_that_never_comes_keeps_no_program_from_its_end(self) -> None:
        code = ASYNCIO.format(
            "import os\n    r, w = os.pipe()\n    os.write(w, b'some\\n')\n    source = os.fdopen(r, 'rb')\n"
            "    x = await sandbox.commands.run('read x; echo got $x', stdin=source)\n    print(x.stdout, end='')"
        )
        with self.began(code) as program:
            out, said = program.communicate(timeout=END_TIME)
        self.assertEqual((program.returncode, out, said), (0, b"got some\n", b""))

    def test_input_from_files_of_all_kinds(self) -> None:
        for give, want in (("/dev/null", ""), (__file__, pathlib.Path(__file__).read_text())):
            with open(give, "rb") as file, open(give, "rb", buffering=0) as raw, open(give) as text:
                for source in (file, raw, text):
                    self.assertEqual(self.sandbox.commands.run("cat", stdin=source).stdout, want)

                async def once(give: str = give) -> "list[str]":
                    sandbox = await cove.AsyncSandbox.connect(self.sandbox.sandbox_id)
                    with open(give, "rb") as file, open(give, "rb", buffering=0) as raw, open(give) as text:
                        said = [(await sandbox.commands.run("cat", stdin=source)).stdout for source in (file, raw, text)]
                    await sandbox.aclose()
                    return said

                self.assertEqual(asyncio.run(once()), [want] * 3)

    def test_a_fork_does_not_end_the_streams_of_its_parent(self) -> None:
        process = self.sandbox.commands.start("echo one; read x; echo $x", keep_stdin=True)
        with process.output() as output:
            self.assertEqual(next(output).text, "one\n")
            child = os.fork()
            if child == 0:
                output.close()
                self.sandbox.client.close()
                os._exit(0 if self.sandbox.commands.run("echo child").stdout == "child\n" else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            process.send_stdin("two\n")
            self.assertEqual(next(output).text, "two\n")


class Copies(unittest.TestCase):
    def test_exceptions_and_answers_can_be_sent_to_other_processes(self) -> None:
        x = _models.execution({"exit_code": 1, "status": "error", "outcome": "exited", "stdout": "a"})
        for kind in {*_errors._BY_CODE.values(), *_errors._BY_REASON.values()}:
            err = kind("what", reason="why", remedy="do", details={"result": x}, request_id="r")
            for back in (pickle.loads(pickle.dumps(err)), copy.deepcopy(err)):
                self.assertEqual((type(back), str(back), back.code, back.reason, back.details, back.request_id), (kind, str(err), err.code, "why", {"result": x}, "r"))

    def test_clients_cannot(self) -> None:
        sandbox = cove.Sandbox(cove.Client("http://h", "secret"), cove.Session(session_id="s", status="running"))
        for one in (sandbox.client, sandbox, sandbox.files, cove.AsyncClient("http://h", "secret"), cove.SandboxClient("remote", "http://h")):
            with self.assertRaises(TypeError) as caught:
                pickle.dumps(one)
            self.assertIn("make another one", str(caught.exception))


class Loops(unittest.TestCase):
    def test_a_lock_in_two_loops(self) -> None:
        lock = AsyncLock()

        async def held() -> None:
            async with lock:
                await asyncio.sleep(0)

        async def contended() -> None:
            await asyncio.gather(held(), held(), held())

        for _ in range(2):
            asyncio.run(contended())

    def test_one_client_in_two_loops_at_a_time(self) -> None:
        client, wrong = cove.AsyncClient(), []

        async def work() -> None:
            for _ in range(20):
                await client.health()

        def loop() -> None:
            try:
                asyncio.run(work())
            except BaseException as err:
                wrong.append(err)

        threads = [threading.Thread(target=loop) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        asyncio.run(client.aclose())


class Syntax(unittest.TestCase):
    def test_the_oldest_python_can_read_it(self) -> None:
        for path in sorted(SOURCE.rglob("*.py")):
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()

"""The SDK against a server of the provider fake. test_sandbox has the same without asyncio."""

from __future__ import annotations

import io
import os
import pathlib
import tempfile
import unittest
from typing import Any, List

from cove import AsyncClient, AsyncSandbox, CommandExecutionError, InvalidError, NotFoundError, SessionNotFoundError
from cove._async.stream import pause


class Programs(unittest.IsolatedAsyncioTestCase):
    async def test_a_context_manager_ends_the_session(self) -> None:
        async with await AsyncSandbox.create(project_name="tests") as sandbox:
            self.assertEqual((await sandbox.info()).project_name, "tests")
        async with AsyncClient() as client:
            with self.assertRaises(SessionNotFoundError):
                await client.session(sandbox.sandbox_id)

    async def test_text_that_is_cut_in_a_character_arrives_whole(self) -> None:
        heard: List[str] = []
        async with await AsyncSandbox.create() as sandbox:
            x = await sandbox.commands.run("printf '\\303'; printf '\\251\\377'", on_stdout=heard.append)
            self.assertEqual("".join(heard), "é\ufffd")
            self.assertEqual(x.stdout_data, b"\xc3\xa9\xff")
            self.assertEqual(x.stdout, "é\ufffd")

    async def test_input_of_any_kind(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            for stdin in ("text", b"text", io.BytesIO(b"text"), io.StringIO("text"), [b"te", b"xt"]):
                self.assertEqual((await sandbox.commands.run("cat", stdin=stdin)).stdout, "text")
            long = b"0123456789abcdef" * (3 << 16)  # more than goes along in a request
            self.assertEqual((await sandbox.commands.run("wc -c", stdin=long)).stdout.strip(), str(len(long)))
            # A program that does not read its input ends all the same.
            self.assertEqual((await sandbox.commands.run("exit 5", stdin=[b"x"] * 3)).exit_code, 5)
            self.assertEqual(await sandbox.commands.list(), [])
            with self.assertRaises(InvalidError):
                await sandbox.commands.run("cat", stdin=7)

    async def test_a_source_that_fails_ends_the_program(self) -> None:
        for why in (ZeroDivisionError(), TimeoutError("a slow disk"), BrokenPipeError("a pipe")):
            async with await AsyncSandbox.create() as sandbox:

                async def broken(sandbox: AsyncSandbox = sandbox, why: Exception = why) -> Any:
                    yield b"x"
                    while not await sandbox.files.exists("began"):
                        await pause(0.05)
                    raise why

                with self.assertRaises(type(why)) as caught:
                    await sandbox.commands.run("echo > began; cat; sleep 600", stdin=broken())
                self.assertIs(caught.exception, why)
                for _ in range(400):
                    if not (await sandbox.info()).busy:
                        break
                    await pause(0.05)
                else:
                    self.fail("the program runs on")

    async def test_a_failure_as_an_exception(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            with self.assertRaises(CommandExecutionError) as caught:
                (await sandbox.commands.run("echo why >&2; exit 7")).raise_for_status()
            self.assertIn("exit code 7: why", str(caught.exception))

    async def test_bad_arguments(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            for command in (7, None, ["a", 1], {"a": 1}):
                with self.assertRaises(InvalidError):
                    await sandbox.commands.run(command)  # type: ignore[arg-type]
            with self.assertRaises(InvalidError):
                await sandbox.commands.run("x", timeout=-1)
            with self.assertRaises(InvalidError):
                await sandbox.commands.run("x", timeout=float("nan"))
            with self.assertRaises(InvalidError):
                await sandbox.files.write("x", 7)
            with self.assertRaises(InvalidError):
                await AsyncSandbox.create(client=sandbox.client, nonsense=True)
            self.assertEqual((await sandbox.commands.run("echo on")).stdout, "on\n")

    async def test_a_background_program(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            process = await sandbox.commands.start("echo one; echo two >&2; read x; echo $x", keep_stdin=True, tag="t")
            async with process.output() as output:
                async for piece in output:
                    if piece.text.endswith("two\n"):
                        await process.send_stdin("three\n", eof=True)
            assert output.result is not None
            self.assertEqual((output.result.stdout, output.result.stderr), ("one\nthree\n", "two\n"))
            again = await sandbox.commands.connect(process.pid)
            heard: List[str] = []
            self.assertTrue((await again.wait(on_stdout=heard.append)).ok)
            self.assertEqual("".join(heard), "one\nthree\n")
            with self.assertRaises(NotFoundError):
                await sandbox.commands.connect(99999)

    async def test_a_program_stays_in_its_session(self) -> None:
        async with await AsyncSandbox.create(timeout_minutes=0.02, fixed_end=True, on_end="close") as sandbox:
            process = await sandbox.commands.start("sleep 600")
            sandbox._request = {}  # what takes its place does not end so soon
            for _ in range(1200):
                if (await sandbox.commands.run("true")).session_recreated:
                    break
                await pause(0.05)
            other = await sandbox.commands.start("sleep 600")
            self.assertEqual(other.pid, process.pid)
            with self.assertRaises(SessionNotFoundError):
                await process.kill()
            self.assertEqual([p.running for p in await sandbox.commands.list()], [True])


class Files(unittest.IsolatedAsyncioTestCase):
    async def test_a_large_file_is_streamed_both_ways(self) -> None:
        size = 24 << 20
        passed: List[int] = []
        with tempfile.TemporaryDirectory() as dir:
            local = pathlib.Path(dir, "large")
            with open(local, "wb") as f:
                for _ in range(size >> 20):
                    f.write(os.urandom(1 << 20))
            async with await AsyncSandbox.create() as sandbox:
                await sandbox.files.upload(local, "large", on_progress=lambda done, total: passed.append(done))
                self.assertEqual(passed[-1], size)
                self.assertGreater(len(passed), 100)
                passed.clear()
                await sandbox.files.download("large", local.with_suffix(".back"), on_progress=lambda done, total: passed.append(done))
                self.assertEqual(passed[-1], size)
            self.assertEqual(local.read_bytes(), local.with_suffix(".back").read_bytes())
            self.assertEqual(sorted(os.listdir(dir)), ["large", "large.back"])

    async def test_a_download_that_fails_leaves_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            async with await AsyncSandbox.create() as sandbox:
                with self.assertRaises(NotFoundError):
                    await sandbox.files.download("nowhere", dir + "/x")

                def stop(done: int, total: Any) -> None:
                    raise ZeroDivisionError

                await sandbox.files.write("x", b"x" * 100_000)
                with self.assertRaises(ZeroDivisionError):
                    await sandbox.files.download("x", dir + "/x", on_progress=stop)
                self.assertEqual(len(await sandbox.files.read_bytes("x")), 100_000)
            self.assertEqual(os.listdir(dir), [])

    async def test_what_the_callers_own_file_raises_stays_as_it_is(self) -> None:
        def broken(err: Exception) -> Any:
            yield b"x"
            raise err

        async with await AsyncSandbox.create() as sandbox:
            for err in (OSError(5, "a bad disk"), TimeoutError("a slow disk"), BrokenPipeError("a pipe"), ConnectionResetError("another server"), OverflowError("much")):
                with self.assertRaises(type(err)) as caught:
                    await sandbox.files.write("x", broken(err))
                self.assertIs(caught.exception, err)
            with open(os.devnull, "wb") as file, self.assertRaises(io.UnsupportedOperation):
                await sandbox.files.write("x", file)
            self.assertFalse(await sandbox.files.exists("x"))

    async def test_half_of_a_download(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            await sandbox.files.write("x", b"x" * (8 << 20))
            async with await sandbox.files.open("x") as download:
                async for piece in download:
                    self.assertTrue(piece)
                    break
            self.assertTrue(await sandbox.files.exists("x"))
            self.assertFalse(await sandbox.files.exists("y"))

    async def test_archives(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            await sandbox.files.write("d/a", "one")
            async with await sandbox.files.archive("d") as tar:
                data = await tar.read()
            await sandbox.files.unpack(data, "e")
            self.assertEqual(await sandbox.files.read("e/a"), "one")

    async def test_a_watch(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            async with await sandbox.files.watch() as watch:
                async for change in watch:
                    if change.kind == "watching":
                        await sandbox.files.write("new", "x")
                    elif change.path.endswith("/new"):
                        break

    async def test_links(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            await sandbox.files.write("a", "one")
            link = await sandbox.files.url("a", ttl_seconds=60)
            self.assertTrue(link.url.startswith("http") and link.expires_at)


class Rest(unittest.IsolatedAsyncioTestCase):
    async def test_code_as_it_comes(self) -> None:
        out: List[str] = []
        values: List[str] = []
        async with await AsyncSandbox.create() as sandbox:
            context = await sandbox.code.create_context(language="calc")
            r = await sandbox.code.run('print(1)\n6 * 7', context=context, on_stdout=out.append, on_result=lambda v: values.append(v.text))
            self.assertEqual((r.text, out, values), ("42", ["1\n"], ["42"]))
            self.assertIn(context.id, [c.id for c in await sandbox.code.contexts()])
            await sandbox.code.restart(context)
            await sandbox.code.remove_context(context)

    async def test_numbers_and_tasks(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            self.assertGreaterEqual((await sandbox.client.stats()).active_sessions, 1)
            self.assertGreaterEqual((await sandbox.stats()).pids, 0)
            self.assertEqual((await sandbox.client.health()).status, "healthy")
            self.assertIn("expiry", (await sandbox.client.maintenance())["tasks"])
            with self.assertRaises(InvalidError):
                await sandbox.client.maintenance("explode")

    async def test_a_key_makes_a_session_once(self) -> None:
        async with AsyncClient() as client:
            one = await AsyncSandbox.create(client=client, idempotency_key="k" + str(os.getpid()) + __name__)
            two = await AsyncSandbox.create(client=client, idempotency_key="k" + str(os.getpid()) + __name__)
            self.assertEqual(one.sandbox_id, two.sandbox_id)
            await one.kill()

    async def test_lists_longer_than_a_page(self) -> None:
        async with AsyncClient() as client:
            made = [await AsyncSandbox.create(client=client, project_name="page" + __name__) for _ in range(5)]
            self.assertEqual(len(await client.sessions(project_name="page" + __name__, limit=3)), 3)
            self.assertEqual(len([s async for s in client.pages("/api/sandboxes", {"project_name": "page" + __name__})]), 5)
            for sandbox in made:
                await sandbox.kill()


if __name__ == "__main__":
    unittest.main()

"""What callers do that nobody asked them to, in asyncio; test_callers runs it both ways."""

from __future__ import annotations

import io
import os
import pathlib
import stat
import tempfile
import unittest
from typing import Any, List
from unittest import mock

from cove import AsyncClient, AsyncSandbox, ConfigurationError, InvalidError, NotFoundError, ResourceLimitError, ServerConnectionError, SessionNotFoundError
from cove._async import client as module
from cove._async import files as files_module


class Endings(unittest.IsolatedAsyncioTestCase):
    async def test_closed_twice_and_used_again(self) -> None:
        client = AsyncClient()
        async with await AsyncSandbox.create(client=client) as sandbox:
            for _ in range(2):
                await client.aclose()
                await sandbox.aclose()
                self.assertEqual((await sandbox.commands.run("echo on")).stdout, "on\n")
            process = await sandbox.commands.start("echo one; sleep 600")
            output = process.output()
            self.assertEqual((await output.__anext__()).text, "one\n")
            await sandbox.files.write("x", b"x" * (1 << 20))
            for stream in (output, await sandbox.files.open("x"), await sandbox.files.watch()):
                for _ in range(2):
                    await stream.aclose()
                self.assertEqual([one async for one in stream], [])
        with self.assertRaises(SessionNotFoundError):
            await sandbox.kill()
        async with sandbox:  # leaving what has ended is no fault
            pass
        await client.aclose()

    async def test_a_port_that_was_closed(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            server = await sandbox.commands.start("serve 8123 hello")
            async with server.output() as output:
                async for _ in output:
                    break
            port = await sandbox.ports.connect(8123)
            for _ in range(2):
                await port.aclose()
            with self.assertRaises(OSError):
                await port.send(b"x")


class Arguments(unittest.IsolatedAsyncioTestCase):
    async def test_what_is_of_no_use_is_said(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            process = await sandbox.commands.start("sleep 600", keep_stdin=True)
            files, commands, code = sandbox.files, sandbox.commands, sandbox.code
            half = "half \ud800 a character"
            wrong: Any = [
                lambda bad: files.read(bad),
                lambda bad: files.write(bad, "x"),
                lambda bad: files.stat(bad),
                lambda bad: files.remove(bad),
                lambda bad: files.make_dir(bad),
                lambda bad: files.move(bad, "x"),
                lambda bad: files.move("x", bad),
                lambda bad: files.list(bad),
                lambda bad: files.watch(bad),
                lambda bad: files.archive(bad),
                lambda bad: files.url(bad),
                lambda bad: files.unpack(b"", bad),
                lambda bad: files.write("x", bad),
                lambda bad: files.write("x", "x", mode=[bad]),
                lambda bad: files.write("x", "x", on_progress=[bad]),
                lambda bad: sandbox.set_network([bad]),
                lambda bad: sandbox.client.run_python([bad]),
                lambda bad: commands.run(bad),
                lambda bad: commands.run("true", on_stdout=[bad]),
                lambda bad: process.wait(on_stderr=[bad]),
                lambda bad: code.run("1", on_result=[bad]),
                lambda bad: commands.run("true", workdir=bad),
                lambda bad: commands.run("true", env=bad),
                lambda bad: commands.run("true", timeout=[bad]),
                lambda bad: commands.run("cat", stdin=bad),
                lambda bad: commands.start("cat", stdin=bad),
                lambda bad: commands.output(bad),
                lambda bad: process.send_stdin(bad),
                lambda bad: process.signal(bad),
                lambda bad: commands.run("true", env={"A": None, "B": bad}),
                lambda bad: sandbox.set_network(bad),
                lambda bad: sandbox.client.sessions(limit=bad if bad != 7 else -7),
                lambda bad: code.run(bad, language="calc"),
                lambda bad: code.run([bad], language="calc"),
                lambda bad: code.run("1", language=bad),
                lambda bad: code.run("1", context=bad),
                lambda bad: code.restart(bad),
                lambda bad: AsyncSandbox.connect(bad, client=sandbox.client),
                lambda bad: AsyncSandbox.create(client=sandbox.client, env=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, metadata=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, volumes=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, volumes=[bad]),
                lambda bad: AsyncSandbox.create(client=sandbox.client, ports=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, network=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, flavor=bad),
                lambda bad: AsyncSandbox.create(client=sandbox.client, idempotency_key=bad),
            ]
            for i, call in enumerate(wrong):
                for bad in (7, half, object()):
                    with self.subTest(call=i, bad=bad), self.assertRaises((InvalidError, NotFoundError)):
                        await call(bad)
            with self.assertRaises(InvalidError):
                await code.run(None, language="calc")  # type: ignore[arg-type]
            self.assertEqual(await files.list(), [])
            self.assertEqual((await commands.run("echo on")).stdout, "on\n")

    async def test_settings_that_are_of_no_use_are_said(self) -> None:
        wrong: Any = [{name: bad} for name in ("connect_timeout", "silence", "request_timeout") for bad in (0, -1, float("nan"), float("inf"), "1")]
        wrong += [{"connect_timeout": None}, {"silence": None}, {"url": 7}, {"url": b"http://h"}, {"url": "http://h:0"}, {"url": "unix:///a%00b"}, {"api_key": b"k"}, {"api_key": "k\n"}]
        for given in wrong:
            with self.subTest(given), self.assertRaises(ConfigurationError) as caught:
                AsyncClient(**{"url": "http://h", **given})
            self.assertTrue(caught.exception.details["field"])

    async def test_places_where_no_server_can_be(self) -> None:
        for url, said in {"unix:///" + "x" * 200: "path too long", "http://no.such.host.invalid": "", "http://127.0.0.1:1": "refused"}.items():
            async with AsyncClient(url, connect_timeout=20) as client:
                with self.assertRaises(ServerConnectionError) as caught:
                    await client.stats()
            self.assertIn(said, caught.exception.message)

    async def test_a_home_that_cannot_be_one(self) -> None:
        for home in ("/dev/null/home", "nul\0byte", "/tmp/" + "x" * 100):
            async with AsyncClient(mode="local", home=home) as client:
                with self.assertRaises(ConfigurationError) as caught:
                    await client.stats()
            self.assertIn("COVE_HOME", caught.exception.message)

    async def test_names_of_all_kinds(self) -> None:
        names: List[Any] = ["naïve ✓ 漢字", "a+b&c=d;e,f?g#h%20", os.fsdecode(b"no\xfftext"), "new\nline", "~", " ", pathlib.PurePosixPath("of/pathlib")]
        async with await AsyncSandbox.create(user_id="ünï ✓", thread_id="漢", metadata={"ключ": "значение"}) as sandbox:
            for name in names:
                await sandbox.files.write(name, str(name).encode("utf-8", "surrogateescape"))
                self.assertEqual(await sandbox.files.read_bytes(name), str(name).encode("utf-8", "surrogateescape"))
                self.assertEqual((await sandbox.files.stat(name)).path, "/workspace/" + str(name))
            self.assertEqual({f.name for f in await sandbox.files.list(depth=2)}, {str(n).rpartition("/")[2] for n in names} | {"of"})
            found = await sandbox.client.sessions(user_id="ünï ✓", metadata={"ключ": "значение"})
            self.assertEqual([s.session_id for s in found], [sandbox.sandbox_id])

    async def test_proxies_of_the_environment_are_not_looked_at(self) -> None:
        nowhere = {name: "http://127.0.0.1:1" for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY")}
        with mock.patch.dict(os.environ, nowhere):
            async with AsyncClient() as client:
                self.assertEqual((await client.health()).status, "healthy")


class Transfers(unittest.IsolatedAsyncioTestCase):
    async def test_a_download_has_the_permissions_of_its_user(self) -> None:
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        with tempfile.TemporaryDirectory() as dir:
            async with await AsyncSandbox.create() as sandbox:
                await sandbox.files.write("x", "x")
                await sandbox.files.download("x", dir + "/x")
                self.assertEqual(stat.S_IMODE(os.stat(dir + "/x").st_mode), 0o640)
                with self.assertRaises(OSError):
                    await sandbox.files.download("x", dir)
                with self.assertRaises(FileNotFoundError):
                    await sandbox.files.download("x", dir + "/nowhere/x")
            self.assertEqual(os.listdir(dir), ["x"])

    async def test_sources_that_give_something_else(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            sources: Any = [lambda: [b"a", None], lambda: [7], lambda: [7.5], lambda: [1 << 60], lambda: {1: 2}, lambda: io.StringIO("half \ud800")]
            for source in sources:
                with self.assertRaises(InvalidError):
                    await sandbox.files.write("x", source())
                with self.assertRaises(InvalidError):
                    await sandbox.commands.run("cat", stdin=source())
            self.assertFalse(await sandbox.files.exists("x"))
            await sandbox.files.write("y", [b"a", "é"])
            self.assertEqual(await sandbox.files.read("y"), "aé")
            await sandbox.files.write("x", memoryview(b"abc")[1:])
            self.assertEqual(await sandbox.files.read("x"), "bc")
            self.assertEqual(await sandbox.files.read_bytes("x", offset=1, length=0), b"")
            with self.assertRaises(NotFoundError):
                await sandbox.files.read_bytes("nowhere", length=0)

    async def test_what_is_longer_than_memory_is_said(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            for name in ("a", "b", "c"):
                await sandbox.files.write(name, "x" * 100)
            with mock.patch.object(files_module, "MOST_HELD", 99), self.assertRaises(ResourceLimitError):
                await sandbox.files.read_bytes("a")
            with mock.patch.object(files_module, "MOST_LISTED", 2), self.assertRaises(ResourceLimitError):
                await sandbox.files.list()
            self.assertEqual(len(await sandbox.files.list()), 3)

    async def test_lists_go_on_from_page_to_page(self) -> None:
        async with AsyncClient() as client:
            made = [await AsyncSandbox.create(client=client, project_name="pages" + __name__) for _ in range(5)]
            with mock.patch.object(module, "PAGE", 2):
                found = [s.session_id for s in await client.sessions(project_name="pages" + __name__)]
                self.assertEqual(found, [one.sandbox_id for one in made])
                self.assertEqual(len(await client.sessions(project_name="pages" + __name__, limit=3)), 3)
            for sandbox in made:
                await sandbox.kill()

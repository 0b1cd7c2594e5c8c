"""What goes wrong between a caller and a server, in asyncio; test_faults runs it both ways."""

from __future__ import annotations

import json
import os
import signal
import tracemalloc
import unittest
import warnings
from typing import Any, List

from cove import AsyncClient, AsyncSandbox, AuthenticationError, CoveError, InvalidError, NotFoundError, OutOfTimeError, ServerConnectionError, VersionWarning
from cove._async.stream import pause
from serving import Peer, Server, ok


def problem(status: int, form: "dict[str, str]") -> bytes:
    """An answer that says what went wrong."""
    return ok(json.dumps(form).encode(), "application/problem+json").replace(b" 200 ", b" %d " % status)


class Strangers(unittest.IsolatedAsyncioTestCase):
    async def told(self, answer: bytes, path: str = "/api/stats", **connect: Any) -> CoveError:
        """What a caller is told of an answer."""
        peer = Peer(lambda head: answer)
        self.addCleanup(peer.close)
        async with AsyncClient(peer.url, "key", **connect) as client:
            with self.assertRaises(CoveError) as caught:
                await client.transport.get("GET", path)
        return caught.exception

    async def test_no_server(self) -> None:
        for url in ("http://127.0.0.1:1", "unix:///nowhere/cove.sock"):
            async with AsyncClient(url) as client:
                with self.assertRaises(ServerConnectionError) as caught:
                    await client.stats()
            self.assertIn(url, caught.exception.message)
            self.assertIn("cove serve", caught.exception.remedy)
            self.assertEqual((caught.exception.code, caught.exception.reason), ("unavailable", "connection"))

    async def test_what_is_not_cove(self) -> None:
        for answer in (
            ok(b"<html>hi</html>", "text/html"),
            ok(b"not json"),
            ok(b"[1, 2]"),
            b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno",
            b"HTTP/1.1 404 No\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}",
            b"SSH-2.0-OpenSSH_9.9\r\n\r\n\r\n",
            b"HTTP/1.1 two hundred\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000,
            b"HTTP/1.1 2\xb20 OK\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
            ok(b'{"code": [], "error": "x"}', "application/problem+json").replace(b" 200 ", b" 404 "),
            ok(b'{"code": "invalid", "error": "x", "reason": {"a": 1}}', "application/problem+json").replace(b" 200 ", b" 404 "),
            ok(b"[" * 200_000),
            ok(b'{"of_tomorrow": ' * 50_000),
        ):
            err = await self.told(answer)
            self.assertIsInstance(err, ServerConnectionError, answer[:60])
            self.assertTrue(err.remedy)

    async def test_lists_of_something_else(self) -> None:
        for items in ([7], [None], [{}], {}):
            peer = Peer(lambda head: ok(json.dumps({"items": items}).encode()))
            self.addCleanup(peer.close)
            async with AsyncClient(peer.url, "key") as client:
                for listed in (client.sessions, client.snapshots):
                    with self.assertRaises(ServerConnectionError):
                        await listed()

    async def test_an_answer_that_breaks_off(self) -> None:
        for answer in (
            b"",
            b"HTTP/1.1 200 OK\r\nContent-",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}{}{}{}",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 1000,
        ):
            err = await self.told(answer)
            self.assertIn("broke off", err.message, answer)
            self.assertIn("look whether it was done", err.remedy)

    async def test_a_redirect_does_not_get_the_key(self) -> None:
        other = Peer(lambda head: ok(b"{}"))
        self.addCleanup(other.close)
        await self.told(f"HTTP/1.1 307 T\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode())
        self.assertEqual(other.heads, [])

    async def test_another_version_is_said_and_goes_on_working(self) -> None:
        peer = Peer(lambda head: ok(json.dumps({"active_sessions": 3, "of_tomorrow": {}}).encode()), version="v9.2.0")
        self.addCleanup(peer.close)
        async with AsyncClient(peer.url) as client:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.assertEqual((await client.stats()).active_sessions, 3)
                await client.stats()
        self.assertEqual([w.category for w in said], [VersionWarning])
        self.assertIn("v9.2.0", str(said[0].message))
        problem = json.dumps({"code": "invalid", "error": "foo: is unknown"}).encode()
        peer.answer = lambda head: b"HTTP/1.1 400 No\r\nConnection: close\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n" % len(problem) + problem
        async with AsyncClient(peer.url) as client:
            with warnings.catch_warnings(), self.assertRaises(InvalidError) as caught:
                warnings.simplefilter("ignore")
                await client.stats()
        self.assertIn("the server is version v9.2.0", caught.exception.remedy)

    async def lost(self, code: str, reason: str, reopened: bool = True) -> "tuple[Peer, AsyncSandbox]":
        """A server whose first session is refused with a reason, and one in it."""
        opened: List[str] = []

        def answer(head: str) -> bytes:
            if head.startswith("POST /api/sandboxes "):
                opened.append("s%d" % (len(opened) + 1))
                if len(opened) == 2 and not reopened:
                    return problem(429, {"code": "exhausted", "error": "there is no room"})
                return ok(json.dumps({"session_id": opened[-1], "status": "running"}).encode())
            if head.startswith("POST /api/sandboxes/s1/"):
                return problem(404 if code == "not_found" else 503, {"code": code, "reason": reason, "error": "it is gone"})
            return ok(json.dumps({"exit_code": 0, "status": "success", "outcome": "exited", "session_id": "s2"}).encode())

        peer = Peer(answer)
        self.addCleanup(peer.close)
        return peer, await AsyncSandbox.create(url=peer.url, api_key="key")

    async def test_a_session_that_was_lost_is_opened_again(self) -> None:
        for reason in ("node_lost", "session_expired"):
            peer, sandbox = await self.lost("not_found", reason)
            x = await sandbox.commands.run("true")
            self.assertEqual((x.session_recreated, x.session_id, sandbox.sandbox_id), (True, "s2", "s2"))
            self.assertFalse((await sandbox.commands.run("true")).session_recreated)
            await sandbox.aclose()
            self.assertEqual(len([head for head in peer.heads if f"Cove-Retry: {reason}" in head]), 2)

    async def test_what_may_be_there_still_is_not(self) -> None:
        for code, reason in (("unavailable", "node_away"), ("unavailable", "outcome_unknown"), ("unavailable", "no_directory"), ("unavailable", "node_lost"), ("conflict", "node_lost"), ("not_found", "session_closed")):
            peer, sandbox = await self.lost(code, reason)
            with self.assertRaises(CoveError) as caught:
                await sandbox.commands.run("true")
            await sandbox.aclose()
            self.assertEqual((caught.exception.code, caught.exception.reason), (code, reason))
            self.assertEqual(len([head for head in peer.heads if head.startswith("POST /api/sandboxes ")]), 1)

    async def test_no_room_for_one_in_the_place_of_a_lost_one(self) -> None:
        _, sandbox = await self.lost("not_found", "node_lost", reopened=False)
        with self.assertRaises(CoveError) as caught:
            await sandbox.commands.run("true")
        await sandbox.aclose()
        self.assertEqual(caught.exception.code, "exhausted")
        self.assertTrue(caught.exception.message.startswith("the session was lost with what held it, and a new one"), caught.exception.message)

    async def test_a_stream_that_is_silent(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        peer = Peer(lambda _: head + b"1\r\n:\r\n", holds=True)
        self.addCleanup(peer.close)
        async with AsyncClient(peer.url, silence=0.2) as client:
            sandbox = AsyncSandbox(client, await self.record())
            with self.assertRaises(ServerConnectionError) as caught:
                await sandbox.commands.run("x", on_stdout=print)
        self.assertIn("no sign of life for 0.2 s", caught.exception.message)

    async def test_a_download_that_is_silent(self) -> None:
        peer = Peer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 9\r\n\r\nhalf", holds=True)
        self.addCleanup(peer.close)
        async with AsyncClient(peer.url, silence=0.2) as client:
            with self.assertRaises(ServerConnectionError) as caught:
                await AsyncSandbox(client, await self.record()).files.read_bytes("x")
        self.assertIn("no sign of life for 0.2 s", caught.exception.message)

    async def record(self) -> Any:
        from cove import Session

        return Session(session_id="s", status="running")

    async def test_an_event_that_cove_does_not_send(self) -> None:
        for data in (
            b'event: stdout\ndata: {"offset": "far"}\n\n',
            b'event: stdout\ndata: {"data_base64": "!"}\n\n',
            b'event: stdout\ndata: {"data": 7}\n\n',
            b'event: exit\ndata: {"exit_code": 0, "status": "success", "outcome": "exited", "stdout_base64": 7}\n\n',
            b"event: exit\ndata: nonsense\n\n",
            b"event: exit\ndata: {}\n\n",
            b"event: error\ndata: {}\n\n",
        ):
            peer = Peer(lambda head, data=data: ok(data, "text/event-stream"))  # type: ignore[misc]
            self.addCleanup(peer.close)
            async with AsyncClient(peer.url) as client:
                with self.assertRaises(ServerConnectionError, msg=str(data)):
                    await AsyncSandbox(client, await self.record()).commands.run("x", on_stdout=print)


class Servers(unittest.IsolatedAsyncioTestCase):
    async def test_a_wrong_key(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        for key in ("", "cove_wrong"):
            with self.assertRaises(AuthenticationError):
                await AsyncSandbox.create(url=server.url, api_key=key)

    async def test_a_server_that_is_killed_in_a_stream_and_comes_back(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client:
            sandbox = await AsyncSandbox.create(client=client)
            heard: List[str] = []

            def kill(text: str) -> None:
                heard.append(text)
                server.end(signal.SIGKILL)

            with self.assertRaises(ServerConnectionError) as caught:
                await sandbox.commands.run("echo on; sleep 600", on_stdout=kill)
            self.assertEqual(heard, ["on\n"])
            self.assertIn("look whether it was done", caught.exception.remedy)
            with self.assertRaises(ServerConnectionError) as caught:
                await sandbox.commands.run("true")
            self.assertIn("cannot be reached", caught.exception.message)
            server.start()
            self.assertTrue((await (await AsyncSandbox.create(client=client)).commands.run("true")).ok)

    async def test_connections_that_the_server_closed_carry_nothing(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client:
            await client.stats()
            server.end()
            server.start()
            self.assertTrue((await (await AsyncSandbox.create(client=client)).commands.run("true")).ok)

    async def test_a_huge_upload_is_refused_early_and_never_held(self) -> None:
        server = Server(MAX_FILE_SIZE_MB="8")
        self.addCleanup(server.close)
        piece, sent = os.urandom(1 << 20), [0]

        def pieces(most: int) -> Any:
            for _ in range(most):
                sent[0] += 1
                yield piece

        async with AsyncClient(server.url, server.key) as client:
            sandbox = await AsyncSandbox.create(client=client)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            await sandbox.files.write("fits", pieces(8))
            with self.assertRaises(InvalidError) as caught:
                await sandbox.files.write("huge", pieces(100_000))
            self.assertEqual(caught.exception.reason, "file_too_large")
            self.assertLess(sent[0], 200)
            self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)
            self.assertFalse(await sandbox.files.exists("huge"))
            self.assertEqual((await sandbox.files.stat("fits")).size, 8 << 20)

    async def test_a_caller_that_waits_no_longer_ends_what_it_asked_for(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client, AsyncClient(server.url, server.key, request_timeout=0.5) as hasty:
            sandbox = await AsyncSandbox.create(client=client)
            # On a machine with much to do its time can be over before the program begins.
            for _ in range(60):
                with self.assertRaises(OutOfTimeError):
                    await AsyncSandbox(hasty, sandbox.session).commands.run("echo > began; sleep 600")
                if await sandbox.files.exists("began"):
                    break
            else:
                self.fail("the program never begins")
            for _ in range(400):
                if not (await client.session(sandbox.sandbox_id)).busy:
                    return
                await pause(0.05)
            self.fail("the program runs on")

    async def test_what_is_gone_is_not_asked_twice(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        async with AsyncClient(server.url, server.key) as client:
            sandbox = await AsyncSandbox.create(client=client)
            await sandbox.kill()
            with self.assertRaises(NotFoundError):
                await sandbox.commands.run("true")
            self.assertEqual((await client.stats()).raw["sessions_opened"], 1)


if __name__ == "__main__":
    unittest.main()

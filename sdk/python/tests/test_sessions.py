"""Sessions of users and threads, and Python as a tool, against a server of the provider fake."""

from __future__ import annotations

import asyncio
import os
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import cove
from cove import AsyncSandboxClient, InvalidError, SandboxClient, SessionNotFoundError


class Sessions(unittest.TestCase):
    def setUp(self) -> None:
        self.client = SandboxClient(mode="remote", server_url=os.environ["COVE_URL"])
        self.addCleanup(self.client.close)

    def end(self, session_id: str) -> None:
        try:
            self.client.close_session(session_id)
        except SessionNotFoundError:
            pass

    def test_a_conversation(self) -> None:
        session = self.client.get_or_create_session(user_id="ada", thread_id="t1", timeout_minutes=30)
        self.addCleanup(self.end, session["session_id"])
        self.assertEqual(session["status"], "running")
        self.assertEqual(self.client.execute("echo '[42, 100]' > data.json")["exit_code"], 0)
        result = self.client.execute("cat data.json", timeout=30, auto_retry=True)
        self.assertEqual((result["stdout"], result["exit_code"]), ("[42, 100]\n", 0))
        self.assertGreaterEqual(result["execution_time_ms"], 0)
        self.assertEqual(self.client.get_or_create_session(user_id="ada", thread_id="t1", timeout_minutes=30)["session_id"], session["session_id"])
        failed = self.client.execute("echo no >&2; exit 9")
        self.assertEqual((failed["exit_code"], failed["stderr"], failed["status"]), (9, "no\n", "error"))

    def test_nothing_is_opened_to_be_ended(self) -> None:
        with SandboxClient(mode="remote", server_url="http://127.0.0.1:1") as client:
            client.close_session()

    def test_files(self) -> None:
        session = self.client.get_or_create_session()
        self.addCleanup(self.end, session["session_id"])
        with tempfile.TemporaryDirectory() as dir:
            local = pathlib.Path(dir, "in.csv")
            local.write_text("a,b\n")
            self.assertEqual(self.client.upload_file(local)["size"], 4)
            self.assertEqual(self.client.upload_file(str(local), "d/other")["path"], "/workspace/d/other")
            self.assertEqual(self.client.download_file("in.csv"), b"a,b\n")
            self.assertEqual(self.client.download_file("d/other", dir + "/out"), b"")
            self.assertEqual(pathlib.Path(dir, "out").read_text(), "a,b\n")
            with self.assertRaises(FileNotFoundError):
                self.client.upload_file(dir + "/nothing")
        self.assertEqual(sorted(f["path"] for f in self.client.list_files()), ["/workspace/d", "/workspace/in.csv"])

    def test_without_a_session_one_is_made(self) -> None:
        self.assertEqual(self.client.execute("echo hi")["stdout"], "hi\n")
        self.assertEqual(self.client.execute("echo x > f; cat f")["stdout"], "x\n")
        self.client.close_session()

    def test_no_thread_gets_into_the_sandbox_of_another(self) -> None:
        said: "dict[str, str]" = {}
        both_open = threading.Barrier(2)

        def converse(name: str) -> None:
            session = self.client.get_or_create_session(user_id=name, thread_id="one")
            both_open.wait()
            self.client.execute(f"echo {name} > who")
            both_open.wait()
            said[name] = self.client.execute("cat who")["stdout"]
            self.client.close_session(session["session_id"])

        threads = [threading.Thread(target=converse, args=(name,)) for name in ("ann", "bob")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(said, {"ann": "ann\n", "bob": "bob\n"})

    def test_where_it_is_not_clear_which_session_is_meant(self) -> None:
        ids = [self.client.get_or_create_session(thread_id=name)["session_id"] for name in ("x", "y")]
        for one in ids:
            self.addCleanup(self.end, one)
        caught: "list[BaseException]" = []

        def elsewhere() -> None:
            try:
                self.client.execute("true")
            except InvalidError as err:
                caught.append(err)

        t = threading.Thread(target=elsewhere)
        t.start()
        t.join()
        self.assertIn("get_or_create_session", caught[0].remedy)  # type: ignore[attr-defined]
        self.assertEqual(self.client.execute("true", session_id=ids[0])["session_id"], ids[0])

    def elsewhere(self) -> str:
        """What a thread hears that never said whose turn it is."""
        said: "list[str]" = []

        def work() -> None:
            try:
                said.append(self.client.execute("cat who")["stdout"])
            except InvalidError as err:
                said.append(err.message)

        t = threading.Thread(target=work)
        t.start()
        t.join()
        return said[0]

    def test_the_only_conversation_is_not_everybodys(self) -> None:
        session = self.client.get_or_create_session(user_id="ann", thread_id="alone")
        self.addCleanup(self.end, session["session_id"])
        self.client.execute("echo ann > who")
        self.assertIn("not clear", self.elsewhere())
        self.client.close_session()
        self.assertIn("not clear", self.elsewhere())

    def test_who_gets_no_session_is_not_left_in_the_one_before(self) -> None:
        session = self.client.get_or_create_session(user_id="ann", thread_id="before")
        self.addCleanup(self.end, session["session_id"])
        with self.assertRaises(InvalidError):
            self.client.get_or_create_session(user_id="bob", thread_id="after", nonsense=True)
        with self.assertRaises(InvalidError) as caught:
            self.client.execute("true")
        self.assertIn("did not succeed", caught.exception.message)
        self.assertIn("get_or_create_session", caught.exception.remedy)
        self.client.get_or_create_session(user_id="ann", thread_id="before")
        self.assertEqual(self.client.execute("true")["session_id"], session["session_id"])

    def test_a_client_without_conversations_has_one_session(self) -> None:
        self.client.execute("echo own > who")
        self.assertEqual(self.elsewhere(), "own\n")
        self.client.close_session()

    def test_a_session_that_was_closed_is_not_opened_again(self) -> None:
        session = self.client.get_or_create_session()
        with cove.Client() as other:
            other.end(session["session_id"])
        with self.assertRaises(SessionNotFoundError) as caught:
            self.client.execute("true", auto_retry=True)
        self.assertEqual(caught.exception.reason, "session_closed")


class Tasks(unittest.IsolatedAsyncioTestCase):
    async def test_no_task_gets_into_the_sandbox_of_another(self) -> None:
        async with AsyncSandboxClient(mode="remote", server_url=os.environ["COVE_URL"]) as client:

            async def converse(name: str) -> str:
                session = await client.get_or_create_session(user_id=name, thread_id="two")
                await client.execute(f"echo {name} > who")
                said: str = (await client.execute("cat who"))["stdout"]
                await client.close_session(session["session_id"])
                return said

            names = [f"user{i}" for i in range(10)]
            self.assertEqual(await asyncio.gather(*map(converse, names)), [n + "\n" for n in names])


class Tool(unittest.TestCase):
    def test_an_unknown_kind_is_refused(self) -> None:
        with self.assertRaises(cove.ConfigurationError):
            cove.get_sandbox("toaster")
        with mock.patch.dict(os.environ, {"SANDBOX_TYPE": "toaster"}):
            self.assertIn("toaster", cove.run_python_code("1"))

    def test_no_server_is_a_text(self) -> None:
        with mock.patch.dict(os.environ, {"COVE_URL": "http://127.0.0.1:1"}):
            self.assertIn("cannot be reached", cove.run_python_code("print(1)"))

    def test_code_that_cannot_run_is_a_result(self) -> None:
        with cove.get_sandbox() as sandbox:  # the pretend server has no Python
            result = sandbox.execute("print(1)", timeout=5)
        self.assertFalse(result.success)
        self.assertTrue(result.text)


if __name__ == "__main__":
    unittest.main()

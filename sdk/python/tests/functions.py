"""The tools of a model, in asyncio; test_functions runs it both ways."""

from __future__ import annotations

import json
import unittest
from typing import Any

from cove import AsyncSandbox, InvalidError
from cove._async.code_execution import AsyncCodeExecution
from cove._async.functions import AsyncFunctions


class Tools(unittest.IsolatedAsyncioTestCase):
    async def test_each_tool(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions = AsyncFunctions(sandbox)
            for name, arguments, want in (
                ("write_file", {"path": "d/a.txt", "content": "é\n" * 3}, "d/a.txt is written."),
                ("list_files", {"path": "d"}, "/workspace/d/a.txt (9 bytes)"),
                ("list_files", None, "/workspace/d/"),
                ("read_file", {"path": "d/a.txt", "offset": 3}, "é\né\n"),
                ("edit_file", {"path": "d/a.txt", "old": "é", "new": "e"}, "is in it 3 times, and not once"),
                ("edit_file", {"path": "d/a.txt", "old": "x", "new": "e"}, "is in it 0 times, and not once"),
                ("edit_file", {"path": "d/a.txt", "old": "é\né\né", "new": "e"}, "d/a.txt is changed."),
                ("bash", {"command": "cat d/a.txt; chmod 750 d/a.txt; cd d; v=1"}, "e"),
                ("edit_file", {"path": "d/a.txt", "old": "e", "new": "f"}, "d/a.txt is changed."),
                ("bash", '{"command": "stat -c %a a.txt; echo $v; exit 3"}', "750\n1\n[it failed with exit code 3]"),
                ("python", {"code": "print('p')\nx = 2\nx * 21"}, "p\n42"),
                ("python", {"code": "raise ValueError(x)"}, "ValueError: 2"),
                ("python", {"code": "1 +"}, "SyntaxError"),
                ("write_file", {"path": "b", "content": "\0"}, "b is written."),
                ("read_file", {"path": "b"}, "[This is no text."),
                ("read_file", {"path": "/etc/passwd"}, "Error (invalid)"),
                ("read_file", {"path": "d"}, "Error ("),
                ("read_file", {"path": "nosuch"}, "Error (not_found)"),
                ("write_file", {"path": "/usr/no", "content": ""}, "Error ("),
            ):
                with self.subTest(name=name, arguments=arguments):
                    self.assertIn(want, await functions.call(name, arguments))

    async def test_arguments_that_do_not_fit_are_told(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions = AsyncFunctions(sandbox)
            given: Any
            for name, given, want in (
                ("perl", {}, "there is no tool 'perl' (use one of python, bash"),
                ("python", "{", "the arguments are not JSON"),
                ("python", "[" * 100_000, "the arguments are not JSON"),
                ("python", "[]", "the arguments are not an object"),
                ("python", 7, "the arguments are not an object"),
                ("python", None, "code is missing"),
                ("python", {"code": 7}, "code must be a text"),
                ("python", {"code": "1", "sandbox": "other"}, "there is no argument 'sandbox' (use code)"),
                ("read_file", {"path": "a", "offset": -1}, "offset must be a whole number"),
                ("read_file", {"path": "a", "offset": True}, "offset must be a whole number"),
                ("write_file", '{"path": "a", "content": "\\ud800"}', "content is not Unicode"),
                ("edit_file", {"path": "a", "old": "", "new": ""}, "Error ("),
                ("__init__", {}, "there is no tool"),
            ):
                with self.subTest(name=name, given=str(given)[:40]):
                    said = await functions.call(name, given)
                    self.assertTrue(said.startswith("Error ("), said)
                    self.assertIn(want, said)

    async def test_answers_are_bounded(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions = AsyncFunctions(sandbox, most=1000)
            for code in ("print('x' * 100_000)", "raise ValueError('x' * 100_000)", "'x' * 100_000", "import sys; sys.stderr.write('x' * 9000)"):
                said = await functions.call("python", {"code": code})
                self.assertLessEqual(len(said), 1000, code)
                self.assertIn("characters are cut here", said)
            said = await functions.call("bash", {"command": "seq 100000; exit 4"})
            self.assertTrue(said.startswith("1\n2\n") and said.endswith("[it failed with exit code 4]"), said)
            self.assertIn("The output is cut. Send it to a file", said)
            await functions.call("bash", {"command": "yes é | head -c 3000 > long; for i in $(seq 300); do touch n$i; done"})
            self.assertLessEqual(len(await functions.call("list_files")), 1000)
            whole, offset = "", 0
            for _ in range(10):
                text, _, more = (await functions.call("read_file", {"path": "long", "offset": offset})).partition("[There is more: go on with offset ")
                whole += text
                if not more:
                    break
                offset = int(more.rstrip(".]"))
            self.assertEqual(whole.count("é"), 1000)
            self.assertNotIn("\ufffd", whole)
            for most in (0, -1, "many"):
                with self.assertRaises(InvalidError):
                    AsyncFunctions(sandbox, most=most)  # type: ignore[arg-type]

    async def test_ends_are_told_as_such(self) -> None:
        async with await AsyncSandbox.create(policy="agent-bash") as sandbox:
            functions = AsyncFunctions(sandbox, timeout=1)
            self.assertIn("[blocked by policy, and nothing ran: rm is denied", await functions.call("bash", {"command": "rm -r ."}))
            block = {"type": "server_tool_use", "id": "x", "name": "bash_code_execution", "input": {"command": "rm -r ."}}
            said = (await AsyncCodeExecution(sandbox).answer(block))["content"]
            self.assertEqual((said["type"], said["return_code"]), ("bash_code_execution_result", 126))
            self.assertIn("rm is denied", said["stderr"])
            self.assertIn("[it ran out of time after 1", await functions.call("python", {"code": "print('so far', flush=True)\nwhile True: pass"}))
            self.assertIn("42", await functions.call("python", {"code": "kept = 42\nkept"}))
            said = await functions.call("python", {"code": "import os\nos._exit(9)"})
            said += await functions.call("python", {"code": "kept"})
            self.assertIn("[The interpreter was started again", said)
            self.assertIn("NameError", said)
            await sandbox.kill()
            self.assertIn("Error (not_found)", await functions.call("bash", {"command": "true"}))
            self.assertIn("Error (not_found)", await functions.call("list_files"))

    async def test_names_that_are_no_text_are_harmless(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions, execution = AsyncFunctions(sandbox), AsyncCodeExecution(sandbox)
            block = {"type": "server_tool_use", "id": "x", "name": "bash_code_execution", "input": {"command": "touch $'\\xff' a"}}
            self.assertEqual((await execution.answer(block))["content"]["content"], [{"type": "bash_code_execution_output", "file_id": "/workspace/a"}])
            self.assertIn("/workspace/? (0 bytes)", await functions.call("list_files"))
            self.assertEqual(await functions.call("python", {"code": "'\\ud800'"}), "'\\ud800'")
            self.assertIn("\ufffd", await functions.call("bash", {"command": "printf '\\xff'"}))

    async def test_a_new_sandbox_is_told(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions = AsyncFunctions(sandbox)
            self.assertEqual(await functions.call("bash", {"command": "touch a"}), "(no output)")
            sandbox._untold = True  # as after a session that has expired
            self.assertIn("[This is a new sandbox", await functions.call("bash", {"command": "ls"}))

    async def test_a_restart_forgets(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            functions = AsyncFunctions(sandbox)
            await functions.restart("bash")  # none is there yet
            await functions.call("bash", {"command": "n=0"})
            for _ in range(3):
                await functions.call("bash", {"command": "n=$((n+1))"})
            self.assertEqual(await functions.call("bash", {"command": "echo $n"}), "3")
            await functions.restart("bash")
            self.assertEqual(await functions.call("bash", {"command": "echo ${n-none}"}), "none")

    def test_schemas(self) -> None:
        functions = AsyncFunctions(AsyncSandbox.__new__(AsyncSandbox))
        for shape, at in (("chat", lambda t: t["function"]["parameters"]), ("responses", lambda t: t["parameters"]), ("anthropic", lambda t: t["input_schema"])):
            for tool in functions.schemas(shape):
                json.dumps(tool)
                self.assertEqual(at(tool)["type"], "object")
                self.assertLessEqual(set(at(tool)["required"]), set(at(tool)["properties"]))
        with self.assertRaises(InvalidError):
            functions.schemas("morse")


class Executions(unittest.IsolatedAsyncioTestCase):
    async def content(self, execution: Any, name: str, **given: Any) -> Any:
        block = await execution.answer({"type": "server_tool_use", "id": "x", "name": name, "input": given})
        self.assertEqual((block["type"], block["tool_use_id"]), (name + "_tool_result", "x"))
        return block["content"]

    async def test_shapes(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            await sandbox.files.write("given", "in\n")
            execution = AsyncCodeExecution(sandbox, timeout=2)
            want = {"type": "code_execution_result", "stdout": "hi\n5", "stderr": "", "return_code": 0, "content": [{"type": "code_execution_output", "file_id": "/workspace/made"}]}
            self.assertEqual(await self.content(execution, "code_execution", code="print('hi')\nopen('made', 'w').write('bytes')"), want)
            said = await self.content(execution, "code_execution", code="1 / 0")
            self.assertEqual((said["return_code"], said["content"]), (1, []))
            self.assertIn("ZeroDivisionError", said["stderr"])
            said = await self.content(execution, "bash_code_execution", command="echo out; echo err >&2; rm made; echo > given; exit 3")
            files = [{"type": "bash_code_execution_output", "file_id": "/workspace/given"}]
            self.assertEqual(said, {"type": "bash_code_execution_result", "stdout": "out", "stderr": "err", "return_code": 3, "content": files})
            self.assertEqual(execution.files, ["/workspace/given"])
            for name, field in (("code_execution", "code"), ("bash_code_execution", "command")):
                error = {"type": name + "_tool_result_error", "error_code": "invalid_tool_input"}
                self.assertEqual(await self.content(execution, name, **{field: 7}), error)
            late = {"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"}
            self.assertEqual(await self.content(execution, "code_execution", code="while True: pass"), late)
            await sandbox.kill()
            gone = {"type": "bash_code_execution_tool_result_error", "error_code": "unavailable"}
            self.assertEqual(await self.content(execution, "bash_code_execution", command="true"), gone)

    async def test_a_new_interpreter_is_told(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            execution = AsyncCodeExecution(sandbox)
            self.assertEqual((await self.content(execution, "code_execution", code="x = 1"))["stderr"], "")
            await self.content(execution, "code_execution", code="import os\nos._exit(9)")
            said = await self.content(execution, "code_execution", code="2")
            self.assertEqual(said["stdout"], "2")
            self.assertIn("[The interpreter was started again", said["stderr"])

    async def test_the_editor(self) -> None:
        name = "text_editor_code_execution"
        async with await AsyncSandbox.create() as sandbox:
            execution = AsyncCodeExecution(sandbox, most=1000)
            for there in (False, True):
                said = await self.content(execution, name, command="create", path="a.txt", file_text="1\n2\n3\n4\n")
                self.assertEqual(said, {"type": name + "_create_result", "is_file_update": there})
            said = await self.content(execution, name, command="view", path="a.txt", view_range=[2, 3])
            self.assertEqual(said, {"type": name + "_view_result", "file_type": "text", "content": "2\n3", "num_lines": 2, "start_line": 2, "total_lines": 4})
            self.assertEqual((await self.content(execution, name, command="view", path="a.txt", view_range=[4, -1]))["content"], "4")
            self.assertEqual((await self.content(execution, name, command="view", path="."))["content"], "/workspace/a.txt")
            said = await self.content(execution, name, command="str_replace", path="a.txt", old_str="2\n3", new_str="x")
            self.assertEqual(said, {"type": name + "_str_replace_result", "old_start": 2, "old_lines": 2, "new_start": 2, "new_lines": 1, "lines": ["-2", "-3", "+x"]})
            self.assertEqual(await sandbox.files.read("a.txt"), "1\nx\n4\n")
            await sandbox.files.write("data", b"\0")
            await sandbox.files.write("long", "line\n" * 300_000)
            said = await self.content(execution, name, command="view", path="long")
            self.assertLessEqual(len(said["content"]), 1000)
            self.assertNotIn("total_lines", said)
            for given, code, text in (
                ({"command": "view", "path": "nosuch"}, "file_not_found", "nosuch"),
                ({"command": "view", "path": "a.txt", "view_range": [0, 1]}, "invalid_tool_input", "view_range"),
                ({"command": "view", "path": "a.txt", "view_range": "all"}, "invalid_tool_input", "view_range"),
                ({"command": "view", "path": "data"}, "invalid_tool_input", "no text"),
                ({"command": "undo", "path": "a.txt"}, "invalid_tool_input", "none of view, create and str_replace"),
                ({"command": "create", "path": "b"}, "invalid_tool_input", "file_text must be a text"),
                ({"command": "str_replace", "path": "a.txt", "old_str": "no"}, "invalid_tool_input", "0 times"),
                ({"command": "str_replace", "path": "long", "old_str": "line"}, "invalid_tool_input", "longer than"),
                ({}, "invalid_tool_input", "command must be a text"),
            ):
                with self.subTest(given=given):
                    said = await self.content(execution, name, **given)
                    self.assertEqual((said["type"], said["error_code"]), (name + "_tool_result_error", code))
                    self.assertIn(text, said["error_message"])

    async def test_a_tool_of_the_caller(self) -> None:
        async with await AsyncSandbox.create() as sandbox:
            execution = AsyncCodeExecution(sandbox)
            block = await execution.answer({"type": "tool_use", "id": "x", "name": "code_execution", "input": {"code": "40 + 2"}})
            self.assertEqual((block["type"], block["tool_use_id"], json.loads(block["content"])["stdout"]), ("tool_result", "x", "42"))
            self.assertNotIn("is_error", block)
            block = await execution.answer({"type": "tool_use", "id": "x", "name": "code_execution", "input": None})
            self.assertTrue(block["is_error"])
            self.assertIn("code must be a text", json.loads(block["content"])["error_message"])
            for other in ({"type": "text", "text": "hi"}, {"type": "tool_use", "id": "x", "name": "other", "input": {}}, None, 7):
                with self.assertRaises(InvalidError):
                    await execution.answer(other)

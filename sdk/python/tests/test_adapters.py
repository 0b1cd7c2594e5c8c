"""The adapters with the frameworks that they are for, and a server of the provider local."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from types import SimpleNamespace
from typing import Any

import both_ways  # noqa: F401: with it the folder of the package is looked in
import cove
from cove.adapters import anthropic as anthropic_adapter
from cove.adapters import deepagents, langchain, openai_agents

from anthropic.types import beta


class Missing(unittest.TestCase):
    def test_what_to_install_is_said(self) -> None:
        hide = "import sys\nfor name in ('langchain_core', 'deepagents', 'agents', 'anthropic'): sys.modules[name] = None\n"
        for module, extra in (("langchain", "langchain"), ("deepagents", "deepagents"), ("openai_agents", "openai-agents"), ("anthropic", "anthropic")):
            code = f"{hide}try: import cove.adapters.{module}\nexcept ImportError as err: print(err)"
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            self.assertIn(f"pip install 'cove-sandbox[{extra}]'", said)
        subprocess.run([sys.executable, "-c", hide + "import cove.adapters.functions"], check=True)


class LangChain(unittest.IsolatedAsyncioTestCase):
    async def test_both_ways(self) -> None:
        with cove.Sandbox.create() as sandbox:
            tools = {tool.name: tool for tool in langchain.cove_tools(sandbox, most=1000)}
            self.assertEqual(set(tools), {"python", "bash", "read_file", "write_file", "edit_file", "list_files"})
            self.assertEqual(tools["python"].invoke({"code": "6 * 7"}), "42")
            self.assertEqual(await tools["bash"].ainvoke({"command": "echo in a thread"}), "in a thread")
            self.assertLessEqual(len(tools["bash"].invoke({"command": "seq 10000"})), 1000)
            self.assertIn("Error (invalid)", tools["bash"].invoke({"line": "ls"}))
            message = tools["python"].invoke({"type": "tool_call", "id": "x", "name": "python", "args": {"code": "1 / 0"}})
            self.assertIn("ZeroDivisionError", message.content)
            sandbox.kill()
            self.assertIn("Error (not_found)", tools["python"].invoke({"code": "1"}))
        async with await cove.AsyncSandbox.create() as later:
            tools = {tool.name: tool for tool in langchain.cove_tools(later)}
            self.assertEqual(await tools["python"].ainvoke({"code": "6 * 7"}), "42")
            with self.assertRaises(NotImplementedError):
                tools["python"].invoke({"code": "1"})


class DeepAgents(unittest.TestCase):
    def test_commands(self) -> None:
        with cove.Sandbox.create(policy="agent-bash") as sandbox:
            backend = deepagents.CoveBackend(sandbox)
            self.assertEqual(backend.id, sandbox.sandbox_id)
            ran = backend.execute("echo out; echo err >&2; exit 3")
            self.assertEqual((ran.output, ran.exit_code, ran.truncated), ("out\nerr\n", 3, False))
            ran = backend.execute("rm -r .")
            self.assertEqual(ran.exit_code, 126)
            self.assertEqual(ran.output.count("rm is denied"), 1)
        with cove.Sandbox.create() as sandbox:
            backend = deepagents.CoveBackend(sandbox)
            ran = backend.execute("echo so far; sleep 60", timeout=1)
            self.assertRegex(ran.output, r"^so far\n\n\[it ran out of time after 1[0-9.]*s\]\n$")
            ran = backend.execute("head -c 3000000 /dev/zero | tr '\\0' x")
            self.assertEqual((len(ran.output), ran.exit_code, ran.truncated), (1 << 20, 0, True))
            # More than an answer of the server has, since its own tools read files so.
            backend.upload_files([("/workspace/long", b"line\n" * 20_000)])
            self.assertEqual(backend.read("/workspace/long", limit=20_000).file_data["content"].count("line"), 20_000)
            sandbox.kill()
            self.assertIn("Error (not_found)", backend.execute("true").output)

    def test_files(self) -> None:
        with cove.Sandbox.create() as sandbox:
            backend = deepagents.CoveBackend(sandbox)
            wrote = backend.upload_files([("/workspace/d/a", b"\xff\0"), ("/usr/a", b"")])
            self.assertEqual((wrote[0].error, wrote[1].error is None), (None, False))
            read = backend.download_files(["/workspace/d/a", "/workspace/nosuch", "/workspace/d"])
            self.assertEqual([r.content for r in read], [b"\xff\0", None, None])
            self.assertEqual((read[0].error, read[1].error, read[2].error), (None, "file_not_found", "is_directory"))


class OpenAIAgents(unittest.IsolatedAsyncioTestCase):
    def request(self, *commands: str, **more: Any) -> Any:
        action = SimpleNamespace(**{"commands": list(commands), "timeout_ms": None, "max_output_length": None, **more})
        return SimpleNamespace(data=SimpleNamespace(action=action))

    async def test_the_shell(self) -> None:
        async with await cove.AsyncSandbox.create(policy="agent-bash") as sandbox:
            shell = openai_agents.Shell(sandbox, timeout=1, most=1000)
            ran = await shell(self.request("echo out; echo err >&2; exit 3", "cat out", "python3 -c 'while True: pass'", "rm -r .", timeout_ms=600_000))
            self.assertEqual([(x.outcome.type, x.outcome.exit_code) for x in ran.output], [("exit", 3), ("exit", 1), ("timeout", None), ("exit", 126)])
            self.assertEqual((ran.output[0].stdout, ran.output[0].stderr), ("out\n", "err\n"))
            self.assertEqual(ran.output[3].stderr, "[blocked by policy, and nothing ran: rm is denied by the command policy agent-bash]")
            ran = await shell(self.request("seq 10000", max_output_length=100))
            self.assertLessEqual(len(ran.output[0].stdout), 100)
            ran = await shell(self.request("seq 10000", max_output_length=1 << 40))
            self.assertLessEqual(len(ran.output[0].stdout), 1000)
            await sandbox.kill()
            ran = await shell(self.request("true"))
            self.assertEqual(ran.output[0].outcome.exit_code, 125)
            self.assertIn("Error (not_found)", ran.output[0].stderr)
        with self.assertRaises(cove.InvalidError):
            openai_agents.shell_tool(None)

    async def test_functions(self) -> None:
        async with await cove.AsyncSandbox.create() as sandbox:
            tools = {tool.name: tool for tool in openai_agents.cove_tools(sandbox)}
            self.assertEqual(await tools["python"].on_invoke_tool(None, '{"code": "6 * 7"}'), "42")
            self.assertIn("the arguments are not JSON", await tools["python"].on_invoke_tool(None, "{"))


class Anthropic(unittest.IsolatedAsyncioTestCase):
    def test_bash(self) -> None:
        with cove.Sandbox.create() as sandbox:
            bash = anthropic_adapter.bash_tool(sandbox, timeout=1)
            self.assertEqual(bash.to_dict(), {"type": "bash_20250124", "name": "bash"})
            self.assertEqual(bash.call({"command": "x=1; echo $x"}), "1")
            self.assertIn("[it ran out of time after 1", bash.call({"command": "sleep 60"}))
            self.assertIn("started again", bash.call({"restart": True}))
            self.assertEqual(bash.call({"command": "echo ${x-gone}"}), "gone")
            for bad in ({}, None, "ls", {"command": 7}, {"restart": False}):
                self.assertIn("Error (invalid)", bash.call(bad))
            sandbox.kill()
            self.assertIn("Error (not_found)", bash.call({"command": "true"}))
            self.assertIn("Error (not_found)", bash.call({"restart": True}))

    async def test_in_asyncio(self) -> None:
        async with await cove.AsyncSandbox.create() as sandbox:
            bash = anthropic_adapter.bash_tool(sandbox)
            self.assertEqual(await bash.call({"command": "x=1; echo $x"}), "1")
            self.assertIn("started again", await bash.call({"restart": True}))
            self.assertEqual(await bash.call({"command": "echo ${x-gone}"}), "gone")
            tools = {tool.name: tool for tool in anthropic_adapter.code_execution_tools(sandbox)}
            self.assertEqual(json.loads(await tools["code_execution"].call({"code": "6 * 7"}))["stdout"], "42")

    def test_code_execution_is_what_their_types_say(self) -> None:
        with cove.Sandbox.create() as sandbox:
            tools = {tool.name: tool for tool in anthropic_adapter.code_execution_tools(sandbox)}
            self.assertEqual(json.loads(tools["code_execution"].call({"code": "6 * 7"}))["stdout"], "42")
            execution = anthropic_adapter.CodeExecution(sandbox)
            code, bash, editor = beta.BetaCodeExecutionToolResultBlock, beta.BetaBashCodeExecutionToolResultBlock, beta.BetaTextEditorCodeExecutionToolResultBlock
            for name, given, kind in (
                ("code_execution", {"code": "open('a', 'w').write('1')"}, code),
                ("code_execution", {}, code),
                ("bash_code_execution", {"command": "touch b; exit 3"}, bash),
                ("bash_code_execution", {}, bash),
                ("text_editor_code_execution", {"command": "create", "path": "a", "file_text": "1\n"}, editor),
                ("text_editor_code_execution", {"command": "view", "path": "a"}, editor),
                ("text_editor_code_execution", {"command": "view", "path": "."}, editor),
                ("text_editor_code_execution", {"command": "str_replace", "path": "a", "old_str": "1", "new_str": "2"}, editor),
                ("text_editor_code_execution", {"command": "view", "path": "nosuch"}, editor),
            ):
                with self.subTest(name=name, given=given):
                    asked = beta.BetaServerToolUseBlock(type="server_tool_use", id="srvtoolu_1", name=name, input=given)
                    answer = execution.answer(asked)
                    read = kind.model_validate(answer, strict=True)
                    self.assertEqual(read.model_dump(exclude_none=True, mode="json"), answer)


if __name__ == "__main__":
    unittest.main()

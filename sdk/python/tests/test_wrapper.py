"""The wrapper against a server of the provider fake, whose one language is calc."""

from __future__ import annotations

import asyncio
import os
import unittest
from typing import Dict, List
from unittest import mock

from cove import AsyncClient, Execution, InvalidError, MicrosandboxWrapper, SandboxFlavor, ServerConnectionError, WrapperConfig
from cove.exceptions import CodeExecutionError, ConfigurationError, ConnectionError, MicrosandboxWrapperError, ResourceLimitError, SessionNotFoundError


def config(**more: object) -> WrapperConfig:
    return WrapperConfig(server_url=os.environ["COVE_URL"], **more)  # type: ignore[arg-type]


class Wrapper(unittest.IsolatedAsyncioTestCase):
    async def test_sessions_remember_and_end_with_the_wrapper(self) -> None:
        async with MicrosandboxWrapper(config()) as wrapper:
            first = await wrapper.execute_code("x = 42", template="base", language="calc", flavor=SandboxFlavor.SMALL)
            self.assertTrue(first.success and first.session_created)
            second = await wrapper.execute_code("print(x)", template="base", language="calc", session_id=first.session_id)
            self.assertEqual((second.stdout, second.session_created), ("42\n", False))
            self.assertGreaterEqual(second.execution_time_ms, 0)
            listed = await wrapper.get_sessions()
            self.assertEqual([(s.template, s.flavor) for s in listed if s.session_id == first.session_id], [("base", SandboxFlavor.SMALL)])
        async with AsyncClient() as client:
            with self.assertRaises(SessionNotFoundError):
                await client.session(first.session_id)

    async def test_commands(self) -> None:
        async with MicrosandboxWrapper(config()) as wrapper:
            x = await wrapper.execute_command("echo", ["a b"], template="base")
            self.assertEqual((x.stdout, x.exit_code), ("a b\n", 0))
            y = await wrapper.execute_command("echo $((1+2)); exit 4", session_id=x.session_id)
            self.assertEqual((y.stdout, y.exit_code), ("3\n", 4))
            self.assertTrue(await wrapper.stop_session(x.session_id))
            self.assertFalse(await wrapper.stop_session(x.session_id))

    async def test_many_at_once(self) -> None:
        async with MicrosandboxWrapper(config()) as wrapper:
            results = await asyncio.gather(*(wrapper.execute_code(f"{i} * 2", template="base", language="calc") for i in range(10)))
            self.assertEqual([r.text for r in results], [str(i * 2) for i in range(10)])
            self.assertEqual(len({r.session_id for r in results}), 10)

    async def test_exceptions(self) -> None:
        async with MicrosandboxWrapper(config(max_concurrent_sessions=1)) as wrapper:
            first = await wrapper.execute_code("raise Oops no", template="base", language="calc")
            self.assertFalse(first.success)
            with self.assertRaises(CodeExecutionError):
                first.raise_for_status()
            with self.assertRaises(ResourceLimitError):
                await wrapper.execute_code("1", template="base", language="calc")
            with self.assertRaises(SessionNotFoundError):
                await wrapper.execute_code("1", session_id="06gy6bv8t0vj7na7kcyvgvv1rw")
            with self.assertRaises(ConfigurationError):
                await wrapper.execute_code("1", flavor="enormous", session_id=None)
        async with MicrosandboxWrapper(config(raise_on_failure=True)) as wrapper:
            with self.assertRaises(MicrosandboxWrapperError):
                await wrapper.execute_code("raise Oops no", template="base", language="calc")
        with self.assertRaises(ConnectionError):
            async with MicrosandboxWrapper(WrapperConfig(server_url="http://127.0.0.1:1")):
                pass

    async def test_settings_that_are_of_no_use_are_said(self) -> None:
        wrong: List[Dict[str, object]] = [{name: bad} for name in ("session_timeout", "default_execution_timeout") for bad in (0, -1, "60", float("nan"), float("inf"))]
        wrong += [{"max_concurrent_sessions": bad} for bad in (-1, "2", 1.5)] + [{"shared_volume_mappings": "/a:/b"}, {"default_flavor": {}}]
        for given in wrong:
            with self.subTest(given), self.assertRaises(ConfigurationError):
                config(**given)
        for name in ("MSB_MAX_SESSIONS", "MSB_SESSION_TIMEOUT", "MSB_EXECUTION_TIMEOUT"):
            for bad in ("inf", "nan", "-1", "many"):
                with self.subTest(name, bad=bad), self.assertRaises(ConfigurationError):
                    WrapperConfig.from_env({name: bad})

    async def test_the_limit_holds_for_many_at_once(self) -> None:
        async with MicrosandboxWrapper(config(max_concurrent_sessions=2)) as wrapper:
            calls = (wrapper.execute_command("true", template="base") for _ in range(6))
            done = await asyncio.gather(*calls, return_exceptions=True)
            self.assertEqual(sum(isinstance(one, ResourceLimitError) for one in done), 4)
            self.assertEqual(sum(isinstance(one, Execution) for one in done), 2)

    async def test_a_session_whose_first_call_raised_does_not_count(self) -> None:
        async with MicrosandboxWrapper(config(max_concurrent_sessions=1, raise_on_failure=True)) as wrapper:
            with self.assertRaises(InvalidError):
                await wrapper.execute_command("true", template="base", timeout=-1)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(wrapper.execute_command("sleep 600", template="base"), 0.5)
            last = await wrapper.execute_command("true", template="base")
            self.assertEqual(list(wrapper._made), [last.session_id])

    async def test_code_that_failed_leaves_the_session_that_its_exception_names(self) -> None:
        async with MicrosandboxWrapper(config(raise_on_failure=True)) as wrapper:
            with self.assertRaises(CodeExecutionError) as caught:
                await wrapper.execute_code("raise Oops no", template="base", language="calc")
            named = caught.exception.details["result"].session_id
            self.assertTrue((await wrapper.execute_command("true", session_id=named)).ok)

    async def test_one_that_cannot_be_ended_keeps_no_other_from_its_end(self) -> None:
        async with AsyncClient() as client:
            wrapper = MicrosandboxWrapper(config(), client=client)
            ids = [(await wrapper.execute_command("true", template="base")).session_id for _ in range(3)]
            end, failing = client.end, {ids[0]}

            async def broken(session_id: str, **more: bool) -> str:
                if session_id in failing:
                    raise ServerConnectionError("it broke off")
                return await end(session_id, **more)

            with mock.patch.object(client, "end", broken):
                with self.assertRaises(ServerConnectionError):
                    await wrapper.stop()
                for gone in ids[1:]:
                    with self.assertRaises(SessionNotFoundError):
                        await client.session(gone)
                failing.clear()
                await wrapper.stop()
            with self.assertRaises(SessionNotFoundError):
                await client.session(ids[0])

    async def test_numbers_and_background_tasks(self) -> None:
        async with MicrosandboxWrapper(config()) as wrapper:
            await wrapper.execute_command("true", template="base")
            stats = await wrapper.get_resource_stats()
            self.assertGreaterEqual(stats.active_sessions, 1)
            self.assertGreater(stats.max_sessions, 0)
            await wrapper.pause_background_tasks()
            self.assertEqual((await wrapper.get_background_task_status())["overall_status"], "paused")
            await wrapper.resume_background_tasks()
            self.assertEqual((await wrapper.get_background_task_status())["overall_status"], "running")
            self.assertEqual(await wrapper.cleanup_orphan_sandboxes(), 0)
            self.assertEqual((await wrapper.restart_background_tasks())["overall_status"], "running")
            self.assertEqual(await wrapper.get_volume_mappings(), [])


if __name__ == "__main__":
    unittest.main()

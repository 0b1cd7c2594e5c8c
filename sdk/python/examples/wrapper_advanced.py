"""Several at once, numbers, background tasks, and errors that can be told apart."""

import asyncio

from cove import MicrosandboxWrapper, SandboxFlavor, WrapperConfig
from cove.exceptions import CodeExecutionError, MicrosandboxWrapperError, ResourceLimitError, SessionNotFoundError


async def together(wrapper: MicrosandboxWrapper) -> None:
    results = await asyncio.gather(
        wrapper.execute_code("print('task 1')", template="python"),
        wrapper.execute_code("console.log('task 2')", template="node"),
        wrapper.execute_code("print('task 3')", template="python"),
    )
    for i, result in enumerate(results):
        print(f"{i + 1}: {result.stdout.strip()}")


async def numbers(wrapper: MicrosandboxWrapper) -> None:
    stats = await wrapper.get_resource_stats()
    print("active sessions within bounds:", 3 <= stats.active_sessions <= stats.max_sessions, "memory counted:", stats.total_memory_mb > 0)
    for session in sorted({(s.template, s.flavor.value) for s in await wrapper.get_sessions()}):
        print("session of", *session)


async def tasks(wrapper: MicrosandboxWrapper) -> None:
    await wrapper.pause_background_tasks()
    print("tasks:", (await wrapper.get_background_task_status())["overall_status"])
    await wrapper.resume_background_tasks()
    print("tasks:", (await wrapper.get_background_task_status())["overall_status"])
    print("orphans removed:", await wrapper.cleanup_orphan_sandboxes())


async def attempt(wrapper: MicrosandboxWrapper, code: str, **where: str) -> None:
    try:
        result = await wrapper.execute_code(code, **where)
        result.raise_for_status()
    except ResourceLimitError:
        print("a limit was reached")
    except CodeExecutionError as err:
        print("the code failed:", err.message)
    except SessionNotFoundError:
        print("there is no such session")
    except MicrosandboxWrapperError as err:
        print("something else:", err)


async def main() -> None:
    config = WrapperConfig.from_env()
    config.max_concurrent_sessions = 4
    config.default_flavor = SandboxFlavor.SMALL
    async with MicrosandboxWrapper(config=config) as wrapper:
        await together(wrapper)
        await numbers(wrapper)
        await tasks(wrapper)
        await attempt(wrapper, "potentially_failing_code()")
        await attempt(wrapper, "1")
        await attempt(wrapper, "1", session_id="06gy6bv8t0vj7na7kcyvgvv1rw")


asyncio.run(main())

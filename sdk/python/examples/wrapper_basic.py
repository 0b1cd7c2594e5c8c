"""Code in sandboxes of several sizes: what it prints, what it remembers, how to go on."""

import asyncio

from cove import MicrosandboxWrapper, SandboxFlavor


async def main() -> None:
    async with MicrosandboxWrapper() as wrapper:
        result = await wrapper.execute_code(code="print('Hello, World!')", template="python", flavor=SandboxFlavor.SMALL)
        print(f"output: {result.stdout.strip()}, success: {result.success}, timed: {result.execution_time_ms > 0}")

        first = await wrapper.execute_code("x = 42", template="python")
        second = await wrapper.execute_code("print(f'x = {x}')", template="python", session_id=first.session_id)
        print("remembered:", second.stdout.strip())

        session_id = None
        seen = set()
        for i in range(3):
            result = await wrapper.execute_code(f"print('operation {i}')", session_id=session_id)
            session_id = result.session_id  # the next operation goes on there
            seen.add(session_id)
        print("sessions for three operations:", len(seen))

        medium = await wrapper.execute_code("sum(i * i for i in range(100_000))", flavor=SandboxFlavor.MEDIUM)
        print("medium:", medium.text)
        command = await wrapper.execute_command("echo", ["from a command"], session_id=session_id)
        print("command:", command.stdout.strip(), command.exit_code)


asyncio.run(main())

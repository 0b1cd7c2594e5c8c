"""Sizes and bounds: what one call asks for, and what a whole program is configured with."""

import asyncio
import os

from cove import MicrosandboxWrapper, SandboxFlavor, WrapperConfig
from cove.exceptions import ConfigurationError

HEAVY = "sum(i * i for i in range(1_000_000))"


async def sizes() -> None:
    async with MicrosandboxWrapper() as wrapper:
        for flavor in SandboxFlavor:
            result = await wrapper.execute_code(code=HEAVY, flavor=flavor)
            info = (await wrapper.get_sessions(result.session_id))[0]
            print(f"{info.flavor.value}: {result.text}, {info.raw['resource_limits']['cpu_limit']} CPUs, {info.raw['resource_limits']['memory_limit']}")


async def configured(source: str, results: str) -> None:
    config = WrapperConfig(
        server_url=os.environ["COVE_URL"],
        max_concurrent_sessions=20,
        session_timeout=3600,  # an hour
        default_flavor=SandboxFlavor.MEDIUM,
        shared_volume_mappings=[f"{source}:/sandbox/input:ro", f"{results}:/sandbox/output"],
    )
    async with MicrosandboxWrapper(config=config) as wrapper:
        # Code may be indented as the program around it is.
        result = await wrapper.execute_code("""
            with open('/sandbox/input/data.txt') as f:
                print(len(f.read()), 'characters')
        """)
        info = (await wrapper.get_sessions(result.session_id))[0]
        print("configured:", info.flavor.value, result.stdout.strip())


async def planned() -> None:
    # Many short operations, and a few that are long and need much.
    many = WrapperConfig(max_concurrent_sessions=50, default_flavor=SandboxFlavor.SMALL, session_timeout=300)
    few = WrapperConfig(max_concurrent_sessions=5, default_flavor=SandboxFlavor.LARGE, session_timeout=3600)
    for config in (many, few):
        async with MicrosandboxWrapper(config=config) as wrapper:
            result = await wrapper.execute_code("6 * 7")
            info = (await wrapper.get_sessions(result.session_id))[0]
            print("planned:", info.flavor.value, result.text, "up to", config.max_concurrent_sessions)
    try:
        WrapperConfig(session_timeout=0)
    except ConfigurationError as err:
        print("refused:", err.message)


async def main(source: str, results: str) -> None:
    await sizes()
    await configured(source, results)
    await planned()


if __name__ == "__main__":
    import sys

    asyncio.run(main(*sys.argv[1:]))

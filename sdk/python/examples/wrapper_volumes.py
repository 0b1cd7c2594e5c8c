"""Files of the host in a sandbox: one folder that code reads from, and one that it writes to.

usage: wrapper_volumes.py INPUT OUTPUT, folders that COVE_VOLUMES of the server has, the second with :rw
"""

import asyncio
import pathlib
import sys

from cove import MicrosandboxWrapper, WrapperConfig

CODE = """
with open('/sandbox/input/data.txt') as f:
    data = f.read()
with open('/sandbox/output/result.txt', 'w') as f:
    f.write(data.upper())
"""


async def main(source: str, results: str) -> None:
    config = WrapperConfig.from_env()
    config.shared_volume_mappings = [f"{source}:/sandbox/input:ro", f"{results}:/sandbox/output"]
    async with MicrosandboxWrapper(config=config) as wrapper:
        result = await wrapper.execute_code(CODE)
        result.raise_for_status()
        refused = await wrapper.execute_code("open('/sandbox/input/data.txt', 'w')", session_id=result.session_id)
        print("writing to the input:", refused.error.name if refused.error else "worked")
    print(pathlib.Path(results, "result.txt").read_text())


asyncio.run(main(*sys.argv[1:]))

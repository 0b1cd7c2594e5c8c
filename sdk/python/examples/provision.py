"""An agent that works on a project gets a sandbox of its own, with a copy of the project."""

import asyncio
import io
import pathlib
import sys
import tarfile

from cove import AsyncSandbox


def packed(project: pathlib.Path) -> bytes:
    """The files of a project as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(project, arcname=".")
    return out.getvalue()


async def main(project: pathlib.Path) -> None:
    sandbox = await AsyncSandbox.create(project_name=project.name, memory_limit="2g", cpu_limit="2.0", network="none")
    async with sandbox:  # it is gone when the agent ends, however it ends
        await sandbox.files.unpack(packed(project))
        run = await sandbox.commands.run(["python3", "-m", "unittest", "-v"], workdir="/workspace", timeout=60)
        print("tests:", "passed" if run.ok else "failed")
        await sandbox.commands.run("echo $(ls *.py | wc -l) files > report.txt")
        print("report:", (await sandbox.files.read("report.txt")).strip())


if __name__ == "__main__":
    asyncio.run(main(pathlib.Path(sys.argv[1])))

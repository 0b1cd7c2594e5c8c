"""An agent whose commands run in a sandbox, over the HTTP API with httpx and nothing of this package.

usage: agent_over_http.py PROJECT, a folder with tests
"""

import asyncio
import io
import os
import pathlib
import sys
import tarfile
from typing import Any, Dict, List

import httpx


class SandboxManager:
    """The calls that an agent needs."""

    def __init__(self) -> None:
        self.http = httpx.AsyncClient(base_url=os.environ["COVE_URL"], headers={"X-API-Key": os.environ["COVE_API_KEY"]}, timeout=120)

    async def call(self, method: str, path: str, **more: Any) -> Dict[str, Any]:
        answer = await self.http.request(method, "/api/sandboxes/" + path, **more)
        body: Dict[str, Any] = answer.json() if answer.content else {}
        if answer.is_error:
            raise RuntimeError(f"{body['code']}: {body['error']} ({body.get('remedy')})")
        return body

    async def create_sandbox(self, project_name: str, memory_limit: str, cpu_limit: str) -> str:
        made = await self.call("POST", "", json={"project_name": project_name, "memory_limit": memory_limit, "cpu_limit": cpu_limit})
        return str(made["sandbox_id"])

    async def copy_to_sandbox(self, sandbox_id: str, folder: pathlib.Path, target: str) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(folder, arcname=".")
        await self.call("PUT", f"{sandbox_id}/archive", params={"path": target}, content=packed.getvalue(), headers={"Content-Type": "application/x-tar"})

    async def execute(self, sandbox_id: str, command: List[str]) -> Dict[str, Any]:
        return await self.call("POST", f"{sandbox_id}/execute", json={"command": command, "workdir": "/workspace"})

    async def destroy_sandbox(self, sandbox_id: str) -> None:
        await self.call("DELETE", sandbox_id)


async def main(project: pathlib.Path) -> None:
    manager = SandboxManager()
    sandbox_id = await manager.create_sandbox(project_name=project.name, memory_limit="2g", cpu_limit="2.0")
    try:
        await manager.copy_to_sandbox(sandbox_id, project, "/workspace")
        print("tests:", (await manager.execute(sandbox_id, ["python3", "-B", "-m", "unittest"]))["status"])
        print("stopped:", (await manager.call("POST", f"{sandbox_id}/stop"))["status"])
        print("started:", (await manager.call("POST", f"{sandbox_id}/start"))["status"])
        print("files stayed:", (await manager.execute(sandbox_id, ["ls"]))["stdout"].split())
    finally:
        await manager.destroy_sandbox(sandbox_id)
    try:
        await manager.execute(sandbox_id, ["true"])
    except RuntimeError as err:
        print("afterwards:", str(err).partition(":")[0])
    await manager.http.aclose()


if __name__ == "__main__":
    asyncio.run(main(pathlib.Path(sys.argv[1])))

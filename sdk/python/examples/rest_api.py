"""The HTTP API without this package, with httpx: what curl does in four calls."""

import os

import httpx

api = httpx.Client(base_url=os.environ["COVE_URL"], headers={"Authorization": "Bearer " + os.environ["COVE_API_KEY"]}, timeout=60)
made = api.post("/api/sandboxes/", json={"project_name": "test", "memory_limit": "1g", "cpu_limit": "1.0"})
made.raise_for_status()
sandbox_id = made.json()["sandbox_id"]
print(made.status_code, made.json()["status"])

run = api.post(f"/api/sandboxes/{sandbox_id}/execute", json={"command": ["node", "--version"], "workdir": "/workspace"})
print(run.json()["exit_code"], run.json()["stdout"].startswith("v"))

listed = api.get("/api/sandboxes/", params={"project_name": "test"}).json()["items"]
print([s["sandbox_id"] for s in listed] == [sandbox_id])

print(api.delete(f"/api/sandboxes/{sandbox_id}").json()["status"])
print(api.get(f"/api/sandboxes/{sandbox_id}").json()["reason"])

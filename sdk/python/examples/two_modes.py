"""Local or remote is one argument; all else is the same.

usage: two_modes.py local
       two_modes.py remote http://sandbox-server:8000
"""

import sys
import tempfile

from cove import SandboxClient


def client() -> SandboxClient:
    if sys.argv[1] == "local":
        return SandboxClient(mode="local")
    return SandboxClient(mode="remote", server_url=sys.argv[2])


with client() as sandbox:
    sandbox.get_or_create_session(user_id="ada", thread_id="modes", timeout_minutes=30)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("name,amount\na,1\nb,2\n")
        file.flush()
        sandbox.upload_file(file.name, "in.csv", on_progress=lambda done, total: print(f"sent {done} of {total} bytes"))
    result = sandbox.execute("cut -d , -f 2 in.csv | tail -n 2 > out.txt && wc -l < out.txt")
    print("lines:", result["stdout"].strip())
    print("files:", sorted(f["path"] for f in sandbox.list_files()))
    print("result:", sandbox.download_file("out.txt").decode().split())
    sandbox.close_session()

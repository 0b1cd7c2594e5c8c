"""Opens a sandbox, says so, waits for a line, and runs a command in it, twice, until the
answer is not that it should be asked again."""

import json
import sys
import time

from cove import Sandbox, UnavailableError


def run(sandbox: Sandbox) -> dict:
    while True:
        try:
            x = sandbox.commands.run("echo it runs")
        except UnavailableError as err:
            if err.reason != "node_away":
                raise
            time.sleep(0.1)
            continue
        return {"recreated": x.session_recreated, "stdout": x.stdout, "session_id": sandbox.sandbox_id}


sandbox = Sandbox.create()
print(json.dumps({"session_id": sandbox.sandbox_id}), flush=True)
sys.stdin.readline()
print(json.dumps(run(sandbox)), flush=True)
print(json.dumps(run(sandbox)), flush=True)

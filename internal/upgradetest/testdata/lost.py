"""Opens a sandbox, says so, waits for a line, and runs a command in it, twice, until the
answer is not that its node is away or did not answer."""

import json
import sys
import time

from cove import Sandbox, UnavailableError


def run(sandbox: Sandbox) -> dict:
    while True:
        try:
            x = sandbox.commands.run("echo it runs")
        except UnavailableError as err:
            if err.reason not in ("node_away", "outcome_unknown"):  # to run it twice does no harm
                raise
            time.sleep(0.1)
            continue
        return {"recreated": x.session_recreated, "stdout": x.stdout, "session_id": sandbox.sandbox_id}


sandbox = Sandbox.create()
print(json.dumps({"session_id": sandbox.sandbox_id}), flush=True)
sys.stdin.readline()
print(json.dumps(run(sandbox)), flush=True)
print(json.dumps(run(sandbox)), flush=True)

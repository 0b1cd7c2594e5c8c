"""Does what bench asks for, one line of JSON at a time, with the SDK for Python, and
answers each with a line."""

import asyncio
import json
import os
import sys
import time

from cove import AsyncSandbox, Client, Sandbox, AsyncClient

SESSION, KEY = os.environ["SESSION"], os.environ["KEY"]


def runs(url, key):
    """Runs `true` so often, and says how long each took."""
    sandbox = Sandbox.connect(SESSION, client=Client(url, key))

    def run(times):
        took = []
        for _ in range(times):
            began = time.perf_counter_ns()
            ended = sandbox.commands.run(["true"])
            took.append(time.perf_counter_ns() - began)
            ended.raise_for_status()
        return took

    return run


def runs_in_asyncio(url, key):
    """The same on an event loop."""
    loop = asyncio.new_event_loop()
    sandbox = loop.run_until_complete(AsyncSandbox.connect(SESSION, client=AsyncClient(url, key)))

    async def run(times):
        took = []
        for _ in range(times):
            began = time.perf_counter_ns()
            ended = await sandbox.commands.run(["true"])
            took.append(time.perf_counter_ns() - began)
            ended.raise_for_status()
        return took

    return lambda times: loop.run_until_complete(run(times))


ASKED = {
    "socket": runs(os.environ["SOCKET"], ""),
    "tcp": runs(os.environ["ADDRESS"], KEY),
    "asyncio": runs_in_asyncio(os.environ["ADDRESS"], KEY),
}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = {"took": ASKED[asked["call"]](asked["times"])}
    except Exception as err:
        answer = {"error": repr(err)}
    print(json.dumps(answer), flush=True)

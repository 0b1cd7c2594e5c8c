"""Whether a server works, by a whole life of a sandbox. It exits with 1 if not."""

import sys

from cove import Client, CoveError, Sandbox

try:
    with Client(auto_retry=False) as client:
        print("server:", client.health().status)
        with Sandbox.create(client=client) as sandbox:
            print("program:", sandbox.commands.run("echo works").raise_for_status().stdout.strip())
            print("code:", sandbox.code.run("6 * 7").raise_for_status().text)
except CoveError as err:
    print(f"failed: {err}", file=sys.stderr)
    sys.exit(1)

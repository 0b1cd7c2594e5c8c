"""Anthropic's bash tool in a sandbox, with the tool runner of its SDK.

MODEL says which model answers, and the argument what to do.
"""

import os
import sys

from anthropic import Anthropic
from cove import Sandbox
from cove.adapters.anthropic import bash_tool

with Sandbox.create() as sandbox:
    runner = Anthropic().beta.messages.tool_runner(
        model=os.environ.get("MODEL", "claude-sonnet-4-5"),
        max_tokens=1024,
        max_iterations=10,
        tools=[bash_tool(sandbox, timeout=30)],
        messages=[{"role": "user", "content": sys.argv[1]}],
    )
    for block in runner.until_done().content:
        if block.type == "text":
            print(block.text)

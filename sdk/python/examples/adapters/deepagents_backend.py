"""A deep agent whose files and commands are in a sandbox.

MODEL says which model answers, and the argument what to do.
"""

import os
import sys

from cove import Sandbox
from cove.adapters.deepagents import CoveBackend
from deepagents import create_deep_agent

with Sandbox.create() as sandbox:
    agent = create_deep_agent(model=os.environ.get("MODEL", "anthropic:claude-sonnet-4-5"), backend=CoveBackend(sandbox))
    answer = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})
    print(answer["messages"][-1].text)

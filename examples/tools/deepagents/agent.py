"""A deep agent whose files and commands are in a sandbox.

COVE_URL and COVE_API_KEY say where Cove is, MODEL which model answers, such as
anthropic:claude-sonnet-4-5, and the first argument what to do.
"""

import os
import sys

from cove_backend import CoveSandbox
from deepagents import create_deep_agent


def run(model, task):
    with CoveSandbox() as sandbox:
        agent = create_deep_agent(model=model, backend=sandbox)
        return agent.invoke({"messages": [{"role": "user", "content": task}]})["messages"]


if __name__ == "__main__":
    task = sys.argv[1] if len(sys.argv) > 1 else "Which kernel does this machine have?"
    print(run(os.environ.get("MODEL", "anthropic:claude-sonnet-4-5"), task)[-1].content)

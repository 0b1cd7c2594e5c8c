"""An agent of LangChain with a sandbox: Python, bash and files.

MODEL says which model answers, and the argument what to do.
"""

import os
import sys

from cove import Sandbox
from cove.adapters.langchain import cove_tools
from langchain.agents import create_agent

with Sandbox.create() as sandbox:
    agent = create_agent(os.environ.get("MODEL", "anthropic:claude-sonnet-4-5"), tools=cove_tools(sandbox, timeout=30))
    answer = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})
    print(answer["messages"][-1].text)

"""An agent of OpenAI's Agents SDK with a shell, Python and files in a sandbox.

MODEL says which model answers, and the argument what to do.
"""

import asyncio
import os
import sys

from agents import Agent, Runner
from cove import AsyncSandbox
from cove.adapters.openai_agents import cove_tools, shell_tool


async def main(task: str) -> None:
    async with await AsyncSandbox.create() as sandbox:
        tools = [shell_tool(sandbox, timeout=30), *cove_tools(sandbox, timeout=30)]
        agent = Agent(name="Worker", model=os.environ.get("MODEL", "gpt-5.1"), tools=tools)
        print((await Runner.run(agent, task)).final_output)


asyncio.run(main(sys.argv[1]))

"""A tool of your own in LangChain: bash in a sandbox that belongs to the conversation.

The user and the thread come from the context of the run, which a model cannot see or
change. They find the sandbox; the first command makes it.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Any, Dict

from cove import AsyncSandboxClient, CoveError
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool

client = AsyncSandboxClient()  # one for all conversations


@dataclass
class AgentContext:
    """Who talks, and in which conversation."""

    user_id: str
    session_id: str


@tool
async def execute_bash_command(command: str, runtime: ToolRuntime[AgentContext], working_dir: str = "/workspace") -> Dict[str, Any]:
    """Run a bash command in the sandbox of this conversation. Files stay for later commands."""
    who = runtime.context
    try:
        await client.get_or_create_session(user_id=who.user_id, thread_id=who.session_id, timeout_minutes=30, policy="agent-bash")
        result = await client.execute(command, timeout=30, auto_retry=True, working_dir=working_dir)
    except CoveError as err:
        return {"status": "error", "error": str(err)}
    return {"status": result["status"], "stdout": result["stdout"], "stderr": result["stderr"], "return_code": result["exit_code"]}


async def main(task: str) -> None:
    agent = create_agent(os.environ.get("MODEL", "anthropic:claude-sonnet-4-5"), tools=[execute_bash_command], context_schema=AgentContext)
    answer = await agent.ainvoke({"messages": [{"role": "user", "content": task}]}, context=AgentContext("ada", "thread-1"))
    print(answer["messages"][-1].text)
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""A tool of an agent: bash in a sandbox that belongs to the conversation.

The user and the thread find the sandbox. It is made by the first command and is
there for all that follow; a model cannot name another one. SANDBOX_MODE and
SANDBOX_URL say where sandboxes are.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Dict, Optional

from cove import AsyncSandboxClient, CoveError

logger = logging.getLogger(__name__)


@dataclass
class AgentContext:
    """Who talks, and in which conversation."""

    user_id: str
    session_id: str


_client: Optional[AsyncSandboxClient] = None


def get_sandbox_client() -> AsyncSandboxClient:
    """One client for all calls of the tool."""
    global _client
    if _client is None:
        _client = AsyncSandboxClient()
    return _client


async def execute_bash_command(command: str, working_dir: str = "/workspace", context: Optional[AgentContext] = None) -> Dict[str, Any]:
    """Run a bash command. Files stay for the rest of the conversation."""
    if context is None or not context.session_id:
        return {"status": "error", "error": "there is no conversation"}
    client = get_sandbox_client()
    try:
        session = await client.get_or_create_session(
            user_id=context.user_id, thread_id=context.session_id, timeout_minutes=30, policy="agent-bash"
        )
        logger.info("session %s is %s", session["session_id"], session["status"])
        result = await client.execute(command, timeout=30, auto_retry=True, working_dir=working_dir)
    except CoveError as err:
        return {"status": "error", "error": str(err), "stdout": "", "stderr": "", "return_code": -1}
    answer = {
        "status": "success" if result["exit_code"] == 0 else "error",
        "stdout": result["stdout"],
        "stderr": result["stderr"],
        "return_code": result["exit_code"],
    }
    if result["status"] == "blocked":
        answer["note"] = result["refusal"]["reason"]
    if session["created"] or result.get("session_recreated"):
        answer["note"] = "This is a new sandbox. It had no files yet."
    return answer


async def main() -> None:
    me, other = AgentContext("ada", "thread-1"), AgentContext("ada", "thread-2")
    steps = [
        (me, "printf '[{\"amount\": 42}, {\"amount\": 100}]' > data.json"),
        (me, "grep -o '[0-9]*' data.json | awk '{sum += $1} END {print sum}'"),
        (other, "ls"),
        (me, "rm -rf /workspace"),
        (None, "ls"),
    ]
    for context, command in steps:
        print(await execute_bash_command(command, context=context))
    client = get_sandbox_client()
    for context in (me, other):
        session = await client.get_or_create_session(user_id=context.user_id, thread_id=context.session_id, timeout_minutes=30, policy="agent-bash")
        await client.close_session(session["session_id"])
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(main())

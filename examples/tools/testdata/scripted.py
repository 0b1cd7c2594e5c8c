"""Runs the example with a model that says what a script tells it, and prints what the
tools answered."""

import json

from agent import run
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def call(n, name, **args):
    return AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": f"call_{n}"}])


steps = [
    call(1, "write_file", file_path="/workspace/sum.py", content="print(sum(range(10)))\n"),
    call(2, "execute", command="python3 /workspace/sum.py && id -un"),
    call(3, "edit_file", file_path="/workspace/sum.py", old_string="10", new_string="11"),
    call(4, "execute", command="python3 sum.py; exit 3"),
    call(5, "read_file", file_path="/workspace/sum.py"),
    call(6, "ls", path="/workspace"),
    call(7, "grep", pattern="range", path="/workspace"),
    call(8, "read_file", file_path="/workspace/nosuch"),
    AIMessage(content="done"),
]
messages = run(Scripted(messages=iter(steps)), "add numbers")
for m in messages:
    if isinstance(m, ToolMessage):
        print(json.dumps({"tool": m.name, "content": str(m.content)}))
print(json.dumps({"answer": messages[-1].content}))

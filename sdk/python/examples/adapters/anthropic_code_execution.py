"""Code execution as Anthropic's models know it, in a sandbox of your own.

MODEL says which model answers, and the argument what to do. Files that its code
leaves are fetched when it is done.
"""

import os
import sys

from anthropic import Anthropic
from cove import Sandbox
from cove.adapters.anthropic import CodeExecution

client = Anthropic()
messages = [{"role": "user", "content": sys.argv[1]}]

with Sandbox.create() as sandbox:
    execution = CodeExecution(sandbox, timeout=30)
    for _ in range(10):
        said = client.messages.create(model=os.environ.get("MODEL", "claude-sonnet-4-5"), max_tokens=1024, tools=execution.tools, messages=messages)
        messages.append({"role": "assistant", "content": said.content})
        results = [execution.answer(block) for block in said.content if block.type == "tool_use"]
        if not results:
            break
        messages.append({"role": "user", "content": results})
    print(said.content[-1].text)
    for path in execution.files:
        print(path, len(sandbox.files.read_bytes(path)), "bytes")

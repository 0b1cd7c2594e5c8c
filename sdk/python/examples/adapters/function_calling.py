"""An agent without a framework: a loop around any model that speaks chat/completions.

OPENAI_BASE_URL, OPENAI_API_KEY and MODEL say which. The argument is what to do.
"""

import json
import os
import sys
import urllib.request

from cove import Sandbox
from cove.adapters.functions import Functions

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"


def ask(request):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(request).encode(), headers)) as response:
        return json.load(response)["choices"][0]["message"]


with Sandbox.create() as sandbox:
    functions = Functions(sandbox, timeout=30)
    messages = [{"role": "user", "content": sys.argv[1]}]
    for _ in range(20):
        model = os.environ.get("MODEL", "gpt-5.1")
        said = ask({"model": model, "messages": messages, "tools": functions.schemas("chat"), "tool_choice": "auto"})
        messages.append({"role": "assistant", "content": said.get("content"), "tool_calls": said.get("tool_calls") or []})
        if not said.get("tool_calls"):
            break
        for call in said["tool_calls"]:
            text = functions.call(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    print(messages[-1]["content"])

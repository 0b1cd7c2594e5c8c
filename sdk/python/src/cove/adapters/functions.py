"""Tools for a loop of your own, with any model that can call functions.

    functions = Functions(sandbox)
    request = {"model": …, "messages": messages, "tools": functions.schemas("chat")}
    …
    text = functions.call(call["function"]["name"], call["function"]["arguments"])

call answers with a text of a bounded size, whatever happens: python, bash, read_file,
write_file, edit_file and list_files. AsyncFunctions is the same in asyncio.
"""

from __future__ import annotations

from .._async.functions import AsyncFunctions
from .._sync.functions import Functions

__all__ = ["AsyncFunctions", "Functions"]

"""Makes cove/_sync from cove/_async, so that there is one text of both.

usage: mirror.py          writes the files
       mirror.py --check  writes nothing: status 1 if one of them is not as it would be
"""

from __future__ import annotations

import pathlib
import re
import sys

BY_HAND = {"__init__.py", "stream.py"}
HEAD = "# Made from _async/{} by mirror.py: change that, not this.\n"
WORDS = [
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync(Iterator|Iterable)\b", r"\1"),
    (r"\b(_?)Async([A-Z])", r"\1\2"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b_async\b", "_sync"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
]


def mirrored(name: str, text: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return HEAD.format(name) + text


def main() -> int:
    package = pathlib.Path(__file__).parent / "src" / "cove"
    stale = []
    for source in sorted((package / "_async").glob("*.py")):
        if source.name in BY_HAND:
            continue
        made = package / "_sync" / source.name
        text = mirrored(source.name, source.read_text())
        if not made.exists() or made.read_text() != text:
            stale.append(made.name)
            if "--check" not in sys.argv:
                made.write_text(text)
    if stale and "--check" in sys.argv:
        print("not as mirror.py makes them: " + ", ".join(stale), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

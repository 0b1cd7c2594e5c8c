"""Runs the scenarios on the first line of standard input with this SDK, and prints a line
of JSON for each. Where a step restarts the server, it prints one that asks for that, and
waits for one that says that it was done.

usage: scenarios.py waiting|asyncio
"""

from __future__ import annotations

import json
import sys

import both_ways

if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    if sys.argv[1] == "waiting":
        both_ways.waiting("play").play_all(given)
    else:
        import asyncio

        import play

        asyncio.run(play.play_all(given))

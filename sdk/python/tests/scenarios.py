"""Runs the scenarios on standard input with this SDK, and prints a line of JSON for each.

usage: scenarios.py waiting|asyncio
"""

from __future__ import annotations

import json
import sys

import both_ways

if __name__ == "__main__":
    given = json.load(sys.stdin)
    if sys.argv[1] == "waiting":
        both_ways.waiting("play").play_all(given)
    else:
        import asyncio

        import play

        asyncio.run(play.play_all(given))

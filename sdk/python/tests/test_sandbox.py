"""test_async as it is for callers that wait."""

from __future__ import annotations

import unittest

import both_ways

_module = both_ways.waiting("test_async")
Programs, Files, Rest = _module.Programs, _module.Files, _module.Rest

if __name__ == "__main__":
    unittest.main()

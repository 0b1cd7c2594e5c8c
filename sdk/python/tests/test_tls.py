"""A server with TLS, both ways."""

from __future__ import annotations

import unittest

import both_ways
import tls

TLS = tls.TLS
_waiting = both_ways.waiting("tls")


class WaitingTLS(_waiting.TLS):  # type: ignore[name-defined,misc]
    pass


if __name__ == "__main__":
    unittest.main()

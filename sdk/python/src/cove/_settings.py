"""Which server is meant: what the caller says, and else the environment."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional

from ._address import Address, check_key, parse_address, unix_address
from ._errors import configuration
from ._local import Home


class Target(NamedTuple):
    """A server, the key that it is shown, and, in local mode, who starts it."""

    address: Address
    key: str
    home: Optional[Home]


def choose(mode: Optional[str], url: Optional[str], api_key: Optional[str], home: Optional[str], cove_bin: Optional[str]) -> Target:
    """The server that the arguments name, or COVE_URL, or SANDBOX_MODE and
    SANDBOX_URL; where none of them does, that of COVE_HOME on this machine."""
    env = os.environ
    if mode not in (None, "local", "remote"):
        raise configuration("mode", f"{mode!r} is no mode", 'use "local" or "remote"')
    if mode == "local" and url:
        raise configuration("server_url", "goes with the mode remote", 'leave it out, or use mode="remote"')
    if mode is None and not url:
        url = env.get("COVE_URL") or None
        mode = "remote" if url else env.get("SANDBOX_MODE") or "local"
        if mode not in ("local", "remote"):
            raise configuration("SANDBOX_MODE", f"{mode!r} is no mode", "set it to local or remote")
    if mode == "local":
        where = Home(home, cove_bin)
        return Target(unix_address(where.socket), "", where)
    url = url or env.get("COVE_URL") or env.get("SANDBOX_URL") or "http://localhost:8000"
    key = env.get("COVE_API_KEY", "") if api_key is None else api_key
    return Target(parse_address(url), check_key(key), None)

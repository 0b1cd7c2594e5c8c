"""Where sandboxes are, as a setting of a backend: SANDBOX_MODE and SANDBOX_URL say it."""

import os
from typing import NamedTuple

from cove import CoveError, SandboxClient


class Settings(NamedTuple):
    """What an operator can change without touching the code."""

    sandbox_mode: str  # local: on this machine; remote: at sandbox_url
    sandbox_url: str  # only used in remote mode

    @classmethod
    def from_env(cls) -> "Settings":
        return cls(os.environ.get("SANDBOX_MODE", "local"), os.environ.get("SANDBOX_URL", "http://localhost:8000"))


def sandbox_client(settings: Settings) -> SandboxClient:
    if settings.sandbox_mode == "remote":
        return SandboxClient(mode="remote", server_url=settings.sandbox_url)
    return SandboxClient(mode=settings.sandbox_mode)


settings = Settings.from_env()
with sandbox_client(settings) as client:
    session = client.get_or_create_session(user_id="ada", thread_id="settings", timeout_minutes=30)
    print(settings.sandbox_mode, session["status"])
    print(client.execute("echo '{\"data\": [1, 2, 3]}' > data.json && cat data.json")["stdout"], end="")
    client.close_session()

try:
    sandbox_client(Settings("cloud", ""))
except CoveError as err:
    print(err)

"""Local mode: the server of COVE_HOME, which the executable cove starts on demand.

Who asks has no server to configure: its socket is found, and where nobody
answers there, a command of cove is run that makes somebody do so.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Mapping, Optional

from ._errors import ConfigurationError, CoveError, ServerConnectionError, configuration, from_problem, is_problem

START_TIME = 90.0  # seconds until a server must answer; cove itself gives up after a minute
_SAID = 4 << 10  # bytes of a complaint
_HOLDER = 64 << 10  # bytes about who serves
_SOCKET = 107  # bytes of the path of a socket that the system takes


class Home:
    """A COVE_HOME and who can start its server."""

    def __init__(self, home: Optional[str] = None, cove_bin: Optional[str] = None, env: Optional[Mapping[str, str]] = None) -> None:
        self._env = dict(os.environ if env is None else env)
        self.path = os.path.abspath(home or self._env.get("COVE_HOME") or self._default())
        self._bin = cove_bin

    def _default(self) -> str:
        if os.geteuid() == 0:
            return "/var/lib/cove"
        for base, below in ((self._env.get("XDG_STATE_HOME"), "cove"), (self._env.get("HOME"), ".local/state/cove")):
            if base and os.path.isabs(base):
                return os.path.join(base, below)
        raise configuration("COVE_HOME", "is not set and there is no HOME to derive it from", "set it to a directory that belongs to you")

    @property
    def socket(self) -> str:
        """The path of the server's socket."""
        return os.path.join(self.path, "cove.sock")

    def check(self) -> None:
        """Demand that nobody else can have put the socket there."""
        if len(os.fsencode(self.socket)) > _SOCKET:
            raise configuration("COVE_HOME", f"{self.path} is too long a path for the socket in it", f"set it to one of {_SOCKET - len('/cove.sock')} bytes or less")
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            return  # cove makes it
        except (OSError, ValueError) as err:
            why = getattr(err, "strerror", None) or err
            raise configuration("COVE_HOME", f"{self.path!r} cannot be looked at: {why}", "set it to a directory of your own") from err
        if not stat.S_ISDIR(info.st_mode):
            raise configuration("COVE_HOME", f"{self.path} is not a directory", "name one, or a path that does not exist yet")
        if info.st_uid != os.geteuid():
            raise configuration("COVE_HOME", f"{self.path} belongs to another user", "set it to a directory of your own")
        if info.st_mode & 0o022:
            raise configuration("COVE_HOME", f"{self.path} can be changed by others", f"run chmod go-w {self.path}")

    def on_demand(self) -> bool:
        """Whether who serves this home was started by somebody who asked, as start does."""
        try:
            with open(os.path.join(self.path, "cove.lock"), "rb") as file:
                holder = json.loads(file.read(_HOLDER))
        except (OSError, ValueError):
            return False
        return isinstance(holder, dict) and holder.get("on_demand") is True

    def executable(self) -> str:
        """The program cove: the one that was named, the one in this package, or that of PATH."""
        named = self._bin or self._env.get("COVE_BIN")
        if named:
            if not os.access(named, os.X_OK):
                raise configuration("COVE_BIN", f"{named} cannot be executed", "set it to the path of cove")
            return os.path.abspath(named)
        inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cove")
        if os.access(inside, os.X_OK):
            return inside
        import shutil  # only who looks for a program waits for it

        found = shutil.which("cove", path=self._env.get("PATH"))
        if found:
            return found
        raise ConfigurationError(
            "local mode needs the executable cove, and there is none in this package or in PATH",
            reason="configuration",
            remedy='install cove, set COVE_BIN to its path, or use mode="remote" with the URL of a server',
        )

    def start(self) -> None:
        """Make somebody serve this home. Of many callers at once, one starts a server."""
        import subprocess

        self.check()
        # What names another server would keep the command from this one.
        env = {k: v for k, v in self._env.items() if k not in ("COVE_URL", "SANDBOX_MODE", "SANDBOX_URL")}
        args = [self.executable(), "--json", "--home", self.path, "sandbox", "ls", "--label", "cove-python=none"]
        try:
            done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=START_TIME, check=False)
        except subprocess.TimeoutExpired:
            raise ServerConnectionError(f"no server of {self.path} answered in time", reason="connection", remedy=f"see {self.path}/daemon.log") from None
        except OSError as err:
            raise ConfigurationError(f"{args[0]} cannot be run: {err.strerror}", reason="configuration", remedy="set COVE_BIN to the path of cove") from err
        if done.returncode != 0:
            raise _complaint(args[0], done.stderr)


def _complaint(program: str, said: bytes) -> CoveError:
    """The exception in what a command wrote at its end."""
    text = said[-_SAID:].decode("utf-8", "replace").strip()
    for line in reversed(text.splitlines()):
        try:
            body = json.loads(line)
        except ValueError:
            continue
        if is_problem(body):
            return from_problem(body)
    return ServerConnectionError(f"{program} could not start a server: {text or 'it said nothing'}", reason="connection", remedy="run cove doctor")

"""A sandbox as the backend of LangChain's deep agents.

    agent = create_deep_agent(model=model, backend=CoveBackend(sandbox))

Commands and files of the agent are in the sandbox; nothing runs where this program
runs.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from .._errors import CoveError, DeniedError, InvalidError, NotFoundError, SessionNotFoundError
from .._sync.sandbox import Sandbox, checked
from .._told import ended, failed, renewed
from . import missing

try:
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as err:
    raise missing("deepagents", "deepagents") from err

# What a command may say. The agent's own tools read files by commands, in pages of half
# of it, and what is too long for its model they put into files.
OUTPUT = 1 << 20
FILE = 64 << 20  # bytes of a file that is fetched whole


class CoveBackend(BaseSandbox):  # type: ignore[misc] # it is Any where it is not installed
    """One sandbox. Whoever made it ends it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = checked(sandbox)

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.sandbox.sandbox_id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """Run a line in a fresh shell. What did not work is an answer, too."""
        heard = _Heard()
        try:
            ran = self.sandbox.commands.run(command, timeout=timeout or None, on_stdout=heard.stdout, on_stderr=heard.stderr)
        except CoveError as err:
            return ExecuteResponse(output=failed(err), exit_code=1)
        texts = [] if ran.outcome == "blocked" else heard.texts()  # the streams repeat it
        if renewed(ran):
            texts.append(f"\n{renewed(ran)}\n")
        if ran.outcome != "exited":  # an exit code says it itself
            texts.append(f"\n[{ended(ran)}]\n")
        return ExecuteResponse(output="".join(texts), exit_code=ran.exit_code, truncated=heard.cut)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        """Write files."""
        return [FileUploadResponse(path=path, error=self._written(path, content)) for path, content in files]

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        """Read files."""
        return [self._read(path) for path in paths]

    def _written(self, path: str, content: bytes) -> Optional[str]:
        try:
            self.sandbox.files.write(path, content)
        except CoveError as err:
            return _word(err)
        return None

    def _read(self, path: str) -> FileDownloadResponse:
        try:
            content = self.sandbox.files.read_bytes(path, length=FILE + 1)
        except CoveError as err:
            return FileDownloadResponse(path=path, error="is_directory" if self._is_dir(path, err) else _word(err))
        if len(content) > FILE:
            return FileDownloadResponse(path=path, error=f"the file is longer than {FILE} bytes")
        return FileDownloadResponse(path=path, content=content)

    def _is_dir(self, path: str, err: CoveError) -> bool:
        """Whether a file could not be read since it is none."""
        try:
            return isinstance(err, InvalidError) and self.sandbox.files.stat(path).is_dir
        except CoveError:
            return False


class _Heard:
    """What a command says, up to a bound of both streams together."""

    def __init__(self) -> None:
        self.cut = False
        self._out: List[str] = []
        self._err: List[str] = []
        self._left = OUTPUT

    def stdout(self, text: str) -> None:
        self._take(self._out, text)

    def stderr(self, text: str) -> None:
        self._take(self._err, text)

    def texts(self) -> List[str]:
        return self._out + self._err

    def _take(self, texts: List[str], text: str) -> None:
        if len(text) > self._left:
            self.cut = True
        if self._left:
            texts.append(text[: self._left])
            self._left -= len(texts[-1])


def _word(err: CoveError) -> str:
    """The word that deep agents have for what went wrong with a file, or our own."""
    if isinstance(err, NotFoundError) and not isinstance(err, SessionNotFoundError):
        return "file_not_found"
    if isinstance(err, DeniedError):
        return "permission_denied"
    if isinstance(err, InvalidError):
        return "invalid_path"
    return failed(err)

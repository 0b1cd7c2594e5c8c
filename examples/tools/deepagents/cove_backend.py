"""A sandbox of Cove as a backend of LangChain's deep agents.

Commands and files of an agent are in the sandbox; nothing runs where this program
runs. It needs nothing beside deepagents and the standard library.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox


class CoveSandbox(BaseSandbox):
    """One sandbox. Close it, or use it in a with statement."""

    def __init__(self, url=None, key=None, **spec):
        self._base = (url or os.environ["COVE_URL"]) + "/api/sandboxes"
        self._key = key or os.environ["COVE_API_KEY"]
        self._id = self._ask("POST", "", spec)["session_id"]

    @property
    def id(self):
        return self._id

    def execute(self, command, *, timeout=None):
        ran = self._ask("POST", f"/{self._id}/execute", {"command": command, **({"timeout": timeout} if timeout else {})})
        output = ran.get("stdout", "") + ran.get("stderr", "")
        if ran["outcome"] == "blocked":
            output += "blocked by policy: " + ran["refusal"]["reason"]
        elif ran["outcome"] == "timed_out":
            output += "the time ran out"
        return ExecuteResponse(output=output, exit_code=ran["exit_code"], truncated=ran["truncated"])

    def upload_files(self, files):
        return [FileUploadResponse(path=path, error=self._file("PUT", path, content)[1]) for path, content in files]

    def download_files(self, paths):
        answers = []
        for path in paths:
            content, error = self._file("GET", path)
            answers.append(FileDownloadResponse(path=path, content=content, error=error))
        return answers

    def close(self):
        self._ask("DELETE", f"/{self._id}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _file(self, method, path, content=None):
        """What is in a file, and the word that deep agents have for what went wrong."""
        words = {400: "invalid_path", 403: "permission_denied", 404: "file_not_found"}
        query = urllib.parse.urlencode({"path": path})
        try:
            return self._send(method, f"/{self._id}/files?{query}", content), None
        except urllib.error.HTTPError as e:
            if e.code not in words:
                raise
            return None, words[e.code]

    def _ask(self, method, path, body=None):
        try:
            text = self._send(method, path, json.dumps(body).encode() if body is not None else None, "application/json")
        except urllib.error.HTTPError as e:
            problem = json.loads(e.read() or b"{}")
            raise RuntimeError("\n".join(filter(None, [problem.get("error", str(e)), problem.get("remedy")]))) from e
        return json.loads(text) if text else None

    def _send(self, method, path, body=None, kind="application/octet-stream"):
        request = urllib.request.Request(self._base + path, body, method=method)
        request.add_header("Authorization", f"Bearer {self._key}")
        if body is not None:
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request) as response:
            return response.read()

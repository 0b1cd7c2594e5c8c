"""Servers for the time of a test: real ones of cove, and one that says what it is told to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from typing import Callable, Dict, List, Optional


class Server:
    """cove serve with a home of its own, which can be killed and started again."""

    def __init__(self, provider: str = "fake", **settings: str) -> None:
        self.dir = tempfile.mkdtemp(prefix="cove")
        self.settings = {"SANDBOX_PROVIDER": provider, "POOL_SIZE": "0", "COVE_LOG_LEVEL": "error", **settings}
        self.address = "127.0.0.1:0"
        self.process: Optional["subprocess.Popen[bytes]"] = None
        self.start()

    def start(self) -> None:
        args = [os.environ["COVE_BIN"], "--home", self.dir + "/home", "serve", "--json", "--addr", self.address]
        self.process = subprocess.Popen(args, env={**os.environ, **self.settings}, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        self.url: str = ready["url"]
        self.address = self.url.rpartition("/")[2]
        with open(ready["key_file"]) as f:
            self.key = f.read().strip()

    def end(self, with_signal: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(with_signal)
            self.process.communicate()
            self.process = None

    def close(self) -> None:
        self.end()
        shutil.rmtree(self.dir)


class Peer:
    """Something at an address that answers each request with what answer makes of its
    head. One that holds says no more after that, and stays until the other side leaves."""

    def __init__(self, answer: Callable[[str], bytes], version: str = "dev", holds: bool = False) -> None:
        self.answer = answer
        self._holds = holds
        self.health = json.dumps({"status": "healthy", "version": version}).encode()
        self.heads: List[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        connection.settimeout(60)
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head = data.decode("latin-1")
            self.heads.append(head)
            if head.startswith("GET /health"):
                connection.sendall(ok(self.health))
                return
            connection.sendall(self.answer(head))
            while self._holds and connection.recv(65536):
                pass
        except OSError:
            pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def ok(body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    """An answer that is a success, after which the connection ends."""
    more: Dict[str, str] = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **headers}
    return ("HTTP/1.1 200 OK\r\n" + "".join(f"{k}: {v}\r\n" for k, v in more.items()) + "\r\n").encode() + body

"""What can be tested without a server."""

from __future__ import annotations

import asyncio
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

import both_ways  # noqa: F401: with it the folder of the package is looked in
import cove
from cove import _address, _errors, _models, _settings, _sse, _told, _wire
from cove._async.stream import AsyncStream
from cove._local import Home

import backend


class Events(unittest.TestCase):
    def feed(self, data: bytes, size: int) -> "list[_sse.Event]":
        parser, events = _sse.Parser(), []
        for i in range(0, len(data), size):
            events += parser.feed(data[i : i + size])
        return events

    def test_pieces_of_any_size_give_the_same_events(self) -> None:
        data = b": hello\n\nevent: stdout\nid: 7\ndata: {}\n\nevent:exit\r\ndata: a\r\ndata:  b\r\n\r\ndata: late\r\rdata: half"
        want = [_sse.Event("stdout", "7", b"{}"), _sse.Event("exit", "7", b"a\n b"), _sse.Event("", "7", b"late")]
        for size in (1, 2, 3, 7, 1000):
            self.assertEqual(self.feed(data, size), want, size)

    def test_an_event_has_a_bound(self) -> None:
        for endless in (b"data: x", b"x" * 7, b"data: xx\n"):
            with self.assertRaises(_sse.TooLarge):
                parser = _sse.Parser(most=1000)
                for _ in range(1000):
                    parser.feed(endless)

    def test_noise_is_no_crash(self) -> None:
        noise = random.Random(1)
        for _ in range(200):
            _sse.Parser(most=100_000).feed(bytes(noise.choice(b"\r\n:d ata\x00\xff") for _ in range(noise.randrange(300))))


class Addresses(unittest.TestCase):
    def test_good(self) -> None:
        for url, want in {
            "http://h:8000": ("h", 8000, False, "", None),
            "https://h/base/": ("h", 443, True, "/base", None),
            "http://[::1]:1": ("::1", 1, False, "", None),
            "unix:///run/x%20y.sock": ("cove", 0, False, "", "/run/x y.sock"),
        }.items():
            a = _address.parse_address(url)
            self.assertEqual((a.host, a.port, a.tls, a.prefix, a.socket), want)

    def test_bad(self) -> None:
        for url in ("", "h:8000", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x", "unix://h/x", "http://h:port", "http://h\r\nX: y", "http://h:99999"):
            with self.assertRaises(cove.ConfigurationError, msg=url):
                _address.parse_address(url)

    def test_a_key_with_a_line_in_it_is_none(self) -> None:
        with self.assertRaises(cove.ConfigurationError):
            cove.Client("http://h", "a\r\nX-Evil: 1")

    def test_a_peer_that_is_gone_is_noticed_within_minutes(self) -> None:
        with socket.socket() as sock:
            _address.keep_alive(sock)
            self.assertTrue(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
            if sys.platform == "linux":
                first, every, times = (sock.getsockopt(socket.IPPROTO_TCP, o) for o in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT))
                self.assertLessEqual(first + every * times, 60)


class Settings(unittest.TestCase):
    def choose(self, mode: "str | None" = None, url: "str | None" = None, **env: str) -> _settings.Target:
        with mock.patch.dict(os.environ, {"HOME": "/home/ada", **env}, clear=True):
            return _settings.choose(mode, url, None, None, None)

    def test_which_server_is_meant(self) -> None:
        self.assertTrue(self.choose().address.socket.endswith("/cove.sock"))  # type: ignore[union-attr]
        self.assertEqual(self.choose(COVE_URL="http://a:1", COVE_API_KEY="k").key, "k")
        self.assertEqual(self.choose(SANDBOX_MODE="remote", SANDBOX_URL="http://b:2").address.port, 2)
        self.assertEqual(self.choose("remote").address.name, "http://localhost:8000")
        self.assertEqual(self.choose("remote", "http://c:3", COVE_URL="http://a:1").address.port, 3)
        self.assertIsNotNone(self.choose("local", COVE_URL="http://a:1").home)
        self.assertIsNone(self.choose(url="http://c:3").home)

    def test_what_does_not_fit_is_said(self) -> None:
        for args, env in ((("cloud",), {}), (("local", "http://a"), {}), ((), {"SANDBOX_MODE": "elsewhere"})):
            with self.assertRaises(cove.ConfigurationError) as caught:
                self.choose(*args, **env)
            self.assertTrue(caught.exception.remedy)


class Local(unittest.TestCase):
    def test_a_home_that_others_can_change_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            os.chmod(dir, 0o777)
            with self.assertRaises(cove.ConfigurationError) as caught:
                Home(dir).check()
            self.assertIn("chmod go-w", caught.exception.remedy)
            os.chmod(dir, 0o700)
            Home(dir).check()

    def test_no_executable(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            with self.assertRaises(cove.ConfigurationError) as caught:
                Home(dir, env={"PATH": dir}).executable()
            self.assertIn("COVE_BIN", caught.exception.remedy)
            with self.assertRaises(cove.ConfigurationError):
                Home(dir, env={"COVE_BIN": dir + "/nothing"}).executable()

    def test_what_the_executable_says_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            program = pathlib.Path(dir, "cove")
            for said, code, want in (
                ('{"code":"conflict","error":"it is taken","remedy":"stop it"}', "conflict", "it is taken"),
                ("no JSON at all", "unavailable", "no JSON at all"),
            ):
                program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
                program.chmod(0o755)
                with self.assertRaises(cove.CoveError) as caught:
                    Home(dir + "/home", str(program)).start()
                self.assertEqual(caught.exception.code, code)
                self.assertIn(want, caught.exception.message)


class Values(unittest.TestCase):
    def test_bytes_travel(self) -> None:
        for data in (b"", b"text", "é".encode(), b"\xff\x00", bytes(range(256))):
            self.assertEqual(_wire.data_of(_wire.text_or_base64("x", data), "x"), data)
        name = os.fsdecode(b"a\xff")
        self.assertEqual(_wire.name_of(_wire.text_or_base64("path", name), "path"), name)

    def test_records_do_not_change_and_forgive_what_is_new(self) -> None:
        x = _models.execution({"exit_code": 0, "status": "success", "outcome": "exited", "stdout": "a", "of_tomorrow": 1})
        self.assertEqual((x.stdout, x.raw["of_tomorrow"]), ("a", 1))
        with self.assertRaises(AttributeError):
            x.stdout = "b"
        with self.assertRaises(cove.ServerConnectionError):
            _models.execution({"stdout": "a"})
        self.assertIs(x.raise_for_status(), x)

    def test_failures_as_exceptions(self) -> None:
        for outcome, code in {"exited": "invalid", "timed_out": "timeout", "out_of_memory": "exhausted", "blocked": "denied", "killed": "canceled", "signaled": "invalid"}.items():
            x = _models.execution({"exit_code": 1, "status": "error", "outcome": outcome, "stderr": "one\nlast \x1b[31mline\n"})
            with self.assertRaises(cove.CommandExecutionError) as caught:
                x.raise_for_status()
            self.assertEqual((caught.exception.code, caught.exception.reason), (code, "command_failed"))
            self.assertNotIn("\x1b", str(caught.exception))

    def test_every_code_has_an_exception(self) -> None:
        for code in "invalid unauthenticated denied not_found conflict exhausted unsupported unavailable timeout canceled internal".split():
            self.assertEqual(_errors.from_problem({"code": code, "error": "x"}).code, code)
        for reason in "no_such_session session_expired session_closed node_lost volume_overrun kernel_memory".split():
            self.assertIsInstance(_errors.from_problem({"code": "not_found", "error": "x", "reason": reason}), cove.SessionNotFoundError)
        self.assertIsInstance(_errors.from_problem({"code": "exhausted", "error": "x", "reason": "capacity"}), cove.ResourceLimitError)
        self.assertFalse(_errors.is_problem({"code": "odd", "error": "x"}))

    def test_volumes(self) -> None:
        from cove._sync.sandbox import volume_of

        self.assertEqual(volume_of("/a:/b:rw"), {"source": "/a", "target": "/b", "write": True})
        self.assertEqual(volume_of("/a:/b"), {"source": "/a", "target": "/b"})
        for bad in ("/a", "/a:/b:rx", ":/b", "/a:", "/a:/b:ro:x"):
            with self.assertRaises(cove.InvalidError):
                volume_of(bad)


class Streams(unittest.IsolatedAsyncioTestCase):
    async def test_a_peer_that_sends_no_more_holds_up_who_writes(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = _address.parse_address("http://127.0.0.1:%d" % listener.getsockname()[1])
            stream = await AsyncStream.connect(address, 10.0, None)
            self.addCleanup(stream.abort)
            with listener.accept()[0] as peer:
                peer.shutdown(socket.SHUT_WR)
                self.assertEqual(await stream.recv(10.0), b"")
                for _ in range(256):
                    try:
                        await asyncio.wait_for(stream.send(bytes(1 << 20)), 0.5)
                    except asyncio.TimeoutError:
                        break
                else:
                    self.fail("who reads nothing is sent all of it")
                reading = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(None, _drain, peer))
                await stream.send(b"last")
                stream.finish()
                self.assertTrue((await reading).endswith(b"last"))


def _drain(peer: socket.socket) -> bytes:
    """The end of all that comes."""
    end = b""
    while True:
        piece = peer.recv(1 << 20)
        if not piece:
            return end
        end = (end + piece)[-10:]


class Package(unittest.TestCase):
    def test_every_name_is_there(self) -> None:
        for name in cove.__all__:
            self.assertIsNotNone(getattr(cove, name))
        with self.assertRaises(AttributeError):
            cove.nothing  # noqa: B018
        self.assertEqual(sorted(dir(cove)), sorted(cove.__all__))

    def test_asyncio_is_not_imported_for_those_who_wait(self) -> None:
        code = "import sys, cove; sys.exit(any(m in sys.modules for m in ('asyncio', 'http.client', 'ssl', 'subprocess', 'dataclasses')))"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)

    def test_both_ways_have_the_same_methods(self) -> None:
        for way in ("Sandbox", "Client", "SandboxClient", "Process", "Output", "Terminal"):
            names = [{n for n in dir(kind) if re.match("[a-z]", n)} for kind in (getattr(cove, way), getattr(cove, "Async" + way))]
            self.assertEqual(names[0] - {"close"}, names[1] - {"aclose"}, way)

    def test_a_text_for_a_model_is_cut_in_its_middle(self) -> None:
        for most in range(0, 300):
            text = _told.cut("a" * 500 + "b" * 500, most)
            self.assertLessEqual(len(text), most)
            if most > 100:
                self.assertRegex(text, r"^a+\n\[… [0-9]+ characters are cut here …\]\nb+$")
        self.assertEqual(_told.cut("short", 5), "short")


class Wheels(unittest.TestCase):
    def built(self, **env: str) -> "tuple[str, dict[str, str]]":
        """The name of a wheel, and what it says of itself."""
        with tempfile.TemporaryDirectory() as dir, mock.patch.dict(os.environ, env):
            name = backend.build_wheel(dir)
            with zipfile.ZipFile(pathlib.Path(dir, name)) as wheel:
                return name, {path.rpartition("/")[2]: wheel.read(path).decode() for path in wheel.namelist() if ".dist-info/" in path}

    def elf(self, machine: int, segments: "tuple[int, ...]" = (1, 1), kind: int = 2) -> str:
        """A file that begins as an executable for a machine does, and has such segments."""
        head = b"\x7fELF" + bytes([kind, 1]) + bytes(12) + struct.pack("<H", machine) + bytes(12) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, len(segments))
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(head.ljust(64, b"\0") + b"".join(struct.pack("<I", one).ljust(56, b"\0") for one in segments))
        self.addCleanup(os.unlink, file.name)
        return file.name

    def test_the_tag_is_that_of_the_executable(self) -> None:
        for machine, name in {62: "x86_64", 183: "aarch64"}.items():
            wheel, said = self.built(COVE_WHEEL_BIN=self.elf(machine))
            self.assertTrue(wheel.endswith(f"-py3-none-manylinux_2_17_{name}.musllinux_1_1_{name}.whl"), wheel)
            self.assertIn("Root-Is-Purelib: false\n", said["WHEEL"])
            self.assertIn(f"Tag: py3-none-musllinux_1_1_{name}\n", said["WHEEL"])

    def test_what_no_tag_is_for_is_refused(self) -> None:
        for path in (self.elf(243), self.elf(62, kind=1), self.elf(62, segments=(1, 3)), __file__, os.devnull):
            with self.assertRaises(SystemExit, msg=path) as caught:
                self.built(COVE_WHEEL_BIN=path)
            self.assertIn("COVE_WHEEL_BIN", str(caught.exception))

    def test_a_wheel_without_an_executable_is_for_all(self) -> None:
        wheel, said = self.built(COVE_WHEEL_BIN="")
        self.assertTrue(wheel.endswith("-py3-none-any.whl"))
        self.assertIn("Root-Is-Purelib: true\n", said["WHEEL"])
        self.assertIn("Apache License", said["LICENSE"])
        self.assertIn("LICENSE,sha256=", said["RECORD"])
        for extra in ("anthropic", "deepagents", "langchain", "openai-agents"):
            self.assertRegex(said["METADATA"], f"\nProvides-Extra: {extra}\nRequires-Dist: {extra}[a-z>=0-9.-]*; extra == '{extra}'\n")

    def test_what_is_built_from_the_source_has_the_license_too(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            with tarfile.open(pathlib.Path(dir, backend.build_sdist(dir))) as tar:
                self.assertIn("LICENSE", [path.partition("/")[2] for path in tar.getnames()])


class Wrapper(unittest.TestCase):
    def test_settings(self) -> None:
        c = cove.WrapperConfig.from_env({"MSB_SESSION_TIMEOUT": "60", "MSB_MAX_SESSIONS": "3", "MSB_DEFAULT_FLAVOR": "medium", "MSB_SHARED_VOLUME_PATH": '["/a:/b"]'})
        self.assertEqual((c.session_timeout, c.max_concurrent_sessions, c.default_flavor, c.shared_volume_mappings), (60, 3, cove.SandboxFlavor.MEDIUM, ["/a:/b"]))
        for bad in ({"MSB_SESSION_TIMEOUT": "soon"}, {"MSB_DEFAULT_FLAVOR": "huge"}, {"MSB_SHARED_VOLUME_PATH": "[1]"}, {"MSB_SHARED_VOLUME_PATH": "["}, {"MSB_SESSION_TIMEOUT": "-1"}, {"MSB_SESSION_TIMEOUT": "nan"}, {"MSB_EXECUTION_TIMEOUT": "-1"}):
            with self.assertRaises(cove.ConfigurationError, msg=str(bad)):
                cove.WrapperConfig.from_env(bad)

    def test_a_client_can_be_made_outside_of_a_loop(self) -> None:
        cove.AsyncSandboxClient("remote", "http://127.0.0.1:1")
        with self.assertRaises(cove.ServerConnectionError):
            asyncio.run(cove.AsyncClient("http://127.0.0.1:1").health())


if __name__ == "__main__":
    unittest.main()

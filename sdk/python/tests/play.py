"""Runs scenarios of the table that every SDK must run alike."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import os
import sys
import time
import traceback
import urllib.error
import urllib.request
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional

from at_once._async import AsyncBegun
from cove import AsyncClient, AsyncProcess, AsyncSandbox, Context, CoveError
from cove._async.files import AsyncWatch
from cove._async.ports import AsyncPort
from cove._async.stream import blocking, pause

WAIT = 60.0  # seconds for something to become so


def lacks(want: Any, got: Any) -> str:
    """What of want is not in got, or nothing. Objects may have more than is wanted."""
    if isinstance(want, dict):
        if "$contains" in want:
            return "" if isinstance(got, str) and want["$contains"] in got else f"{got!r} does not contain {want['$contains']!r}"
        if not isinstance(got, dict):
            return f"is {got!r} and no object"
        for name, value in want.items():
            if got.get(name) is None and value in ("", False, 0):
                continue  # what is left out is the same as nothing
            why = lacks(value, got.get(name))
            if why:
                return f"{name}: {why}"
        return ""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"is {got!r} and not {want!r}"
        return next((f"{i}: {why}" for i, why in enumerate(map(lacks, want, got)) if why), "")
    return "" if want == got else f"is {got!r} and not {want!r}"


class Outcome:
    """What came of a step."""

    def __init__(self, got: Any, err: Optional[CoveError]) -> None:
        self.got, self.err = got, err

    def lacks(self, step: Dict[str, Any]) -> str:
        """What of what must come of a step has not."""
        if self.err is not None:
            if "fail" not in step:
                return f"{type(self.err).__name__}: {self.err}"
            return lacks(step["fail"], {"code": self.err.code, "reason": self.err.reason})
        if "fail" in step:
            return f"did not fail: {self.got!r}"
        return lacks(step["want"], self.got) if "want" in step else ""


def name_of(named: Mapping[str, Any], value: Any) -> str:
    """The name that something was given by an earlier step, or nothing."""
    return next((name for name in sorted(named) if named[name] == value), "")


def restarted(how: str) -> None:
    """Have who gave us the scenarios restart the server."""
    print(json.dumps({"restart": how}), flush=True)
    sys.stdin.readline()


def fetched(url: str, data: Optional[bytes]) -> Any:
    """What somebody without a key gets at an address."""
    request = urllib.request.Request(url, data=data, method="GET" if data is None else "PUT", headers={"Content-Type": "application/octet-stream"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as answer:
            return {"http": answer.status, "text": answer.read().decode()}
    except urllib.error.HTTPError as err:
        with err:
            return {"http": err.code, "text": err.read().decode()}


class AsyncPlayer:
    """Makes the steps of a scenario. What came of them is kept by its name."""

    def __init__(self, scenario: Dict[str, Any]) -> None:
        self.steps: List[Dict[str, Any]] = scenario["steps"]
        self.client = AsyncClient(api_key=scenario.get("key"), auto_retry=scenario.get("auto_retry", True))
        self._own = binascii.hexlify(os.urandom(8)).decode()  # what makes its idempotency keys different from those of others
        self.begun: Dict[str, AsyncBegun] = {}
        self.sandboxes: Dict[str, AsyncSandbox] = {}
        self.programs: Dict[str, AsyncProcess] = {}
        self.outputs: Dict[str, str] = {}
        self.snapshots: Dict[str, str] = {}
        self.lists: Dict[str, str] = {}
        self.archives: Dict[str, bytes] = {}
        self.contexts: Dict[str, Context] = {}
        self.watches: Dict[str, AsyncWatch] = {}
        self.conns: Dict[str, AsyncPort] = {}

    async def play(self) -> str:
        """What went wrong, or nothing."""
        try:
            for i, step in enumerate(self.steps):
                why = await self.judged(step)
                if why:
                    return f"step {i + 1}, {step['do']}: {why}"
            return ""
        finally:
            for kept in (*self.watches.values(), *self.conns.values()):
                await kept.aclose()
            for sandbox in self.sandboxes.values():
                try:
                    await sandbox.kill()
                except CoveError:
                    pass  # many have ended
            await self.client.aclose()

    async def judged(self, step: Dict[str, Any]) -> str:
        if "begin" in step:
            self.begun[step["begin"]] = AsyncBegun(lambda: self.outcome(step))
            return ""
        if step["do"] == "end":
            ended: Outcome = await self.begun[step["of"]].result(WAIT)
            return ended.lacks(step)
        return (await self.outcome(step)).lacks(step)

    async def outcome(self, step: Dict[str, Any]) -> Outcome:
        try:
            return Outcome(await getattr(self, "do_" + step["do"])(step), None)
        except CoveError as err:
            return Outcome(None, err)

    async def until(self, so: "Callable[[], Awaitable[bool]]") -> None:
        end = time.monotonic() + WAIT
        while not await so():
            if time.monotonic() > end:
                raise AssertionError("it never becomes so")
            await pause(0.02)

    async def do_restart(self, step: Dict[str, Any]) -> Any:
        await blocking(lambda: restarted(step.get("text", "")))

    def _once(self, step: Dict[str, Any]) -> Optional[str]:
        return step["once"] + self._own if "once" in step else None

    # Sessions.

    def _session(self, step: Dict[str, Any], sandbox: AsyncSandbox) -> Any:
        session = sandbox.session
        known = name_of({name: one.sandbox_id for name, one in self.sandboxes.items()}, session.session_id)
        left = datetime.datetime.strptime(session.expires_at[:19] + "+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp() - time.time()
        if "as" in step:
            self.sandboxes[step["as"]] = sandbox
        return {**session.raw, "known_as": known, "minutes_left": round(left / 60)}

    async def do_open(self, step: Dict[str, Any]) -> Any:
        made = await AsyncSandbox.create(
            client=self.client, **step.get("request", {}), snapshot=self.snapshots.get(step.get("snapshot", "")), idempotency_key=self._once(step)
        )
        return self._session(step, made)

    async def do_get(self, step: Dict[str, Any]) -> Any:
        return self._session(step, await AsyncSandbox.connect(step["id"], client=self.client))

    async def do_close(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].kill()

    async def do_sessions(self, step: Dict[str, Any]) -> Any:
        found = await self.client.sessions(**step["filter"], limit=step.get("limit", 0), after=self.lists.get(step.get("after", "")))
        if found and "as" in step:
            self.lists[step["as"]] = found[-1].session_id
        ids = {name: sandbox.sandbox_id for name, sandbox in self.sandboxes.items()}
        return {"count": len(found), "known_as": [name_of(ids, one.session_id) for one in found]}

    async def do_expired(self, step: Dict[str, Any]) -> Any:
        async def so() -> bool:
            try:
                await self.client.session(self.sandboxes[step["in"]].sandbox_id)
            except CoveError as err:
                return err.reason == "session_expired"
            return False

        await self.until(so)

    async def _did(self, step: Dict[str, Any], verb: str, *more: Any) -> Any:
        sandbox = self.sandboxes[step["in"]]
        await getattr(sandbox, verb)(*more)
        return self._session(step, sandbox)

    async def do_stop(self, step: Dict[str, Any]) -> Any:
        return await self._did(step, "stop")

    async def do_resume_stopped(self, step: Dict[str, Any]) -> Any:
        return await self._did(step, "start")

    async def do_pause(self, step: Dict[str, Any]) -> Any:
        return await self._did(step, "pause")

    async def do_resume(self, step: Dict[str, Any]) -> Any:
        return await self._did(step, "resume")

    async def do_renew(self, step: Dict[str, Any]) -> Any:
        return await self._did(step, "renew", step.get("minutes"))

    async def do_fork(self, step: Dict[str, Any]) -> Any:
        return self._session(step, await self.sandboxes[step["in"]].fork(idempotency_key=self._once(step)))

    async def do_snapshot(self, step: Dict[str, Any]) -> Any:
        made = await self.sandboxes[step["in"]].snapshots.create(step.get("text"), idempotency_key=self._once(step))
        known = name_of(self.snapshots, made.snapshot_id)
        self.snapshots[step["as"]] = made.snapshot_id
        return {**made.raw, "known_as": known}

    async def do_snapshots(self, step: Dict[str, Any]) -> Any:
        return {"names": sorted(one.name for one in await self.sandboxes[step["in"]].snapshots.list())}

    async def do_forget(self, step: Dict[str, Any]) -> Any:
        await self.client.delete_snapshot(self.snapshots[step["of"]])

    # Files.

    async def do_write(self, step: Dict[str, Any]) -> Any:
        data: Any = base64.b64decode(step["base64"]) if "base64" in step else step.get("text", "") * step.get("times", 1)
        await self.sandboxes[step["in"]].files.write(step.get("path", ""), data, mode=step.get("mode"))

    async def do_read(self, step: Dict[str, Any]) -> Any:
        data = await self.sandboxes[step["in"]].files.read_bytes(step.get("path", ""), offset=step.get("offset", 0), length=step.get("length"))
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    async def do_stat(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].files.stat(step.get("path", ""))).raw

    async def do_list(self, step: Dict[str, Any]) -> Any:
        return {"paths": [f.path for f in await self.sandboxes[step["in"]].files.list(step.get("path", ""), depth=step.get("depth", 1))]}

    async def do_mkdir(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.make_dir(step.get("path", ""))

    async def do_move(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.move(step.get("path", ""), step["to"])

    async def do_remove(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.remove(step.get("path", ""))

    async def do_appears(self, step: Dict[str, Any]) -> Any:
        await self.until(lambda: self.sandboxes[step["in"]].files.exists(step.get("path", "")))

    async def do_archive(self, step: Dict[str, Any]) -> Any:
        async with await self.sandboxes[step["in"]].files.archive(step.get("path", "")) as tar:
            self.archives[step["as"]] = await tar.read()

    async def do_unpack(self, step: Dict[str, Any]) -> Any:
        tar = self.archives[step["of"]] if "of" in step else step.get("text", "")
        await self.sandboxes[step["in"]].files.unpack(tar, step.get("path", ""))

    async def do_watch(self, step: Dict[str, Any]) -> Any:
        self.watches[step["as"]] = watch = await self.sandboxes[step["in"]].files.watch(step.get("path", ""))
        await watch.__anext__()  # that it is looked for changes

    async def do_changed(self, step: Dict[str, Any]) -> Any:
        async for change in self.watches[step["of"]]:
            if (change.path, change.kind) == (step.get("path", ""), step.get("text", "")):
                return

    async def do_unwatch(self, step: Dict[str, Any]) -> Any:
        await self.watches[step["of"]].aclose()

    async def do_link(self, step: Dict[str, Any]) -> Any:
        data = step.get("text", "").encode() if "text" in step else None
        link = await self.sandboxes[step["in"]].files.url(step.get("path", ""), method="GET" if data is None else "PUT")
        return await blocking(lambda: fetched(link.url, data))

    # Ports.

    async def do_port_link(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].ports.url(step.get("port", 0))).raw

    async def do_dial(self, step: Dict[str, Any]) -> Any:
        self.conns[step["as"]] = await self.sandboxes[step["in"]].ports.connect(step.get("port", 0))

    async def do_send(self, step: Dict[str, Any]) -> Any:
        conn = self.conns[step["of"]]
        await conn.send(step.get("text", "").encode())
        if step.get("eof"):
            await conn.finish()

    async def do_recv(self, step: Dict[str, Any]) -> Any:
        data, piece = b"", b"x"
        while piece:
            piece = await self.conns[step["of"]].recv(WAIT)
            data += piece
        return {"text": data.decode()}

    # Programs and code.

    def _request(self, step: Dict[str, Any]) -> Dict[str, Any]:
        request = dict(step["request"])
        if "stdin_base64" in request:
            request["stdin"] = base64.b64decode(request.pop("stdin_base64"))
        if "pieces" in step:
            request["stdin"] = [piece.encode() for piece in step["pieces"]]
        return request

    async def do_run(self, step: Dict[str, Any]) -> Any:
        x = await self.sandboxes[step["in"]].commands.run(**self._request(step))
        self.outputs[step.get("as", "")] = x.output_id
        return x.raw

    async def do_stream(self, step: Dict[str, Any]) -> Any:
        out: List[str] = []
        err: List[str] = []
        x = await self.sandboxes[step["in"]].commands.run(**self._request(step), on_stdout=out.append, on_stderr=err.append)
        return {**x.raw, "streamed_stdout": "".join(out), "streamed_stderr": "".join(err)}

    async def do_output(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].commands.output(step.get("id") or self.outputs[step["of"]], **step["range"])).raw

    async def do_code(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].code.run(**step["request"], context=self.contexts.get(step.get("of", "")))).raw

    async def do_context(self, step: Dict[str, Any]) -> Any:
        made = await self.sandboxes[step["in"]].code.create_context(**step["request"], idempotency_key=self._once(step))
        known = name_of({name: one.id for name, one in self.contexts.items()}, made.id)
        self.contexts[step["as"]] = made
        return {**made.raw, "known_as": known}

    async def do_contexts(self, step: Dict[str, Any]) -> Any:
        return {"languages": sorted(one.language for one in await self.sandboxes[step["in"]].code.contexts())}

    async def do_restart_context(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].code.restart(self.contexts[step["of"]])

    async def do_interrupt(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].code.interrupt(self.contexts[step["of"]])

    async def do_close_context(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].code.remove_context(self.contexts[step["of"]])

    async def do_start(self, step: Dict[str, Any]) -> Any:
        request = self._request(step)
        sandbox = self.sandboxes[step["in"]]
        if "tty" in request:
            size = request.pop("tty")
            request.pop("keep_stdin")
            made: AsyncProcess = await sandbox.terminals.create(cols=size["cols"], rows=size["rows"], **request, idempotency_key=self._once(step))
        else:
            made = await sandbox.commands.start(**request, idempotency_key=self._once(step))
        known = self._program(made.pid)
        self.programs[step["as"]] = made
        return {**made.info.raw, "known_as": known}

    def _program(self, pid: int) -> str:
        return name_of({name: one.pid for name, one in self.programs.items()}, pid)

    async def do_processes(self, step: Dict[str, Any]) -> Any:
        return {self._program(one.pid): one.raw for one in await self.sandboxes[step["in"]].commands.list()}

    async def do_input(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].send_stdin(step.get("text", ""), eof=step.get("eof", False))

    async def do_signal(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].signal(step.get("text", ""))

    async def do_resize(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].resize(step["cols"], step["rows"])

    async def do_wait(self, step: Dict[str, Any]) -> Any:
        return (await self.programs[step["of"]].wait()).raw

    async def do_follow(self, step: Dict[str, Any]) -> Any:
        heard = {"stdout": b"", "stderr": b""}
        async with self.programs[step["of"]].output(step.get("offset", 0)) as output:
            async for piece in output:
                heard[piece.stream] += piece.data
                if step["do"] == "hears" and step.get("text", "") in heard["stdout"].decode():
                    break
        return {"streamed_stdout": heard["stdout"].decode(), "streamed_stderr": heard["stderr"].decode()}

    do_hears = do_follow


async def play_all(scenarios: List[Dict[str, Any]]) -> None:
    """Run scenarios and print a line of JSON for each."""
    for scenario in scenarios:
        try:
            why = await AsyncPlayer(scenario).play()
        except Exception:
            why = traceback.format_exc()
        print(json.dumps({"name": scenario["name"], "why": why}), flush=True)

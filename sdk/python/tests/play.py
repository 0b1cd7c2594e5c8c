"""Runs scenarios of the table that every SDK must run alike."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Dict, List, Optional

from cove import AsyncClient, AsyncProcess, AsyncSandbox, CoveError
from cove._async.stream import pause

EXPIRE_TIME = 60.0


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


class AsyncPlayer:
    def __init__(self, scenario: Dict[str, Any]) -> None:
        self.steps: List[Dict[str, Any]] = scenario["steps"]
        self.client = AsyncClient(api_key=scenario.get("key"), auto_retry=scenario.get("auto_retry", True))
        self.sandboxes: Dict[str, AsyncSandbox] = {}
        self.programs: Dict[str, AsyncProcess] = {}
        self.outputs: Dict[str, str] = {}
        self.snapshots: Dict[str, str] = {}

    async def play(self) -> str:
        """What went wrong, or nothing."""
        try:
            for i, step in enumerate(self.steps):
                why = await self.judged(step)
                if why:
                    return f"step {i + 1}, {step['do']}: {why}"
            return ""
        finally:
            for sandbox in self.sandboxes.values():
                try:
                    await sandbox.kill()
                except CoveError:
                    pass  # many have ended
            await self.client.aclose()

    async def judged(self, step: Dict[str, Any]) -> str:
        try:
            got = await getattr(self, "do_" + step["do"])(step)
        except CoveError as err:
            if "fail" not in step:
                return f"{type(err).__name__}: {err}"
            return lacks(step["fail"], {"code": err.code, "reason": err.reason})
        if "fail" in step:
            return f"did not fail: {got!r}"
        return lacks(step["want"], got) if "want" in step else ""

    # Sessions.

    async def do_open(self, step: Dict[str, Any]) -> Any:
        sandbox = await AsyncSandbox.create(client=self.client, **step.get("request", {}), snapshot=self.snapshots.get(step.get("snapshot", "")))
        self.sandboxes[step["as"]] = sandbox
        return sandbox.session.raw

    async def do_get(self, step: Dict[str, Any]) -> Any:
        return (await AsyncSandbox.connect(step["id"], client=self.client)).session.raw

    async def do_close(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].kill()

    async def do_sessions(self, step: Dict[str, Any]) -> Any:
        return {"count": len(await self.client.sessions(**step["filter"]))}

    async def do_expired(self, step: Dict[str, Any]) -> Any:
        until = time.monotonic() + EXPIRE_TIME
        while time.monotonic() < until:
            try:
                await self.client.session(self.sandboxes[step["in"]].sandbox_id)
            except CoveError as err:
                if err.reason == "session_expired":
                    return
                raise
            await pause(0.05)
        raise AssertionError("it does not expire")

    async def do_stop(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].stop()).raw

    async def do_resume_stopped(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].start()).raw

    async def do_pause(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].pause()).raw

    async def do_resume(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].resume()).raw

    async def do_renew(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].renew(step["minutes"])).raw

    async def do_snapshot(self, step: Dict[str, Any]) -> Any:
        made = await self.sandboxes[step["in"]].snapshots.create(step["text"])
        self.snapshots[step["as"]] = made.snapshot_id
        return made.raw

    async def do_forget(self, step: Dict[str, Any]) -> Any:
        await self.client.delete_snapshot(self.snapshots[step["of"]])

    async def do_fork(self, step: Dict[str, Any]) -> Any:
        self.sandboxes[step["as"]] = made = await self.sandboxes[step["in"]].fork()
        return made.session.raw

    # Files.

    async def do_write(self, step: Dict[str, Any]) -> Any:
        data: Any = step["text"] * step.get("times", 1) if "text" in step else base64.b64decode(step["base64"])
        await self.sandboxes[step["in"]].files.write(step["path"], data, mode=step.get("mode"))

    async def do_read(self, step: Dict[str, Any]) -> Any:
        data = await self.sandboxes[step["in"]].files.read_bytes(step["path"], offset=step.get("offset", 0), length=step.get("length"))
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    async def do_stat(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].files.stat(step["path"])).raw

    async def do_list(self, step: Dict[str, Any]) -> Any:
        return {"paths": [f.path for f in await self.sandboxes[step["in"]].files.list(step.get("path", ""), depth=step.get("depth", 1))]}

    async def do_mkdir(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.make_dir(step["path"])

    async def do_move(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.move(step["path"], step["to"])

    async def do_remove(self, step: Dict[str, Any]) -> Any:
        await self.sandboxes[step["in"]].files.remove(step["path"])

    # Programs and code.

    def _request(self, step: Dict[str, Any]) -> Dict[str, Any]:
        request = dict(step["request"])
        if "stdin_base64" in request:
            request["stdin"] = base64.b64decode(request.pop("stdin_base64"))
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
        return (await self.sandboxes[step["in"]].commands.output(self.outputs[step["of"]], **step["range"])).raw

    async def do_code(self, step: Dict[str, Any]) -> Any:
        return (await self.sandboxes[step["in"]].code.run(**step["request"])).raw

    async def do_start(self, step: Dict[str, Any]) -> Any:
        request = self._request(step)
        sandbox = self.sandboxes[step["in"]]
        if "tty" in request:
            size = request.pop("tty")
            request.pop("keep_stdin")
            made: AsyncProcess = await sandbox.terminals.create(cols=size["cols"], rows=size["rows"], **request)
        else:
            made = await sandbox.commands.start(**request)
        self.programs[step["as"]] = made
        return made.info.raw

    async def do_input(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].send_stdin(step["text"], eof=step.get("eof", False))

    async def do_signal(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].signal(step["text"])

    async def do_resize(self, step: Dict[str, Any]) -> Any:
        await self.programs[step["of"]].resize(step["cols"], step["rows"])  # type: ignore[attr-defined]

    async def do_wait(self, step: Dict[str, Any]) -> Any:
        return (await self.programs[step["of"]].wait()).raw

    async def do_follow(self, step: Dict[str, Any]) -> Any:
        heard = {"stdout": b"", "stderr": b""}
        async with self.programs[step["of"]].output(step.get("offset", 0)) as output:
            async for piece in output:
                heard[piece.stream] += piece.data
        return {"streamed_stdout": heard["stdout"].decode(), "streamed_stderr": heard["stderr"].decode()}


async def play_all(scenarios: List[Dict[str, Any]]) -> None:
    """Run scenarios and print a line of JSON for each."""
    for scenario in scenarios:
        why: Optional[str] = await AsyncPlayer(scenario).play()
        print(json.dumps({"name": scenario["name"], "why": why}), flush=True)

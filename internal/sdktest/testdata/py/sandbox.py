import datetime
import time

import e2b
from e2b import Sandbox
from e2b import SandboxQuery, SandboxState

from suite import NEW, OTHER_KEY, absent, box, fails, ok, same, show, test, unsupported, until


def left(s):
    return (s.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()


def unique(prefix):
    return prefix + str(time.time_ns())


@test
def create():
    s = box()
    ok(s.sandbox_id, "it has no id")
    same(s.is_running(), True, "is_running")
    same(s.commands.run("echo hi").stdout, "hi\n", "stdout")


@test
def create_env():
    s = box(envs={"COLOUR": "blue green"})
    same(s.commands.run('echo "$COLOUR"').stdout, "blue green\n", "stdout")


@test
def create_metadata():
    metadata = {"purpose": "a=b & c", "who": unique("ada ")}
    s = box(metadata=metadata)
    got = s.get_info().metadata
    same({k: got.get(k) for k in metadata}, metadata, "metadata")
    found = Sandbox.list(query=SandboxQuery(metadata=metadata)).next_items()
    same([i.sandbox_id for i in found], [s.sandbox_id], "list by metadata")


@test
def create_mcp():
    unsupported(lambda: box(mcp={"time": {}}), ["mcp", "MCP"])


@test
def connect():
    s = box()
    s.files.write("a.txt", "one")
    again = Sandbox.connect(s.sandbox_id)
    same(again.sandbox_id, s.sandbox_id, "id")
    same(again.files.read("a.txt"), "one", "file")


@test
def connect_extends():
    s = box(timeout=300)
    before = s.get_info().end_at
    Sandbox.connect(s.sandbox_id, timeout=60)
    ok(s.get_info().end_at >= before, "end_at is sooner")
    Sandbox.connect(s.sandbox_id, timeout=900)
    ok(s.get_info().end_at > before + datetime.timedelta(seconds=500), "end_at is not later")


@test
def list():
    s = box()
    pages, ids = Sandbox.list(), []
    while pages.has_next:
        ids += [i.sandbox_id for i in pages.next_items()]
    ok(s.sandbox_id in ids, f"{s.sandbox_id} is not in {show(ids)}")


@test
def list_pages():
    metadata = {"pages": unique("p")}
    want = [box(metadata=metadata).sandbox_id for _ in range(3)][::-1]
    pages = Sandbox.list(query=SandboxQuery(metadata=metadata), limit=2)
    first = pages.next_items()
    same((len(first), pages.has_next), (2, True), "the first page")
    same([i.sandbox_id for i in first + pages.next_items()], want, "newest first")
    same(pages.has_next, False, "has_next at the end")


@test
def list_state():
    metadata = {"state": unique("s")}
    s = box(metadata=metadata)
    for state, want in ((SandboxState.RUNNING, [s.sandbox_id]), (SandboxState.PAUSED, [])):
        found = Sandbox.list(query=SandboxQuery(metadata=metadata, state=[state])).next_items()
        same([i.sandbox_id for i in found], want, str(state))


@test
def kill():
    s = box()
    same(s.kill(), True, "kill")
    same(s.is_running(), False, "is_running")


@test
def kill_twice():
    s = box()
    same((Sandbox.kill(s.sandbox_id), Sandbox.kill(s.sandbox_id)), (True, False), "kill")


@test
def set_timeout():
    s = box()
    s.set_timeout(900)
    ok(800 < left(s) <= 905, f"it ends in {left(s)} s")
    s.set_timeout(30)
    ok(left(s) <= 35, f"it ends in {left(s)} s")


@test
def timeout_ends():
    s = box(timeout=3)
    try:
        s.commands.run("sleep 100", background=True, timeout=0)
    except Exception:
        pass  # it may have ended already
    until("it ends though it is busy", lambda: not s.is_running())


@test
def info():
    s = box()
    i = s.get_info()
    same((i.sandbox_id, i.state), (s.sandbox_id, SandboxState.RUNNING), "info")
    ok(i.template_id and i.envd_version, f"no template or version: {show(i)}")
    ok(i.cpu_count >= 1 and i.memory_mb > 0, f"no size: {show(i)}")
    ok(i.end_at > i.started_at, f"ends before it starts: {show(i)}")


@test
def metrics():
    s = box()
    got = []
    until("there is a sample", lambda: got.extend(s.get_metrics()) or got)
    ok(got[0].mem_total > 0 and got[0].cpu_count >= 1 and got[0].timestamp, f"sample: {show(got[0])}")


@test
def network():
    absent(hasattr(Sandbox, "update_network"))

    def only(name):
        return {"allow_out": [name], "deny_out": [e2b.ALL_TRAFFIC]}

    s = box(network=only("one.example.com"))
    s.update_network(only("two.example.com"))
    got = s.get_info().network
    same(got["allow_out"] if isinstance(got, dict) else got.allow_out, ["two.example.com"], "allow_out")


@test
def network_close():
    absent(hasattr(Sandbox, "update_network"))
    s = box(allow_internet_access=True)
    unsupported(lambda: s.update_network({"allow_internet_access": False}), ["keeps it"])


@test
def network_none():
    s = box(allow_internet_access=False)
    got = s.commands.run("curl -sS --max-time 5 http://192.0.2.1/ >/dev/null 2>&1 && echo reached || echo cut")
    same(got.stdout, "cut\n", "stdout")


@test
def wrong_key():
    fails(lambda: Sandbox.create(api_key="e2b_" + "0" * 40), "AuthenticationException")


@test
def other_tenant():
    s = box()
    fails(lambda: Sandbox.connect(s.sandbox_id, api_key=OTHER_KEY), "SandboxException" if not NEW else "NotFoundException")
    same(Sandbox.kill(s.sandbox_id, api_key=OTHER_KEY), False, "kill")
    same(s.is_running(), True, "is_running")


@test
def unknown_sandbox():
    fails(lambda: Sandbox.connect("01aaaaaaaaaaaaaaaaaaaaaaaa"), "NotFoundException")

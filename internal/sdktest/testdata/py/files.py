import asyncio
import datetime
import io

from e2b import AsyncSandbox

from suite import NEW, absent, box, fails, keep, ok, same, show, test, unsupported, until

data = bytes((i * 7) % 256 for i in range(100_000))


@test
def read():
    s = box()
    s.files.write("a.txt", "tëxt\n")
    same(s.files.read("a.txt"), "tëxt\n", "text")
    same(s.files.read("/home/user/a.txt"), "tëxt\n", "by its whole name")
    s.files.write("empty", "")
    same(s.files.read("empty"), "", "an empty file")
    fails(lambda: s.files.read("missing"), "NotFoundException")


@test
def read_bytes():
    s = box()
    s.files.write("b", data)
    ok(bytes(s.files.read("b", format="bytes")) == data, "other bytes")


@test
def read_stream():
    s = box()
    s.files.write("b", data * 3)
    ok(b"".join(s.files.read("b", format="stream")) == data * 3, "other bytes")


@test
def write():
    s = box()
    info = s.files.write("deep/er/a b+ü.txt", "one")
    same((info.name, info.path), ("a b+ü.txt", "/home/user/deep/er/a b+ü.txt"), "answer")
    s.files.write("deep/er/a b+ü.txt", "two")
    same(s.commands.run('cat "deep/er/a b+ü.txt"').stdout, "two", "content")
    same(s.commands.run('cat "/home/user/deep/er/a b+ü.txt"').stdout, "two", "content by its whole name")
    s.files.write("stream", io.BytesIO(b"three"))
    same(s.files.read("stream"), "three", "content of a stream")


@test
def write_many():
    s = box()
    infos = s.files.write_files([
        {"path": "one.txt", "data": "1"},
        {"path": "/home/user/sub/two.txt", "data": b"2"},
        {"path": "/tmp/thrëe.txt", "data": io.BytesIO(b"3")},
    ])
    same([i.path for i in infos], ["/home/user/one.txt", "/home/user/sub/two.txt", "/tmp/thrëe.txt"], "answer")
    same(s.commands.run("cat one.txt sub/two.txt /tmp/thrëe.txt").stdout, "123", "content")


@test
def write_octet():
    absent(NEW)
    s = box()
    s.files.write("b", data, use_octet_stream=True)
    ok(bytes(s.files.read("b", format="bytes")) == data, "other bytes")


@test
def write_gzip():
    absent(NEW)
    s = box()
    text = "gzip " * 20_000
    s.files.write("a.txt", text, gzip=True)
    same(s.commands.run("wc -c < a.txt").stdout.strip(), str(len(text)), "size")
    same(s.files.read("a.txt", gzip=True), text, "text")


@test
def metadata():
    absent(NEW)
    s = box()
    s.files.write("a.txt", "x", metadata={"author": "ada", "kind": "note"})
    same(s.files.get_info("a.txt").metadata, {"author": "ada", "kind": "note"}, "metadata")


@test
def list_dir():
    s = box()
    s.commands.run("mkdir -p d/sub/deep && echo x > d/a && echo y > d/sub/b")
    same([(e.type.value, e.path) for e in s.files.list("d")], [("file", "/home/user/d/a"), ("dir", "/home/user/d/sub")], "one level")
    same(len(s.files.list("d", depth=2)), 4, "two levels")
    fails(lambda: s.files.list("missing"), "NotFoundException")


@test
def stat():
    s = box()
    s.commands.run("echo hello > a; chmod 640 a")
    i = s.files.get_info("a")
    same((i.name, i.type.value, i.path, i.size, i.permissions), ("a", "file", "/home/user/a", 6, "-rw-r-----"), "file")
    same(i.mode & 0o777, 0o640, "mode")
    same((i.owner, i.group), ("user", "user"), "owner")
    at = i.modified_time if i.modified_time.tzinfo else i.modified_time.replace(tzinfo=datetime.timezone.utc)
    ok(abs((datetime.datetime.now(datetime.timezone.utc) - at).total_seconds()) < 3600, f"modified at {at}")
    same(s.files.get_info(".").type.value, "dir", "folder")


@test
def symlink():
    s = box()
    s.commands.run("echo x > target; ln -s target link")
    i = s.files.get_info("link")
    same((i.name, i.symlink_target), ("link", "/home/user/target"), "link")
    same(s.files.read("link"), "x\n", "content")


@test
def exists():
    s = box()
    s.files.write("a", "")
    same([s.files.exists(p) for p in ("a", "b", "/home/user")], [True, False, True], "exists")


@test
def mkdir():
    s = box()
    same((s.files.make_dir("d/e"), s.files.make_dir("d/e")), (True, False), "make_dir")
    same(s.files.get_info("d/e").type.value, "dir", "type")


@test
def move():
    s = box()
    s.files.write("a", "x")
    same(s.files.rename("a", "d/b").path, "/home/user/d/b", "answer")
    same((s.files.exists("a"), s.files.read("d/b")), (False, "x"), "after")
    fails(lambda: s.files.rename("missing", "c"), "NotFoundException")


@test
def remove():
    s = box()
    s.files.write("d/e/a", "x")
    s.files.remove("d/e/a")
    s.files.remove("d")
    same(s.files.exists("d"), False, "exists")


def polled(doing, wanted, **opts):
    """Watches as the SDK for plain Python does: it asks for what happened."""
    s = box()
    s.commands.run("mkdir -p d/sub")
    h = s.files.watch_dir("d", **opts)
    s.commands.run(doing)
    seen = []

    def all_there():
        seen.extend((e.type.value, e.name) for e in h.get_new_events())
        return all(w in seen for w in wanted)

    try:
        until(f"{wanted}", all_there)
    except AssertionError as err:
        raise AssertionError(f"{err}; seen: {seen}") from None
    h.stop()
    return seen


@test
def watch():
    seen = polled(
        "echo x > d/a; echo x > d/sub/inner; mv d/a d/b; rm d/b; touch d/last",
        [("create", "a"), ("write", "a"), ("create", "b"), ("remove", "b"), ("create", "last")],
    )
    ok(not any("inner" in name for _, name in seen), f"not recursive, and saw {show(seen)}")


@test
def watch_chmod():
    polled("touch d/a; chmod 600 d/a; chmod 700 d/sub", [("create", "a"), ("chmod", "a"), ("chmod", "sub")])


@test
def watch_rename():
    wanted = [("rename", "a"), ("create", "b"), ("rename", "sub"), ("create", "other"), ("create", "last")]
    seen = polled("touch d/a; mv d/a d/b; mv d/sub d/other; touch d/last", wanted)
    ok(not any(kind == "remove" for kind, _ in seen), f"nothing was removed, and saw {show(seen)}")


@test
def watch_recursive():
    wanted = [("create", "sub/inner"), ("write", "sub/inner"), ("create", "new"), ("create", "last")]
    polled("echo x > d/sub/inner; mkdir d/new; touch d/last", wanted, recursive=True)


@test
def watch_many():
    """Watches as the SDK for asyncio does: it is told what happens."""

    async def go():
        s = await AsyncSandbox.create()
        keep(s.sandbox_id)
        await s.files.make_dir("d")
        seen, done = set(), asyncio.Event()

        def on_event(e):
            if e.type.value == "create":
                seen.add(e.name)
            if len(seen) == 2000:
                done.set()

        h = await s.files.watch_dir("d", on_event, timeout=0)
        await s.commands.run("for i in $(seq 2000); do : > d/$i; done")
        try:
            await asyncio.wait_for(done.wait(), 60)
        except asyncio.TimeoutError:
            raise AssertionError(f"saw {len(seen)} of 2000 files") from None
        await h.stop()

    asyncio.run(go())

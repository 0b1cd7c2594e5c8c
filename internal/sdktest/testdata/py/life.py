from e2b import Sandbox, SandboxState

from suite import NEW, absent, box, keep, ok, same, show, test, until


def put_down(s):
    return s.pause() if NEW else s.beta_pause()


def is_paused(s):
    return lambda: Sandbox.get_info(s.sandbox_id).state == SandboxState.PAUSED


@test
def pause():
    s = box()
    first = put_down(s)
    same(is_paused(s)(), True, "is paused")
    second = put_down(s)
    if NEW:  # the older one does not tell
        same((first, second), (True, False), "pause")


@test
def resume():
    s = box()
    s.files.write("kept.txt", "kept")
    s.commands.run("i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.05; done", background=True, timeout=0)

    def count(of):
        return int((of.files.read("count") if of.files.exists("count") else "") or 0)

    until("it counts", lambda: count(s) > 2)
    put_down(s)
    again = Sandbox.connect(s.sandbox_id)
    same(again.files.read("kept.txt"), "kept", "file")
    until("it goes on counting", lambda: count(again) > 1)
    first = count(again)
    until("it goes on counting", lambda: count(again) > first)


@test
def pause_files_only():
    absent(NEW)
    s = box()
    s.files.write("kept.txt", "kept")
    same(s.pause(keep_memory=False), True, "pause")
    same(Sandbox.connect(s.sandbox_id).files.read("kept.txt"), "kept", "file")


@test
def auto_pause():
    if NEW:
        s = box(lifecycle={"on_timeout": "pause"})
    else:
        s = Sandbox.beta_create(timeout=300, auto_pause=True)
        keep(s.sandbox_id)
    s.files.write("kept.txt", "kept")
    s.set_timeout(1)
    until("it is paused at its end", is_paused(s))
    same(Sandbox.connect(s.sandbox_id, timeout=60).files.read("kept.txt"), "kept", "file")


@test
def auto_resume():
    absent(NEW)
    s = box(lifecycle={"on_timeout": "pause", "auto_resume": True})
    s.files.write("kept.txt", "kept")
    s.set_timeout(1)
    until("it is paused at its end", is_paused(s))
    same(s.commands.run("cat kept.txt").stdout, "kept", "stdout")


@test
def fork():
    absent(hasattr(Sandbox, "fork"))
    s = box()
    s.files.write("a.txt", "before")
    forks = s.fork(count=2)
    same(len(forks), 2, "how many")
    for f in forks:
        if isinstance(f, Exception):
            raise f
        keep(f.sandbox_id)
    ids = {s.sandbox_id, *(f.sandbox_id for f in forks)}
    ok(len(ids) == 3, f"the same sandbox twice: {show(ids)}")
    s.files.write("a.txt", "after")
    for f in forks:
        same(f.files.read("a.txt"), "before", "file of a fork")


@test
def snapshot():
    absent(NEW)
    s = box()
    s.files.write("a.txt", "saved")
    id = s.create_snapshot().snapshot_id
    s.files.write("a.txt", "changed")
    same(box(id).files.read("a.txt"), "saved", "file")
    same(Sandbox.delete_snapshot(id), True, "delete")


@test
def snapshot_list():
    absent(NEW)
    s = box()
    ids = sorted(s.create_snapshot().snapshot_id for _ in range(2))
    pages, got = s.list_snapshots(limit=1), []
    while pages.has_next:
        got += [i.snapshot_id for i in pages.next_items()]
    same(sorted(got), ids, "snapshots")
    for id in ids:
        Sandbox.delete_snapshot(id)


@test
def snapshot_delete():
    absent(NEW)
    id = box().create_snapshot().snapshot_id
    same((Sandbox.delete_snapshot(id), Sandbox.delete_snapshot(id)), (True, False), "delete")

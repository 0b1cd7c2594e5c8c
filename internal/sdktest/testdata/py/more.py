import os
import time

import e2b
from e2b import Template

from suite import NEW, absent, box, fails, ok, same, show, skip, test, unsupported


def unique(kind):
    return f"{kind}-{time.time_ns():x}"


@test
def template_exists():
    absent(hasattr(Template, "exists"))
    same((Template.exists("base"), Template.exists("no-such-template")), (True, False), "exists")
    same(Template.alias_exists("base"), True, "alias_exists")


@test
def template_tags():
    absent(hasattr(Template, "get_tags"))
    skip(os.environ.get("CASES_DOCKER"), "there is no Docker")
    alias = unique("tagged")
    Template.build(Template().from_base_image().run_cmd("true"), alias=alias)
    tag = unique("tag")
    info = Template.assign_tags(alias, tag)
    ok(tag in info.tags, f"assigned {show(info)}")
    ok(tag in [t.tag for t in Template.get_tags(alias)], "it is not listed")
    Template.remove_tags(alias, tag)
    ok(tag not in [t.tag for t in Template.get_tags(alias)], "it is still listed")


@test
def template_build():
    skip(os.environ.get("CASES_DOCKER"), "there is no Docker")
    alias = unique("built")
    template = Template().from_base_image().set_envs({"BUILT": "yes"}).run_cmd("echo made > /made")
    Template.build(template, alias=alias)
    same(box(alias).commands.run("cat /made").stdout, "made\n", "stdout")


@test
def volume():
    absent(hasattr(e2b, "Volume"))
    v = e2b.Volume.create(unique("vol"))
    try:
        v.write_file("/a.txt", "shared")
        same(v.read_file("/a.txt"), "shared", "content")
        one, two = (box(volume_mounts={"/mnt/v": v}) for _ in range(2))
        one.commands.run("echo more >> /mnt/v/b.txt")
        same(two.commands.run("cat /mnt/v/a.txt /mnt/v/b.txt").stdout, "sharedmore\n", "stdout")
        ok(v.volume_id in [i.volume_id for i in e2b.Volume.list()], "it is not listed")
        for s in (one, two):
            s.kill()
    finally:
        same(e2b.Volume.destroy(v.volume_id), True, "destroy")


@test
def volume_files():
    absent(hasattr(e2b, "Volume"))
    made = e2b.Volume.create(unique("vol"))
    try:
        v = e2b.Volume.connect(made.volume_id)
        same(e2b.Volume.get_info(made.volume_id).name, made.name, "name")
        v.make_dir("/deep/er", force=True, mode=0o750)
        same(v.get_info("/deep/er").mode, 0o750, "mode of a folder")
        wrote = v.write_file("/deep/er/b.bin", b"\x00\xff\n\r", mode=0o600)
        same((wrote.path, wrote.size, wrote.mode), ("/deep/er/b.bin", 4, 0o600), "what was written")
        same(bytes(v.read_file("/deep/er/b.bin", format="bytes")), b"\x00\xff\n\r", "bytes")
        same([e.path for e in v.list("/", depth=3)], ["/deep", "/deep/er", "/deep/er/b.bin"], "list")
        same(v.update_metadata("/deep/er/b.bin", mode=0o640).mode, 0o640, "mode")
        v.remove("/deep")
        same(v.exists("/deep"), False, "exists")
        fails(lambda: v.read_file("/none"), "VolumePathNotFoundException")
        fails(lambda: e2b.Volume.create(made.name), "VolumeException")
    finally:
        same(e2b.Volume.destroy(made.volume_id), True, "destroy")
    same(e2b.Volume.destroy(made.volume_id), False, "destroy again")


@test
def secret():
    absent(hasattr(e2b, "Secret"))
    ok(isinstance(e2b.Secret.list().next_items(), list), "there is no list")
    same(e2b.Secret.exists("no-such-secret"), False, "exists")


@test
def secret_write():
    absent(hasattr(e2b, "Secret"))
    unsupported(lambda: e2b.Secret.create("KEY", "value"), ["settings"])


@test
def git():
    absent(NEW)
    s = box()
    s.git.init("repo", initial_branch="main")
    s.files.write("repo/a.txt", "x")
    s.git.add("repo")
    s.git.commit("repo", "first", author_name="Ada", author_email="ada@example.com")
    status = s.git.status("repo")
    same((status.current_branch, status.is_clean), ("main", True), "status")

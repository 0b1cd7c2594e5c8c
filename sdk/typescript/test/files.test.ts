import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { open, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { CanceledError, CoveError, ExhaustedError, InvalidError, NotFoundError, type Progress, Sandbox } from "cove-sandbox";

import { type Served, collect, folder, serve, where } from "./rig.js";

const MiB = 1024 * 1024;

describe("files", () => {
  let served: Served;
  let sandbox: Sandbox;
  let here: string;
  before(async () => {
    served = await serve({ MAX_FILE_SIZE_MB: "400" });
    sandbox = await Sandbox.create({ ...where(served), memory: "1g", workspace: { kind: "memory", sizeMb: 500 } });
    here = await folder();
  });
  after(() => sandbox[Symbol.asyncDispose]());

  test("are written and read", async () => {
    await sandbox.files.write("a/text", "grüße\n");
    assert.equal(await sandbox.files.read("a/text"), "grüße\n");
    await sandbox.files.write("bytes", new Uint8Array([0, 255, 10]), { mode: 0o755 });
    assert.deepEqual(await sandbox.files.readBytes("bytes"), Buffer.from([0, 255, 10]));
    await sandbox.files.write("blob", new Blob(["of ", "parts"]));
    assert.equal(await sandbox.files.read("blob", { offset: 3, length: 2 }), "pa");
    async function* pieces() {
      yield "one ";
      yield new TextEncoder().encode("two");
    }
    await sandbox.files.write("stream", pieces());
    assert.equal(await sandbox.files.read("stream"), "one two");
    assert.equal(await sandbox.files.read("stream", { length: 0 }), "");
    await assert.rejects(sandbox.files.read("nothing", { length: 0 }), NotFoundError);
    async function* buffers() {
      yield new Uint8Array([65, 66]).buffer as unknown as Uint8Array;
    }
    await sandbox.files.write("stream", buffers());
    assert.equal(await sandbox.files.read("stream"), "AB");
    async function* numbers() {
      yield 5 as unknown as string;
    }
    await assert.rejects(sandbox.files.write("numbers", numbers()), /content: is a stream of something that is neither a text nor bytes/);
    assert.equal(await sandbox.files.exists("numbers"), false);
    await sandbox.files.write("empty", "");
    assert.equal((await sandbox.files.stat("empty")).size, 0);
  });

  test("are listed, described, moved and removed", async () => {
    await sandbox.files.mkdir("dir/sub");
    await sandbox.files.write("dir/sub/f", "12345", { mode: 0o600 });
    const info = await sandbox.files.stat("dir/sub/f");
    assert.deepEqual([info.path, info.type, info.size, info.mode], ["/workspace/dir/sub/f", "file", 5, 0o600]);
    assert.ok(Math.abs(info.modified.getTime() - Date.now()) < 60_000);
    assert.deepEqual((await sandbox.files.list("dir")).map((f) => `${f.type} ${f.path}`), ["dir /workspace/dir/sub"]);
    assert.deepEqual((await sandbox.files.list("dir", { depth: 5 })).map((f) => f.path).sort(), ["/workspace/dir/sub", "/workspace/dir/sub/f"]);
    await sandbox.files.move("dir/sub/f", "dir/g");
    assert.deepEqual([await sandbox.files.exists("dir/sub/f"), await sandbox.files.exists("dir/g")], [false, true]);
    await sandbox.files.remove("dir");
    assert.equal(await sandbox.files.exists("dir"), false);
    await assert.rejects(sandbox.files.read("dir/g"), (err: CoveError) => err instanceof NotFoundError && err.code === "not_found");
    await assert.rejects(sandbox.files.read("/proc/self/root/etc/passwd"), (err: CoveError) => err instanceof InvalidError && /leaves the workspace/.test(err.message));
    await assert.rejects(sandbox.files.write("x", 5 as unknown as string), InvalidError);
  });

  test("are watched", async () => {
    await sandbox.files.mkdir("watched");
    const watch = await sandbox.files.watch("watched");
    await sandbox.files.write("watched/new", "x");
    for await (const change of watch) {
      if (change.path.endsWith("watched/new")) break;
    }
    const open = await sandbox.files.watch("watched");
    const waiting = open.next();
    open.close();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    const stop = new AbortController();
    const aborted = await sandbox.files.watch("watched", { signal: stop.signal });
    stop.abort();
    await assert.rejects(aborted.next(), CanceledError);
    await assert.rejects(sandbox.files.watch("nowhere"), NotFoundError);
  });

  test("of any size go in and out in pieces, and nobody holds them", async () => {
    const size = 192 * MiB;
    const from = join(here, "large");
    const sum = await fill(from, size);
    const seen: Progress[] = [];
    const held = holding();
    await sandbox.files.upload(from, "large", { onProgress: (p) => void (held.look(), seen.push(p)) });
    assert.deepEqual(seen.at(-1), { bytes: size, total: size });
    assert.ok(seen.length > 100 && seen.every((p, i) => i === 0 || p.bytes > seen[i - 1]!.bytes), "progress goes on");
    assert.equal((await sandbox.commands.run("sha256sum large")).stdout.split(" ")[0], sum);
    const to = join(here, "back");
    let last: Progress | undefined;
    await sandbox.files.download("large", to, { onProgress: (p) => void (held.look(), (last = p)) });
    assert.deepEqual(last, { bytes: size, total: size });
    assert.equal(createHash("sha256").update(await readFile(to)).digest("hex"), sum);
    assert.ok(held.looks() > 20, "it was looked at");
    assert.ok(held.most() < 32 * MiB, `${Math.round(held.most() / MiB)} MiB of ${size / MiB} were held`);
    await sandbox.files.remove("large");
  });

  test("that are too large, or do not fit, are refused with the reason, and nothing is left", async () => {
    async function* endless() {
      const piece = Buffer.alloc(MiB, "x");
      for (let i = 0; i < 2000; i++) yield piece;
    }
    await assert.rejects(sandbox.files.write("endless", endless()), (err: CoveError) => err.reason === "file_too_large");
    await assert.rejects(sandbox.files.write("known", Buffer.alloc(401 * MiB)), (err: CoveError) => err.reason === "file_too_large");
    await using small = await Sandbox.create({ ...where(served), workspace: { kind: "memory", sizeMb: 8 } });
    await assert.rejects(small.files.write("full", Buffer.alloc(20 * MiB)), (err: CoveError) => err instanceof ExhaustedError && err.reason === "workspace_full");
    assert.deepEqual(await small.files.list(), []);
    assert.equal(await sandbox.files.exists("endless"), false);
  });

  test("that are aborted on their way are not there", async () => {
    const stop = new AbortController();
    async function* slow() {
      yield Buffer.alloc(MiB);
      stop.abort();
      await new Promise(() => undefined); // a source that blocks for ever holds nobody up
    }
    await assert.rejects(sandbox.files.write("half", slow(), { signal: stop.signal }), CanceledError);
    assert.equal(await sandbox.files.exists("half"), false);
    await sandbox.files.write("source", Buffer.alloc(8 * MiB));
    const leave = new AbortController();
    await assert.rejects(sandbox.files.download("source", join(here, "half"), { signal: leave.signal, onProgress: () => leave.abort() }), CanceledError);
    assert.deepEqual((await readdir(here)).filter((name) => name.startsWith("half")), []);
  });

  test("have links that need no key", async () => {
    await sandbox.files.write("shown", "to all");
    const link = await sandbox.files.downloadLink("shown", { ttlMs: 60_000 });
    assert.equal(await (await fetch(link.url)).text(), "to all");
    assert.ok(link.expiresAt.getTime() <= Date.now() + 61_000);
    const into = await sandbox.files.uploadLink("taken");
    assert.equal((await fetch(into.url, { method: "PUT", body: "from all" })).status, 204);
    assert.equal(await sandbox.files.read("taken"), "from all");
  });

  test("come and go as archives", async () => {
    await sandbox.files.write("packed/one", "1");
    const tar = Buffer.concat(await collect(await sandbox.files.archive("packed")));
    await sandbox.files.unpack("again", tar);
    assert.equal(await sandbox.files.read("again/one"), "1");
  });

  test("are uploaded with the permissions that they have here", async () => {
    const script = join(here, "script");
    await writeFile(script, "#!/bin/sh\necho ran\n", { mode: 0o755 });
    await sandbox.files.upload(script, "script");
    assert.equal((await sandbox.commands.run("./script")).stdout, "ran\n");
    await assert.rejects(sandbox.files.upload(here, "dir"), /is not a file/);
    await assert.rejects(sandbox.files.upload(join(here, "nothing"), "x"), { code: "ENOENT" });
    assert.ok((await stat(script)).isFile());
  });
});

/**
 * holding counts what buffers hold that somebody can still reach, at every 64th look:
 * garbage is collected before. What the process has of the machine says less, because
 * it depends on when that happens by itself.
 */
function holding() {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const now = () => {
    collect();
    collect(); // what the first found is let go of by the second at the latest
    return process.memoryUsage().arrayBuffers;
  };
  const start = now();
  let [looks, most] = [0, 0];
  return {
    look: () => {
      if (looks++ % 64 === 0) most = Math.max(most, now() - start);
    },
    looks: () => Math.floor(looks / 64),
    most: () => most,
  };
}

/** fill writes a file of a size and returns its sum. */
async function fill(path: string, size: number): Promise<string> {
  const file = await open(path, "w");
  const sum = createHash("sha256");
  for (let at = 0; at < size; at += MiB) {
    const piece = Buffer.alloc(MiB, `${at} `);
    sum.update(piece);
    await file.write(piece);
  }
  await file.close();
  return sum.digest("hex");
}

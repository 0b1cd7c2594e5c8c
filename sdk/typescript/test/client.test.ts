import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";

import { type ConnectionOptions, ConnectionError, CoveError, InvalidError, Sandbox, SandboxClient, SessionNotFoundError } from "cove-sandbox";

import { bin, folder, serve, undone, where } from "./rig.js";

describe("a client of sessions", () => {
  const platforms: Record<string, ConnectionOptions> = {};
  let here = "";
  before(async () => {
    for (const name of ["COVE_URL", "COVE_API_KEY", "COVE_HOME", "SANDBOX_MODE", "SANDBOX_URL"]) delete process.env[name];
    here = await folder();
    platforms["remote"] = { mode: "remote", ...where(await serve()) };
    const home = join(here, "home");
    platforms["local"] = { mode: "local", home, coveBin: bin };
    undone(() => endLocal(home));
  });

  for (const mode of ["remote", "local"]) {
    test(`in ${mode} mode`, async () => {
      await using client = new SandboxClient(platforms[mode]!);
      const session = await client.getOrCreateSession({ userId: "ada", threadId: "one" });
      assert.equal(session.created, true);
      assert.deepEqual(await client.getOrCreateSession({ userId: "ada", threadId: "one" }).then((s) => [s.id, s.created]), [session.id, false]);
      assert.equal((await client.execute(session.id, "echo kept > file; cat file")).stdout, "kept\n");
      await writeFile(join(here, "up"), "from here");
      await client.uploadFile(session.id, join(here, "up"), "in/up");
      await client.uploadFile(session.id, { content: "made up" }, "in/made");
      assert.deepEqual((await client.listFiles(session.id, "in")).map((f) => f.path).sort(), ["/workspace/in/made", "/workspace/in/up"]);
      assert.equal(Buffer.from((await client.downloadFile(session.id, "in/made"))!).toString(), "made up");
      await client.downloadFile(session.id, "in/up", join(here, "down"));
      assert.equal(await readFile(join(here, "down"), "utf8"), "from here");
      await assert.rejects(client.getOrCreateSession({ userId: "ada", threadId: "" }), InvalidError);
      await assert.rejects(client.execute("06gy6bv8t0vj7na7kcyvgvv1rw", "true"), SessionNotFoundError);
      assert.equal(await (await client.session(session.id)).kill(), true);
    });

    test(`in ${mode} mode opens what expired again, unless it is told not to`, async () => {
      await using client = new SandboxClient(platforms[mode]!);
      const session = await client.getOrCreateSession({ userId: "ada", threadId: "brief", timeoutMs: 4_000, fixedEnd: true });
      for (let over = false; !over; ) {
        over = await Sandbox.connect(session.id, platforms[mode]!).then(() => false, (err: CoveError) => err.reason === "session_expired");
        await new Promise((done) => setTimeout(done, 50));
      }
      await assert.rejects(client.execute(session.id, "true", { autoRetry: false }), { reason: "session_expired" });
      const x = await client.execute(session.id, "echo new", { autoRetry: true });
      assert.deepEqual([x.stdout, x.recreated], ["new\n", true]);
      assert.equal(await Sandbox.kill(x.sandboxId, platforms[mode]!), true);
    });
  }

  test("in local mode starts the server again that was stopped meanwhile", async () => {
    await using sandbox = await Sandbox.create(platforms["local"]!);
    await sandbox.files.write("kept", "x");
    await stopLocal(platforms["local"]!.home!);
    assert.equal(await sandbox.files.read("kept"), "x");
  });

  test("in local mode does not wait for what says too much at the place of the server", async () => {
    const home = join(here, "chatty");
    await mkdir(home, { mode: 0o700 });
    const chatty = createServer((_req, res) => res.write("x".repeat(100_000))); // and there is more to come
    chatty.listen(join(home, "cove.sock"));
    await once(chatty, "listening");
    undone(async () => void chatty.close());
    const signal = AbortSignal.timeout(15_000);
    await assert.rejects(Sandbox.create({ mode: "local", coveBin: join(here, "no-such-cove"), home, signal }), (err: CoveError) => /there is no program/.test(err.message));
  });

  test("in local mode says what is missing", async () => {
    const none = { mode: "local", coveBin: join(here, "no-such-cove"), home: join(here, "empty") } as const;
    await assert.rejects(Sandbox.create(none), (err: CoveError) => err instanceof ConnectionError && /set COVE_BIN/.test(err.remedy!));
    await assert.rejects(Sandbox.create({ mode: "local", coveBin: bin, home: "/proc/nowhere" }), (err: CoveError) => err.reason === "configuration" && err.message.includes("/proc/nowhere"));
  });
});

const run = promisify(execFile);

/** stopLocal ends the server of a directory, as somebody who looks for it would. */
async function stopLocal(home: string): Promise<void> {
  const { stdout } = await run("sh", ["-c", 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q -- "serve --on-demand --home $1 " && echo ${p#/proc/}; done; true', "sh", home]);
  for (const pid of stdout.trim().split("\n").filter(Boolean)) {
    process.kill(Number(pid), "SIGTERM");
    while (alive(Number(pid))) await new Promise((done) => setTimeout(done, 20));
  }
}

async function endLocal(home: string): Promise<void> {
  for await (const one of Sandbox.list({ mode: "local", home, coveBin: bin })) await Sandbox.kill(one.id, { mode: "local", home, coveBin: bin });
  await stopLocal(home);
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}


/** What the server stopped by itself comes back when it is used: a server of the provider fake with room for one session. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import { ConflictError, MicrosandboxWrapper, Sandbox, SandboxClient, WrapperConfig, type WrapperSettings } from "cove-sandbox";

import { type Served, serve, where } from "./rig.js";

describe("a session that the server stopped for room", () => {
  let served: Served;
  before(async () => {
    served = await serve({ SANDBOX_PROVIDER: "fake", MSB_MAX_SESSIONS: "1" });
  });

  /** evict opens another sandbox for a moment, for which the server stops this one. */
  async function evict(id: string): Promise<void> {
    await using other = await Sandbox.create(where(served));
    const { info } = await Sandbox.connect(id, where(served));
    assert.deepEqual([other.info.status, info.status, info.cause], ["running", "stopped", "evicted"]);
  }

  test("comes back for a sandbox, and is told", async () => {
    await using sandbox = await Sandbox.create(where(served));
    await sandbox.files.write("kept", "x");
    await evict(sandbox.id);
    const x = await sandbox.commands.run("cat kept");
    assert.deepEqual([x.stdout, x.restarted, x.recreated], ["x", true, false]);
    assert.equal((await sandbox.commands.run("true")).restarted, false);
    await evict(sandbox.id);
    assert.equal((await sandbox.code.run("1", { language: "calc" })).restarted, true);
    await sandbox.stop();
    await assert.rejects(sandbox.commands.run("true"), ConflictError);
  });

  test("comes back for a client of conversations", async () => {
    await using client = new SandboxClient(where(served));
    const session = await client.getOrCreateSession({ userId: "ada", threadId: "one" });
    await client.execute(session.id, "echo x > kept");
    await evict(session.id);
    const x = await client.execute(session.id, "cat kept");
    assert.deepEqual([x.stdout, x.restarted], ["x\n", true]);
    await client.closeSession(session.id);
    const ada = { userId: "ada", threadId: "two" };
    await using other = await Sandbox.create({ ...where(served), ...ada }); // how it ends is not this client's to say
    assert.equal((await client.getOrCreateSession(ada)).id, other.id);
    await assert.rejects(client.getOrCreateSession({ ...ada, onEnd: "close" }), ConflictError);
  });

  test("comes back for a wrapper", async () => {
    await using w = new MicrosandboxWrapper(new WrapperConfig(where(served) as WrapperSettings));
    const first = await w.executeCode("x = 42", { template: "base", language: "calc" });
    await evict(first.sandboxId);
    const x = await w.executeCommand("echo here", { sessionId: first.sandboxId });
    assert.deepEqual([x.stdout, x.restarted], ["here\n", true]);
  });
});

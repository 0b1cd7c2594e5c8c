import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import { CanceledError, ConflictError, CoveError, ResourceLimitError, Sandbox, SandboxClient } from "cove-sandbox";

import { type Served, peer, serve, where } from "./rig.js";

describe("a server with room for one", () => {
  let served: Served;
  before(async () => {
    served = await serve({ SANDBOX_PROVIDER: "fake", MSB_MAX_SESSIONS: "1", MSB_ENABLE_LRU_EVICTION: "false" });
  });

  test("lets callers wait and tells them of their place", async () => {
    const first = await Sandbox.create(where(served));
    const places: number[] = [];
    let told: () => void = () => undefined;
    const waits = new Promise<void>((done) => (told = done));
    const second = Sandbox.create({ ...where(served), onFull: "wait", onQueue: (position) => void (places.push(position), told()) });
    await waits;
    assert.equal(await first.kill(), true);
    await using got = await second;
    assert.deepEqual([got.info.status, places[0]], ["running", 1]);
  });

  test("is left by who gives up, and refuses who does not want to wait", async () => {
    await using first = await Sandbox.create(where(served));
    const stop = new AbortController();
    await assert.rejects(Sandbox.create({ ...where(served), onFull: "wait", onQueue: () => stop.abort(), signal: stop.signal }), CanceledError);
    await assert.rejects(Sandbox.create({ ...where(served), onFull: "reject", onQueue: () => assert.fail("it waited") }), (err: CoveError) => err instanceof ResourceLimitError);
    const broken = new Error("of the callback");
    const fails = () => {
      throw broken;
    };
    await assert.rejects(Sandbox.create({ ...where(served), onFull: "wait", onQueue: fails }), broken);
    assert.equal((await first.refresh()).status, "running");
  });

  test("makes one sandbox of a request that has a name", async () => {
    await using client = new SandboxClient(where(served));
    const asked = { ...where(served), onFull: "reject", idempotencyKey: "order-1" } as const; // there is no room for a second one
    const made = await Sandbox.create(asked);
    assert.equal((await Sandbox.create(asked)).id, made.id);
    await assert.rejects(Sandbox.create({ ...asked, metadata: { other: "yes" } }), ConflictError);
    assert.equal(await made.kill(), true);
    const session = await client.getOrCreateSession({ userId: "ada", threadId: "named", idempotencyKey: "order-2" });
    assert.equal(await client.closeSession(session.id), true);
    assert.equal(await client.closeSession(session.id), false);
  });
});

test("a place in the queue that is lost with the connection is asked for again, by the same name", async () => {
  const names: Array<string | string[] | undefined> = [];
  const serverUrl = await peer((req, res) => {
    req.resume();
    if (req.headers.accept !== "text/event-stream") return void res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ session_id: "first", version: "dev" }));
    names.push(req.headers["idempotency-key"]);
    res.writeHead(200, { "Content-Type": "text/event-stream" }).write(`event: queue\ndata: {"position":${3 - names.length}}\n\n`, () => {
      if (names.length === 1) res.destroy();
      else res.end('event: session\ndata: {"session_id":"second"}\n\n');
    });
  });
  await using client = new SandboxClient({ serverUrl });
  await client.getOrCreateSession({ userId: "ada", threadId: "one" });
  const places: number[] = [];
  const session = await client.getOrCreateSession({ userId: "ada", threadId: "two", onFull: "wait", onQueue: (position) => void places.push(position) });
  assert.deepEqual([session.id, places, names.length, names[0] === names[1]], ["second", [2, 1], 2, true]);
});

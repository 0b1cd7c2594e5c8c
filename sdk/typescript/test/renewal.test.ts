/**
 * What happens when several calls find at once that their sandbox is gone. The
 * server is one that says so when it is told to: with a real one it is luck who is first.
 */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";

import { CanceledError, Sandbox } from "cove-sandbox";

import { peer } from "./rig.js";

/** Expiring is a server whose first sandbox has expired, and that opens others when opens lets it. */
class Expiring {
  opened = 0;
  ended: string[] = [];
  /** What the requests say that were made again. */
  again: string[] = [];

  constructor(private readonly refusal: { status: number; code: string; reason: string } = { status: 404, code: "not_found", reason: "session_expired" }) {}

  /** Told of each sandbox that is asked for; what it waits for is waited for. */
  opens: () => Promise<void> = async () => undefined;

  readonly answer = (req: IncomingMessage, res: ServerResponse) => {
    req.resume();
    const [, , , id, what] = req.url!.split("/");
    const json = (status: number, type: string, form: unknown) => res.writeHead(status, { "Content-Type": type }).end(JSON.stringify(form));
    if (req.headers["cove-retry"] !== undefined) this.again.push(String(req.headers["cove-retry"]));
    if (req.method === "DELETE") this.ended.push(id!);
    if (req.method === "POST" && id === undefined) {
      const made = `s${++this.opened}`;
      void this.opens().then(() => json(201, "application/json", { session_id: made }));
    } else if (id === "s1" && what !== undefined) {
      json(this.refusal.status, "application/problem+json", { code: this.refusal.code, reason: this.refusal.reason, error: "the session is gone" });
    } else if (req.headers.accept === "text/event-stream") {
      const name = what === "code" ? "result" : "exit";
      res.writeHead(200, { "Content-Type": "text/event-stream" }).end(`event: ${name}\ndata: ${JSON.stringify({ session_id: id })}\n\n`);
    } else {
      json(200, "application/json", { session_id: id, version: "dev" });
    }
  };
}

test("each answer of what was run again says so, and none that follows", async () => {
  const server = new Expiring();
  await using sandbox = await Sandbox.create({ serverUrl: await peer(server.answer) });
  const heard = { onStdout: () => undefined };
  const all = await Promise.all([
    sandbox.commands.run("true"), sandbox.commands.run("true", heard), sandbox.code.run("1"), sandbox.code.run("1", heard), sandbox.commands.run("true"),
  ]);
  assert.deepEqual(all.map((x) => [x.sandboxId, x.recreated]), all.map(() => ["s2", true]));
  assert.deepEqual([(await sandbox.commands.run("true")).recreated, (await sandbox.code.run("1", heard)).recreated], [false, false]);
  assert.equal(server.opened, 2, "it is opened again once");
});

test("one that was lost is opened again as well", async () => {
  const server = new Expiring({ status: 404, code: "not_found", reason: "node_lost" });
  await using sandbox = await Sandbox.create({ serverUrl: await peer(server.answer) });
  const events = [];
  for await (const event of sandbox.code.stream("1")) events.push(event);
  assert.equal(events.length, 1);
  assert.deepEqual([(await sandbox.commands.run("true")).recreated, sandbox.id, server.opened], [false, "s2", 2]);
  assert.deepEqual(server.again, ["node_lost"]);
});

test("one that may be there still is not opened again", async () => {
  for (const [status, code, reason] of [
    [503, "unavailable", "node_away"], [503, "unavailable", "outcome_unknown"], [503, "unavailable", "no_directory"], [503, "unavailable", "node_lost"], [409, "conflict", "node_lost"], [404, "not_found", "session_closed"],
  ] as const) {
    const server = new Expiring({ status, code, reason });
    await using sandbox = await Sandbox.create({ serverUrl: await peer(server.answer) });
    await assert.rejects(sandbox.commands.run("true"), { code, reason });
    assert.equal(server.opened, 1, reason);
  }
});

/** held has the next sandbox wait to be opened; what it returns says when one is asked for, and lets it be. */
function held(server: Expiring): { asked: Promise<void>; go: () => void } {
  let go: () => void = () => undefined;
  const gate = new Promise<void>((done) => (go = done));
  const asked = new Promise<void>((done) => {
    server.opens = () => {
      done();
      return gate;
    };
  });
  return { asked, go };
}

test("who gives up waiting does not end what others wait for", async () => {
  const server = new Expiring();
  await using sandbox = await Sandbox.create({ serverUrl: await peer(server.answer) });
  const { asked, go } = held(server);
  const stop = new AbortController();
  const left = sandbox.commands.run("true", { signal: stop.signal });
  await asked;
  const stays = sandbox.commands.run("true");
  stop.abort();
  await assert.rejects(left, CanceledError);
  go();
  assert.deepEqual(await stays.then((x) => [x.sandboxId, x.recreated]), ["s2", true]);
  assert.equal(server.opened, 2);
});

test("one that is opened while it is to end does not stay", async () => {
  const server = new Expiring();
  const sandbox = await Sandbox.create({ serverUrl: await peer(server.answer) });
  const { asked, go } = held(server);
  const running = sandbox.commands.run("true");
  await asked;
  const killed = sandbox[Symbol.asyncDispose]();
  go();
  await Promise.all([running, killed]);
  assert.deepEqual(server.ended, ["s2"]);
});

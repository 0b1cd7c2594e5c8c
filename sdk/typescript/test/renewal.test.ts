/**
 * What happens when several calls find at once that their sandbox has expired. The
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
  /** Told of each sandbox that is asked for; what it waits for is waited for. */
  opens: () => Promise<void> = async () => undefined;

  readonly answer = (req: IncomingMessage, res: ServerResponse) => {
    req.resume();
    const [, , , id, what] = req.url!.split("/");
    const json = (status: number, type: string, form: unknown) => res.writeHead(status, { "Content-Type": type }).end(JSON.stringify(form));
    if (req.method === "DELETE") this.ended.push(id!);
    if (req.method === "POST" && id === undefined) {
      const made = `s${++this.opened}`;
      void this.opens().then(() => json(201, "application/json", { session_id: made }));
    } else if (id === "s1" && what !== undefined) {
      json(404, "application/problem+json", { code: "not_found", reason: "session_expired", error: "the session has expired" });
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

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, get } from "node:http";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";

import { ConflictError, CoveError, type Execution, InvalidError, Sandbox, SessionNotFoundError, UnsupportedError } from "cove-sandbox";

import { type Served, bin, clean, collect, serve, where } from "./rig.js";

describe("sandboxes", () => {
  let served: Served;
  before(async () => {
    served = await serve({ COVE_PREVIEW_ADDR: "127.0.0.1:0" });
  });

  test("are made, found, listed and ended", async () => {
    const sandbox = await Sandbox.create({ ...where(served), userId: "ada", threadId: "one", metadata: { team: "a" }, timeoutMs: 600_000, env: { A: "1" } });
    assert.deepEqual([sandbox.info.created, sandbox.info.userId, sandbox.info.status], [true, "ada", "running"]);
    assert.ok(Math.abs(sandbox.info.expiresAt.getTime() - Date.now() - 600_000) < 60_000);
    const same = await Sandbox.create({ ...where(served), userId: "ada", threadId: "one", metadata: { team: "a" }, timeoutMs: 600_000, env: { A: "1" } });
    assert.deepEqual([same.id, same.info.created], [sandbox.id, false]);
    const other = await Sandbox.create({ ...where(served), metadata: { team: "b" } });
    assert.deepEqual((await collect(Sandbox.list({ ...where(served), metadata: { team: "a" } }))).map((s) => s.id), [sandbox.id]);
    assert.equal((await collect(Sandbox.list(where(served)))).length, 2);
    const found = await Sandbox.connect(sandbox.id, where(served));
    assert.equal((await found.commands.run("echo $A")).stdout, "1\n");
    assert.equal(await Sandbox.kill(other.id, where(served)), true);
    assert.equal(await Sandbox.kill(other.id, where(served)), false);
    assert.equal(await sandbox.kill(), true);
    await assert.rejects(found.commands.run("true"), (err: CoveError) => err instanceof SessionNotFoundError && err.reason === "session_closed");
    await assert.rejects(Sandbox.connect("06gy6bv8t0vj7na7kcyvgvv1rw", where(served)), SessionNotFoundError);
    await assert.rejects(Sandbox.connect("", where(served)), SessionNotFoundError);
    await assert.rejects(Sandbox.connect("..", where(served)), CoveError);
  });

  test("end with the block that made them, and only those", async () => {
    let id = "";
    {
      await using sandbox = await Sandbox.create(where(served));
      id = sandbox.id;
      {
        await using connected = await Sandbox.connect(id, where(served));
        assert.equal(connected.id, id);
      }
      assert.equal((await sandbox.refresh()).status, "running");
    }
    await assert.rejects(Sandbox.connect(id, where(served)), SessionNotFoundError);
  });

  test("are refused with a reason and a remedy where they cannot be", async () => {
    await assert.rejects(Sandbox.create({ ...where(served), template: "nosuch" }), (err: CoveError) => err.message.includes("nosuch") && ["invalid", "not_found", "unsupported"].includes(err.code));
    await assert.rejects(Sandbox.create({ ...where(served), flavor: "enormous" }), InvalidError);
    await assert.rejects(Sandbox.create({ ...where(served), network: { mode: "elsewhere" as "none" } }), InvalidError);
    await assert.rejects(Sandbox.create({ ...where(served), timeoutMs: -5 }), InvalidError);
  });

  test("rest and come back", async () => {
    await using sandbox = await Sandbox.create(where(served));
    await sandbox.files.write("kept", "x");
    assert.equal((await sandbox.pause()).status, "paused");
    await assert.rejects(sandbox.commands.run("true"), (err: CoveError) => err instanceof ConflictError && err.reason === "session_paused" && err.remedy !== undefined);
    assert.equal((await sandbox.resume()).status, "running");
    assert.equal((await sandbox.stop()).status, "stopped");
    assert.equal((await sandbox.start()).status, "running");
    assert.equal(await sandbox.files.read("kept"), "x");
    const later = await sandbox.setTimeout(3_600_000);
    assert.ok(later.expiresAt.getTime() > Date.now() + 3_000_000);
    assert.ok((await sandbox.usage()).memoryBytes > 0);
  });

  test("are copied", async () => {
    await using sandbox = await Sandbox.create(where(served));
    await sandbox.files.write("kept", "first");
    const snapshot = await sandbox.snapshot({ name: "before", idempotencyKey: "one" });
    assert.equal((await sandbox.snapshot({ name: "before", idempotencyKey: "one" })).id, snapshot.id);
    await sandbox.files.write("kept", "second");
    await using fork = await sandbox.fork({ metadata: { copy: "yes" }, idempotencyKey: "two" });
    assert.equal((await sandbox.fork({ metadata: { copy: "yes" }, idempotencyKey: "two" })).id, fork.id);
    await using old = await Sandbox.create({ ...where(served), snapshot: snapshot.id });
    assert.deepEqual([await fork.files.read("kept"), await old.files.read("kept")], ["second", "first"]);
    assert.deepEqual((await collect(Sandbox.snapshots({ ...where(served), sandboxId: sandbox.id }))).map((s) => [s.id, s.name]), [[snapshot.id, "before"]]);
    await Sandbox.deleteSnapshot(snapshot.id, where(served));
    await assert.rejects(Sandbox.deleteSnapshot(snapshot.id, where(served)), { code: "not_found" });
  });

  test("that are let go of leave the calls of others alone", async () => {
    await using sandbox = await Sandbox.create(where(served));
    let running: Promise<Execution> | undefined;
    let enter: () => void = () => undefined;
    const entered = new Promise<void>((done) => (enter = done));
    async function* typed() {
      yield "first\n";
      await entered;
      yield "second\n";
    }
    await new Promise<unknown>((began) => (running = sandbox.commands.run("read a; echo $a; read b; echo $b", { stdin: typed(), onStdout: began })));
    {
      await using fork = await sandbox.fork();
      assert.notEqual(fork.id, sandbox.id);
    }
    enter();
    assert.equal((await running)?.stdout, "first\nsecond\n");
  });

  test("have a network only where it was asked for", async () => {
    await using sandbox = await Sandbox.create({ ...where(served), network: { mode: "none" } });
    assert.equal(sandbox.info.network.mode, "none");
    try {
      assert.equal((await sandbox.setNetwork({ mode: "allow", allow: ["example.org"] })).network.mode, "allow");
    } catch (err) {
      assert.ok(err instanceof UnsupportedError || err instanceof ConflictError, String(err)); // a host may not have it
    }
  });

  test("share folders that have a name", async () => {
    await promisify(execFile)(bin, ["volume", "create", "shared"], { env: clean({ COVE_URL: served.serverUrl, COVE_API_KEY: served.apiKey }) });
    await using one = await Sandbox.create({ ...where(served), volumes: [{ name: "shared", target: "/data", write: true }] });
    await using other = await Sandbox.create({ ...where(served), volumes: [{ name: "shared", target: "/data" }] });
    assert.equal((await one.commands.run("echo from one > /data/file")).exitCode, 0);
    assert.equal((await other.commands.run("cat /data/file; echo no > /data/file")).stdout, "from one\n");
    assert.equal((await one.commands.run("cat /data/file")).stdout, "from one\n");
    await assert.rejects(Sandbox.create({ ...where(served), volumes: [{ name: "nosuch", target: "/data" }] }), CoveError);
  });

  test("have ports that are dialed and linked to", async () => {
    await using sandbox = await Sandbox.create(where(served));
    const server = "import http.server as h, functools\nh.test(functools.partial(h.SimpleHTTPRequestHandler, directory='/workspace'), port=8123, bind='127.0.0.1')";
    await sandbox.files.write("page", "from inside");
    const p = await sandbox.commands.start(["python3", "-c", server]);
    await sandbox.commands.run("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null; do sleep 0.05; done", { timeoutMs: 20_000 });
    const port = await sandbox.ports.dial(8123);
    port.write("GET /page HTTP/1.0\r\n\r\n");
    assert.match(Buffer.concat(await collect(port as AsyncIterable<Buffer>)).toString(), /200 OK[^]*from inside/);
    const link = await sandbox.ports.link(8123, { ttlMs: 60_000 });
    const door = await visit(link.url); // a browser is given a cookie there
    const cookie = (door.headers["set-cookie"] ?? []).map((one) => one.split(";")[0]).join("; ");
    assert.equal((await visit(new URL("/page", link.url).href, { cookie })).text, "from inside");
    await assert.rejects(sandbox.ports.dial(8124), CoveError);
    await assert.rejects(sandbox.ports.dial(99999), CoveError);
    await p.kill();
  });

  test("that expired are opened again by what would run in them, once, and it is said", async () => {
    const spec = { ...where(served), timeoutMs: 4_000, fixedEnd: true, onEnd: "close" as const };
    await using sandbox = await Sandbox.create(spec);
    await using strict = await Sandbox.create({ ...spec, autoRetry: false });
    const was = sandbox.id;
    await expired(was, served);
    await expired(strict.id, served);
    await assert.rejects(sandbox.files.write("x", "y"), (err: CoveError) => err instanceof SessionNotFoundError && err.reason === "session_expired");
    await assert.rejects(sandbox.commands.run("true", { autoRetry: false }), SessionNotFoundError);
    await assert.rejects(strict.commands.run("true"), SessionNotFoundError);
    async function* once() {
      yield "x";
    }
    await assert.rejects(sandbox.commands.run("cat", { stdin: once() }), SessionNotFoundError);
    const [x, y] = await Promise.all([sandbox.commands.run("echo again"), sandbox.commands.run("echo again", { onStdout: () => undefined })]);
    assert.deepEqual([x.stdout, y.stdout], ["again\n", "again\n"]);
    assert.deepEqual([x.recreated, y.recreated], [true, true], "each answer of what was run again says so");
    assert.notEqual(sandbox.id, was);
    assert.equal(x.sandboxId, sandbox.id);
    assert.equal(y.sandboxId, sandbox.id);
  });

});

/** visit asks for a page as browsers do, which know where names below localhost are. */
async function visit(url: string, headers: Record<string, string> = {}): Promise<{ headers: IncomingHttpHeaders; text: string }> {
  const { host, port, pathname, search } = new URL(url);
  const req = get({ host: "127.0.0.1", port, path: pathname + search, headers: { ...headers, host } });
  const [res] = (await once(req, "response")) as [IncomingMessage];
  return { headers: res.headers, text: Buffer.concat(await collect(res as AsyncIterable<Buffer>)).toString() };
}

/** expired waits until the time of a sandbox is over. */
export async function expired(id: string, served: Served): Promise<void> {
  for (;;) {
    try {
      await Sandbox.connect(id, where(served));
    } catch (err) {
      assert.equal((err as CoveError).reason, "session_expired");
      return;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

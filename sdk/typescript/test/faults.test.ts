import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";

import {
  CanceledError, Client, ConnectionError, CoveError, type Execution, MicrosandboxWrapper, Sandbox, SandboxClient, SessionNotFoundError, UnauthenticatedError, VERSION, VersionError,
  WrapperConfig, getSandbox,
} from "cove-sandbox";

import { type Served, collect, folder, nobody, peer, serve, where } from "./rig.js";

describe("where something is wrong", () => {
  test("nobody listens, and that is said at once", async () => {
    const serverUrl = await nobody();
    const began = Date.now();
    await assert.rejects(Sandbox.create({ serverUrl, reconnectMs: 60_000 }), (err: CoveError) => {
      assert.ok(err instanceof ConnectionError);
      assert.deepEqual([err.code, err.reason, err.remedy], ["unavailable", "connection", "check the URL, and that cove serve runs there"]);
      assert.ok(err.message.includes(serverUrl));
      return true;
    });
    assert.ok(Date.now() - began < 30_000);
    const socket = join(await folder(), "none.sock");
    await assert.rejects(Sandbox.create({ serverUrl: `unix://${socket}` }), /check the path of the socket/);
  });

  test("another server answers", async () => {
    const serverUrl = await peer((_req, res) => res.writeHead(200, { "Content-Type": "text/html" }).end("<html>"));
    await assert.rejects(Sandbox.create({ serverUrl }), (err: CoveError) => err instanceof ConnectionError && /"text\/html", which is not what Cove answers/.test(err.message));
  });

  test("the sandbox is gone, for any of the reasons", async () => {
    for (const reason of ["no_such_session", "session_expired", "session_closed", "node_lost", "volume_overrun", "kernel_memory"]) {
      const serverUrl = await peer((_req, res) => res.writeHead(404, { "Content-Type": "application/problem+json" }).end(JSON.stringify({ code: "not_found", reason, error: "it is gone" })));
      await assert.rejects(Sandbox.connect("one", { serverUrl, checkVersion: false }), (err: CoveError) => err instanceof SessionNotFoundError && err.reason === reason, reason);
      assert.equal(await Sandbox.kill("one", { serverUrl, checkVersion: false }), false);
    }
  });

  test("nothing comes of a sandbox, and no connection stays", async () => {
    const ends: Array<Promise<unknown>> = [];
    const serverUrl = await peer((req, res) => {
      ends.push(once(req.socket, "close", { signal: AbortSignal.timeout(20_000) }));
      res.writeHead(409, { "Content-Type": "application/problem+json" }).end(JSON.stringify({ code: "conflict", error: "not now" }));
    });
    const at = { serverUrl, checkVersion: false };
    await assert.rejects(Sandbox.create(at), { code: "conflict" });
    await assert.rejects(Sandbox.connect("one", at), { code: "conflict" });
    await assert.rejects(Sandbox.kill("one", at), { code: "conflict" });
    await assert.rejects(collect(Sandbox.list(at)), { code: "conflict" });
    assert.equal(ends.length, 4);
    await Promise.all(ends);
  });

  test("a server that wants to be asked again at once is given time", async () => {
    let asked = 0;
    const serverUrl = await peer((_req, res) => {
      asked++;
      res.writeHead(429, { "Content-Type": "application/problem+json", "Retry-After": "0" }).end(JSON.stringify({ code: "exhausted", reason: "rate_limited", error: "not now" }));
    });
    const client = new Client({ serverUrl, checkVersion: false, reconnectMs: 500 });
    await assert.rejects(client.stats(), { code: "exhausted" }); // it was not met before, and is not waited for
    await assert.rejects(client.stats(), { code: "exhausted" });
    assert.ok(asked > 1 && asked < 20, String(asked));
    await client.close();
  });

  test("the server never answers, and the caller has a signal", async () => {
    const serverUrl = await peer(() => undefined);
    await assert.rejects(Sandbox.create({ serverUrl, signal: AbortSignal.timeout(200) }), { code: "timeout" });
    const stop = new AbortController();
    const asked = Sandbox.create({ serverUrl, signal: stop.signal, checkVersion: false });
    stop.abort("no patience");
    await assert.rejects(asked, (err: CoveError) => err instanceof CanceledError && err.cause === "no patience");
  });

  test("a call that was aborted before it began asks nobody and starts nothing, and leaves no error behind", async () => {
    const signal = AbortSignal.abort();
    let asked = 0;
    const serverUrl = await peer((_req, res) => void (asked++, res.end()));
    await assert.rejects(Sandbox.create({ serverUrl, signal }), CanceledError);
    const here = await folder();
    const coveBin = join(here, "cove");
    await writeFile(coveBin, `#!/bin/sh\necho >${here}/started\nexit 1\n`, { mode: 0o755 });
    await assert.rejects(Sandbox.create({ mode: "local", home: join(here, "home"), coveBin, signal }), CanceledError);
    // A program of its own: what nobody handles ends it.
    const script = `import { Sandbox } from "cove-sandbox";
      const signal = AbortSignal.abort();
      for (const at of [{ serverUrl: ${JSON.stringify(await nobody())} }, { mode: "local", home: ${JSON.stringify(here)}, coveBin: ${JSON.stringify(coveBin)} }]) {
        await Sandbox.create({ ...at, signal }).catch((err) => console.log(err.code));
      }`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: fileURLToPath(new URL("..", import.meta.url)) });
    assert.equal(stdout, "canceled\ncanceled\n");
    assert.deepEqual([asked, await readdir(here)], [0, ["cove"]]);
  });

  test("a watch that is over leaves nothing at the caller's signal", async () => {
    const serverUrl = await peer((req, res) => {
      const watching = req.url!.includes("/watch");
      if (!watching) return void res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ session_id: "one", version: "dev" }));
      const begins = req.url!.includes("begins") ? 'event: change\ndata: {"kind":"ready"}\n\n' : "";
      res.writeHead(200, { "Content-Type": "text/event-stream" }).end(`${begins}event: end\ndata: {}\n\n`);
    });
    await using sandbox = await Sandbox.connect("one", { serverUrl });
    const { signal } = new AbortController();
    await assert.rejects(sandbox.files.watch("never", { signal }), ConnectionError);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    const watch = await sandbox.files.watch("begins", { signal });
    assert.deepEqual(await watch.next(), { done: true, value: undefined });
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });

  test("the server falls silent in the middle of a stream", async () => {
    const serverUrl = await peer((req, res) => {
      if (req.url!.endsWith("/execute")) res.writeHead(200, { "Content-Type": "text/event-stream" }).write(": alive\n\n");
      else res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ session_id: "one", version: "dev" }));
    });
    await using sandbox = await Sandbox.connect("one", { serverUrl, silenceMs: 200 });
    const running = sandbox.commands.run("true", { onStdout: () => undefined });
    await assert.rejects(running, (err: CoveError) => err instanceof ConnectionError && /no sign of life for 0.2 s/.test(err.message));
  });

  test("the server falls silent in the middle of a file", async () => {
    const serverUrl = await peer((req, res) => {
      if (/files|archive/.test(req.url!)) res.writeHead(200, { "Content-Type": req.url!.includes("archive") ? "application/x-tar" : "application/octet-stream", "Content-Length": 10 }).write("half");
      else res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ session_id: "one", version: "dev" }));
    });
    await using sandbox = await Sandbox.connect("one", { serverUrl, silenceMs: 200 });
    const silent = (err: CoveError) => err instanceof ConnectionError && /no sign of life for 0.2 s/.test(err.message);
    const here = await folder();
    await assert.rejects(sandbox.files.readBytes("f", { signal: AbortSignal.timeout(30_000) }), silent);
    await assert.rejects(sandbox.files.download("f", join(here, "f"), { signal: AbortSignal.timeout(30_000) }), silent);
    await assert.rejects(collect(await sandbox.files.archive(".", { signal: AbortSignal.timeout(30_000) })), silent);
    assert.deepEqual(await readdir(here), []);
  });

  test("the server is of a version that does not fit", async () => {
    const program = process.env["COVE_OTHER_VERSION"];
    assert.ok(program, "COVE_OTHER_VERSION names an executable of version 9.8.7");
    const served = await serve({ SANDBOX_PROVIDER: "fake" }, program);
    await assert.rejects(Sandbox.create({ ...where(served), checkVersion: "refuse" }), (err: CoveError) => {
      assert.ok(err instanceof VersionError);
      assert.ok(err.message.includes("Cove v9.8.7") && err.message.includes(VERSION), err.message);
      assert.match(err.remedy!, /install the version of cove-sandbox that goes with v9.8.7/);
      return true;
    });
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on("warning", keep);
    await using sandbox = await Sandbox.create(where(served));
    await using second = await Sandbox.create(where(served));
    assert.deepEqual([sandbox.info.status, second.info.status], ["running", "running"]);
    await assert.rejects(sandbox.setTimeout(-5), (err: CoveError) => err.code === "invalid" && err.remedy!.endsWith(`the server is Cove v9.8.7 and this is cove-sandbox ${VERSION}`));
    await assert.rejects(sandbox.files.read("nothing"), (err: CoveError) => err.code === "not_found" && /the server is Cove v9.8.7/.test(err.message));
    await using blind = await Sandbox.create({ ...where(served), checkVersion: false });
    await assert.rejects(blind.files.read("nothing"), (err: CoveError) => err.code === "not_found" && !/9.8.7/.test(err.message));
    process.off("warning", keep);
    assert.deepEqual(warnings.map((w) => w.name), ["VersionWarning"], "it is said once");
    assert.match(warnings[0]!.message, /is Cove v9.8.7 and this is cove-sandbox [^]*install the version/);
  });
});

/** patience is what a server is given to come back on a machine that is busy. */
const patience = 120_000;

describe("with a server", () => {
  let served: Served;
  before(async () => {
    served = await serve();
  });

  test("the key is wrong, or there is none", async () => {
    for (const apiKey of ["", "cove_nobody_has_this_key"]) {
      await assert.rejects(Sandbox.create({ ...where(served), apiKey }), (err: CoveError) => err instanceof UnauthenticatedError && err.code === "unauthenticated" && err.message.length > 20);
    }
    await using client = new SandboxClient({ ...where(served), apiKey: "wrong" });
    await assert.rejects(client.getOrCreateSession({ userId: "ada", threadId: "one" }), UnauthenticatedError);
  });

  test("the key is not printed, whatever is", async () => {
    await using sandbox = await Sandbox.create(where(served));
    await using client = new SandboxClient(where(served));
    const session = await client.getOrCreateSession({ userId: "ada", threadId: "quiet" });
    let enter: () => void = () => undefined;
    const entered = new Promise<void>((done) => (enter = done));
    async function* typed() {
      yield "";
      await entered; // the request is under way when it is looked at
      yield "line\n";
    }
    let running: Promise<Execution> | undefined;
    await new Promise<unknown>((began) => (running = sandbox.commands.run("echo began; read line", { stdin: typed(), onStdout: began })));
    const holders = {
      sandbox, client, session: await client.session(session.id), process: await sandbox.commands.start("true"), watch: await sandbox.files.watch(),
      wrapper: new MicrosandboxWrapper(new WrapperConfig(where(served))), server: new Client(where(served)), python: getSandbox(undefined, where(served)),
      refused: await sandbox.files.read("nothing").catch((err: CoveError) => err), unreachable: await Sandbox.create({ ...where(served), serverUrl: await nobody() }).catch((err: CoveError) => err),
    };
    for (const [name, holder] of Object.entries(holders)) {
      for (const shown of [inspect(holder), inspect(holder, { depth: 50, showHidden: true, customInspect: false }), JSON.stringify(holder)]) {
        assert.ok(!shown.includes(served.apiKey), `${name} shows the key`);
      }
    }
    holders.watch.close();
    enter();
    assert.equal((await running)?.exitCode, 0);
    assert.equal(await Sandbox.kill(session.id, where(served)), true);
  });

  // A server that is asked to stop lets streams end for a while first, and tells them then.
  for (const [signal, count] of [["SIGTERM", 130], ["SIGKILL", 40]] as const) {
    test(`the server gets ${signal} and comes back: programs in the background are followed on`, async () => {
      await using sandbox = await Sandbox.create({ ...where(served), reconnectMs: patience });
      const script = `i=0; while [ $i -lt ${count} ]; do echo line $i; i=$((i+1)); sleep 0.1; done`;
      const p = await sandbox.commands.start(script);
      const waited = p.wait();
      const lines: string[] = [];
      let restarted: Promise<void> | undefined;
      for await (const piece of p) {
        lines.push(piece.text);
        restarted ??= served.stop(signal).then(() => served.start());
      }
      await restarted;
      assert.deepEqual(lines.join("").trim().split("\n"), Array.from({ length: count }, (_, i) => `line ${i}`), "each line came once");
      assert.equal((await waited).exitCode, 0);
      assert.equal((await sandbox.commands.run("echo on")).stdout, "on\n");
    });
  }

  test("the server is gone in the middle of a program in the foreground: it is said, and it is not run twice", async () => {
    await using sandbox = await Sandbox.create(where(served));
    let restarted: Promise<void> | undefined;
    const running = sandbox.commands.run("echo ran >> runs; echo began; sleep 30", {
      onStdout: () => (restarted = served.stop("SIGKILL").then(() => served.start())),
    });
    await assert.rejects(running, (err: CoveError) => err instanceof ConnectionError && err.remedy === "look whether it was done before you ask again");
    await restarted;
    assert.equal(await sandbox.files.read("runs"), "ran\n");
    const whole = sandbox.commands.run("echo ran >> runs; sleep 30");
    const until = Date.now() + patience;
    while ((await sandbox.files.read("runs")) !== "ran\nran\n" && Date.now() < until) await new Promise((done) => setTimeout(done, 20));
    const back = served.stop("SIGKILL").then(() => served.start());
    await assert.rejects(whole, ConnectionError);
    await back;
    assert.equal(await sandbox.files.read("runs"), "ran\nran\n");
  });

  test("a server that does not come back is given up", async () => {
    const short = await serve({ SANDBOX_PROVIDER: "fake" });
    const sandbox = await Sandbox.create({ ...where(short), reconnectMs: 500 });
    await short.stop("SIGTERM");
    const began = Date.now();
    await assert.rejects(sandbox.refresh(), ConnectionError);
    assert.ok(Date.now() - began >= 200 && Date.now() - began < 10_000);
    await short.start();
    assert.equal(await sandbox.kill(), true);
  });

  test("what is watched when the server ends is told so", async () => {
    await using sandbox = await Sandbox.create(where(served));
    const watch = await sandbox.files.watch();
    const told = assert.rejects(watch.next(), (err: CoveError) => err.code === "unavailable");
    await served.stop("SIGTERM");
    await told;
    await served.start();
  });
});

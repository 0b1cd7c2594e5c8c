/** The wrapper against a server of the provider fake, whose one language is calc. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import {
  CanceledError, CodeExecutionError, ConfigurationError, ConnectionError, CoveError, Execution, InvalidError, MicrosandboxWrapper, MicrosandboxWrapperError, ResourceLimitError,
  Sandbox, SandboxFlavor, SessionNotFoundError, WrapperConfig, type WrapperSettings,
} from "cove-sandbox";

import { type Served, nobody, peer, serve, where } from "./rig.js";

const calc = { template: "base", language: "calc" };

describe("a wrapper", () => {
  let served: Served;
  const wrapper = (more: WrapperSettings = {}) => new MicrosandboxWrapper(new WrapperConfig({ ...where(served), ...more } as WrapperSettings));
  before(async () => {
    served = await serve({ SANDBOX_PROVIDER: "fake" });
  });

  test("has sessions that remember, and end with it", async () => {
    let id = "";
    {
      await using w = await wrapper().start();
      const first = await w.executeCode("x = 42", { ...calc, flavor: SandboxFlavor.MEDIUM });
      id = first.sandboxId;
      assert.equal((await w.executeCode("print(x)", { ...calc, sessionId: id })).stdout, "42\n");
      assert.deepEqual((await w.getSessions()).filter((s) => s.id === id).map((s) => [s.template, s.flavor]), [["base", "medium"]]);
      assert.equal((await w.getSessions(id))[0]?.status, "running");
    }
    await assert.rejects(Sandbox.connect(id, where(served)), SessionNotFoundError);
  });

  test("runs commands, as lines and as words", async () => {
    await using w = wrapper();
    const x = await w.executeCommand("echo", { args: ["a  b"], template: "base" });
    assert.deepEqual([x.stdout, x.exitCode], ["a  b\n", 0]);
    const y = await w.executeCommand("echo $((1+2)); exit 4", { sessionId: x.sandboxId });
    assert.deepEqual([y.stdout, y.exitCode, y.sandboxId], ["3\n", 4, x.sandboxId]);
    assert.deepEqual([await w.stopSession(x.sandboxId), await w.stopSession(x.sandboxId)], [true, false]);
  });

  test("knows no template by the name of something else", async () => {
    await using w = wrapper();
    await assert.rejects(w.executeCommand("true", { template: "constructor" }), (err: CoveError) => /constructor/.test(err.message));
  });

  test("keeps its bound also for many at once", async () => {
    await using w = wrapper({ maxConcurrentSessions: 2 });
    const done = await Promise.allSettled(Array.from({ length: 6 }, () => w.executeCommand("true", { template: "base" })));
    assert.equal(done.filter((one) => one.status === "rejected" && one.reason instanceof ResourceLimitError).length, 4);
    assert.equal(done.filter((one) => one.status === "fulfilled" && one.value instanceof Execution).length, 2);
  });

  test("has errors that can be told apart", async () => {
    await using w = wrapper();
    const failed = await w.executeCode("raise Oops no", calc);
    assert.throws(() => failed.check(), (err) => err instanceof CodeExecutionError && err instanceof InvalidError && err.details["result"] === failed);
    await assert.rejects(w.executeCode("1", { sessionId: "06gy6bv8t0vj7na7kcyvgvv1rw" }), SessionNotFoundError);
    await assert.rejects(w.executeCode("1", { flavor: "enormous" as SandboxFlavor }), (err) => err instanceof ConfigurationError && !(err instanceof CodeExecutionError));
    assert.throws(() => new WrapperConfig({ sessionTimeoutMs: 0 }), (err) => err instanceof ConfigurationError);
    await using strict = wrapper({ throwOnFailure: true });
    const thrown: unknown = await strict.executeCode("raise Oops no", calc).catch((err: unknown) => err);
    assert.ok(thrown instanceof MicrosandboxWrapperError && thrown instanceof CodeExecutionError);
    const { sandboxId } = thrown.details["result"] as Execution; // the session stays, and can be used
    assert.equal((await strict.executeCommand("true", { sessionId: sandboxId })).ok, true);
    const unreachable = new MicrosandboxWrapper(new WrapperConfig({ serverUrl: await nobody() }));
    await assert.rejects(unreachable.start(), ConnectionError);
  });

  test("ends a session of which nobody hears", async () => {
    await using w = wrapper({ maxConcurrentSessions: 1 });
    await assert.rejects(w.executeCommand("true", { template: "base", timeoutMs: -1000 }), InvalidError);
    await assert.rejects(w.executeCommand("sleep 600", { template: "base", signal: AbortSignal.timeout(500) }), { code: "timeout" });
    const stop = new AbortController();
    const aborted = w.executeCommand("sleep 600", { template: "base", signal: stop.signal });
    stop.abort();
    await assert.rejects(aborted, CanceledError);
    assert.equal((await w.executeCommand("true", { template: "base" })).ok, true, "there is room for one");
  });

  test("ends what it can when it is stopped, and tells of what it cannot", async () => {
    const ended: string[] = [];
    let made = 0;
    const serverUrl = await peer((req, res) => {
      req.resume();
      const id = req.url!.split("/")[3];
      const json = (status: number, form: object) => res.writeHead(status, { "Content-Type": status < 400 ? "application/json" : "application/problem+json" }).end(JSON.stringify(form));
      if (req.method === "DELETE" && id === "s1") return void json(409, { code: "conflict", error: "not now" });
      if (req.method === "DELETE") ended.push(id!);
      json(200, req.method === "POST" && id === undefined ? { session_id: `s${++made}` } : { session_id: id, version: "dev", status: "healthy" });
    });
    const w = new MicrosandboxWrapper(new WrapperConfig({ serverUrl }));
    for (let i = 0; i < 3; i++) await w.executeCommand("true");
    await assert.rejects(w.stop(), { code: "conflict" });
    assert.deepEqual(ended, ["s2", "s3"]);
  });

  test("shows numbers and background tasks", async () => {
    await using w = wrapper();
    await w.executeCommand("true", { template: "base" });
    const stats = await w.getResourceStats();
    assert.ok(stats.activeSessions >= 1 && stats.maxSessions > 0 && stats.totalMemoryMb > 0 && stats.sessionsByFlavor["small"]! >= 1, JSON.stringify(stats));
    assert.deepEqual([(await w.health()).status, (await w.health()).nodeId], ["healthy", ""]);
    assert.equal((await w.pauseBackgroundTasks()).overallStatus, "paused");
    const status = await w.getBackgroundTaskStatus();
    assert.deepEqual([status.overallStatus, status.tasks["expiry"]?.state], ["paused", "paused"]);
    assert.equal((await w.resumeBackgroundTasks()).overallStatus, "running");
    assert.equal(await w.cleanupOrphanSandboxes(), 0);
    assert.equal((await w.restartBackgroundTasks()).overallStatus, "running");
    assert.deepEqual(await w.getVolumeMappings(), []);
  });

  test("is configured by the environment", () => {
    const config = WrapperConfig.fromEnv({
      MSB_SERVER_URL: "http://x:1", MSB_API_KEY: "k", MSB_SESSION_TIMEOUT: "60", MSB_MAX_SESSIONS: "3", MSB_DEFAULT_FLAVOR: "large",
      MSB_SHARED_VOLUME_PATH: '["/a:/b:ro", " /c:/d"]', MSB_EXECUTION_TIMEOUT: "7",
    });
    assert.equal(config.apiKey, "k");
    assert.deepEqual({ ...config }, {
      serverUrl: "http://x:1", maxConcurrentSessions: 3, sessionTimeoutMs: 60_000, defaultFlavor: "large", sharedVolumeMappings: ["/a:/b:ro", "/c:/d"],
      executionTimeoutMs: 7_000, throwOnFailure: false,
    });
    assert.equal(WrapperConfig.fromEnv({}).sessionTimeoutMs, 1_800_000);
    for (const env of [{ MSB_MAX_SESSIONS: "many" }, { MSB_SHARED_VOLUME_PATH: "[1]" }, { MSB_SHARED_VOLUME_PATH: "[" }, { MSB_DEFAULT_FLAVOR: "tiny" }, { MSB_SESSION_TIMEOUT: "-1" }]) {
      assert.throws(() => WrapperConfig.fromEnv(env), (err) => err instanceof ConfigurationError, JSON.stringify(env));
    }
  });

  test("asks for volumes that are none no further", async () => {
    await using w = wrapper({ sharedVolumeMappings: ["/only"] });
    await assert.rejects(w.executeCommand("true", { template: "base" }), (err) => err instanceof ConfigurationError && /source:target/.test((err as CoveError).message));
    await using other = wrapper({ sharedVolumeMappings: ["/not/in/the/list:/data"] });
    await assert.rejects(other.executeCommand("true", { template: "base" }), CoveError);
  });
});

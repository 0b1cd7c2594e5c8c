import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import { ConfigurationError, InvalidError, type SandboxKind, getSandbox, runPythonCode } from "cove-sandbox";

import { type Served, nobody, serve, where } from "./rig.js";

describe("Python for a model", () => {
  let served: Served;
  before(async () => {
    served = await serve();
  });

  test("answers with a text, whatever happens", async () => {
    const say = async (code: string, timeoutMs = 20_000) => (await runPythonCode(code, { ...where(served), timeoutMs })).trim().split("\n")[0];
    assert.equal(await say("print(sum(range(10)))"), "45");
    assert.match((await say("print(1"))!, /^Python syntax error: /);
    assert.equal(await say("import subprocess"), "Security policy blocked import: subprocess");
    assert.equal(await say("while True: pass", 1_000), "Code execution timed out after 1s");
    assert.match(await runPythonCode("1", { serverUrl: await nobody() }), /^Execution failed: cove at .* cannot be reached/);
    assert.match(await runPythonCode("1", { ...where(served), apiKey: "wrong" }), /^Execution failed: /);
    process.env["SANDBOX_TYPE"] = "cardboard";
    try {
      assert.match(await runPythonCode("1", where(served)), /^Execution failed: SANDBOX_TYPE: "cardboard" is no kind of sandbox; use one of local, /);
    } finally {
      delete process.env["SANDBOX_TYPE"];
    }
  });

  test("has a result with all that came of it", async () => {
    const code = "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\nsys.exit(3)";
    for (const kind of [undefined, "local"] as const) {
      await using sandbox = getSandbox(kind, where(served));
      const r = await sandbox.execute(code, { timeoutMs: 20_000 });
      assert.deepEqual([r.stdout, r.exitCode, r.success, r.meta.timedOut, r.meta.runtime], ["to stdout\n", 3, false, false, "local"]);
      assert.ok(r.stderr.startsWith("to stderr\n") && r.durationMs > 0);
      const late = await sandbox.execute("while True: pass", { timeoutMs: 500 });
      assert.deepEqual([late.exitCode, late.meta.timedOut], [-1, true]);
    }
  });

  test("is refused where there is no such sandbox", async () => {
    assert.throws(() => getSandbox("cardboard" as SandboxKind), (err) => err instanceof ConfigurationError && err instanceof InvalidError);
    await using sandbox = getSandbox("fake", where(served)); // this server does not have it
    await assert.rejects(sandbox.execute("1"), (err: Error) => err.message.includes("fake"));
  });
});

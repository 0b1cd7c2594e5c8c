import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { CanceledError, InvalidError, type Rich, Sandbox, type CodeEvent } from "cove-sandbox";

import { type Served, collect, serve, where } from "./rig.js";

describe("code", () => {
  let served: Served;
  let sandbox: Sandbox;
  before(async () => {
    served = await serve();
    sandbox = await Sandbox.create(where(served));
  });
  after(() => sandbox[Symbol.asyncDispose]());

  test("remembers", async () => {
    assert.equal((await sandbox.code.run("x = 41")).ok, true);
    const r = await sandbox.code.run("print('said'); x + 1");
    assert.deepEqual([r.text, r.stdout, r.fresh, r.error], ["42", "said\n", false, undefined]);
  });

  test("speaks other languages", async () => {
    assert.equal((await sandbox.code.run("const y = 6; y * 7", { language: "node" })).text, "42");
    assert.equal((await sandbox.code.run("z=7; echo $((z * 6))", { language: "bash" })).stdout, "42\n");
  });

  test("has contexts that do not see each other", async () => {
    const one = await sandbox.code.createContext({ cwd: "/tmp" });
    await sandbox.code.run("mine = 1", { context: one });
    assert.equal((await sandbox.code.run("import os; os.getcwd(), mine", { context: one.id })).text, "('/tmp', 1)");
    const r = await sandbox.code.run("mine");
    assert.equal(r.error?.name, "NameError");
    assert.throws(() => r.check(), (err: InvalidError) => err.reason === "code_failed" && /NameError/.test(err.message));
    assert.ok((await sandbox.code.contexts()).some((c) => c.id === one.id && c.language === "python"));
    await sandbox.code.restart(one);
    assert.equal((await sandbox.code.run("mine", { context: one })).error?.name, "NameError");
    await sandbox.code.closeContext(one);
    await assert.rejects(sandbox.code.run("1", { context: one }), { code: "not_found" });
  });

  test("shows values in all their forms, when it shows them", async () => {
    const seen: Array<[Rich, boolean]> = [];
    const r = await sandbox.code.run(
      "class Shown:\n  def _repr_html_(self): return '<b>bold</b>'\ndisplay(Shown())\n7" , {
        onResult: (value, main) => seen.push([value, main]),
      });
    assert.ok(r.ok, r.error?.traceback);
    assert.equal(seen[0]?.[0]["html"], "<b>bold</b>");
    assert.deepEqual([seen[1]?.[0]["text"], seen[1]?.[1]], ["7", true]);
    assert.equal(r.results.length, 2);
  });

  test("is followed as it runs", async () => {
    const events: CodeEvent[] = await collect(sandbox.code.stream("import time\nfor i in range(3):\n  print(i, flush=True); time.sleep(0.1)\n'end'"));
    assert.equal(events.flatMap((e) => (e.type === "stdout" ? [e.text] : [])).join(""), "0\n1\n2\n");
    const last = events.at(-1);
    assert.ok(last?.type === "result" && last.result.text === "'end'");
  });

  test("ends when it is aborted or its time is over, and its variables stay", async () => {
    await sandbox.code.run("kept = 'still here'");
    const stop = new AbortController();
    const running = sandbox.code.run("print('began', flush=True)\nwhile True: pass", { signal: stop.signal, onStdout: () => stop.abort() });
    await assert.rejects(running, CanceledError);
    assert.equal((await sandbox.code.run("while True: pass", { timeoutMs: 300 })).outcome, "timed_out");
    assert.equal((await sandbox.code.run("kept")).text, "'still here'");
  });
});

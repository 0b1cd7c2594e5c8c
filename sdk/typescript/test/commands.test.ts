import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { CanceledError, type CoveError, Execution, InvalidError, Process, Sandbox, TimeoutError } from "cove-sandbox";

import { type Served, collect, serve, where } from "./rig.js";

describe("commands", () => {
  let served: Served;
  let sandbox: Sandbox;
  before(async () => {
    served = await serve();
    sandbox = await Sandbox.create({ ...where(served), env: { FROM: "the sandbox" } });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  test("run to their end", async () => {
    const x = await sandbox.commands.run("echo out; echo err >&2; exit 3");
    assert.ok(x instanceof Execution);
    assert.deepEqual([x.exitCode, x.status, x.outcome, x.stdout, x.stderr, x.ok], [3, "error", "exited", "out\n", "err\n", false]);
    assert.equal(x.sandboxId, sandbox.id);
    assert.throws(() => x.check(), (err: InvalidError) => err instanceof InvalidError && err.reason === "command_failed" && err.message.includes("exit code 3: err"));
  });

  test("are lists of words, too, with a directory and an environment", async () => {
    await sandbox.files.mkdir("some/where");
    const x = await sandbox.commands.run(["sh", "-c", 'pwd; echo "$FROM $AND $1"', "sh", "a b"], { cwd: "some/where", env: { AND: "the call" } });
    assert.equal(x.check().stdout, "/workspace/some/where\nthe sandbox the call a b\n");
  });

  test("hand out what they write as they write it", async () => {
    const said: string[] = [];
    const x = await sandbox.commands.run("for i in 1 2 3; do echo $i; sleep 0.1; done; echo end >&2", {
      onStdout: (text) => said.push(text), onStderr: (text) => said.push("err " + text),
    });
    assert.equal(said.join(""), "1\n2\n3\nerr end\n");
    assert.ok(said.length >= 4, "it came in pieces");
    assert.equal(x.stdout, "1\n2\n3\n");
  });

  test("can be looped over, and characters that were cut are whole", async () => {
    const events = await collect(sandbox.commands.stream("printf '\\303'; sleep 0.3; printf '\\244x'; printf '\\377'"));
    const last = events.at(-1);
    assert.equal(last?.type, "exit");
    const pieces = events.flatMap((e) => (e.type === "stdout" ? [e] : []));
    assert.equal(pieces.map((p) => p.text).join(""), "äx\uFFFD");
    assert.deepEqual(Buffer.concat(pieces.map((p) => p.data)), Buffer.from([0xc3, 0xa4, 0x78, 0xff]));
  });

  test("that end in the middle of a character lose nothing of it", async () => {
    const half = "printf 'x\\303'";
    const told: string[] = [];
    const x = await sandbox.commands.run(half, { onStdout: (text) => told.push(text) });
    assert.deepEqual([told.join(""), x.stdout], ["x\uFFFD", "x\uFFFD"]);
    const pieces = await collect(await sandbox.commands.start(half));
    assert.equal(pieces.map((p) => p.text).join(""), "x\uFFFD");
    assert.deepEqual(Buffer.concat(pieces.map((p) => p.data)), Buffer.from([0x78, 0xc3]));
    assert.equal(pieces.at(-1)!.next, 2);
  });

  test("read what they are given, whole or as it comes", async () => {
    assert.equal((await sandbox.commands.run("wc -c", { stdin: "12345" })).stdout.trim(), "5");
    assert.deepEqual((await sandbox.commands.run("cat", { stdin: new Uint8Array([0xff, 0, 1]) })).stdoutData, Buffer.from([0xff, 0, 1]));
    const large = Buffer.alloc(3 * 1024 * 1024, "x");
    assert.equal((await sandbox.commands.run("wc -c", { stdin: large })).stdout.trim(), String(large.length));
    let answered: (text: string) => void = () => undefined;
    const answer = new Promise<string>((done) => (answered = done));
    async function* talk() {
      yield "first\n";
      yield `${await answer}second\n`; // what the program said comes back before it is sent
    }
    const x = await sandbox.commands.run("read a; echo got $a; read b; echo and $b", { stdin: talk(), onStdout: (text) => answered(text) });
    assert.equal(x.stdout, "got first\nand got first\n");
  });

  test("tell of a source that fails as it did", async () => {
    const own = new Error("the disk is on fire");
    async function* broken() {
      yield "first\n";
      throw own;
    }
    await assert.rejects(sandbox.commands.run("cat", { stdin: broken() }), (err: Error) => err === own || err.cause === own);
  });

  test("end when their time is over", async () => {
    const x = await sandbox.commands.run("sleep 60", { timeoutMs: 200 });
    assert.deepEqual([x.outcome, x.status, x.exitCode], ["timed_out", "timeout", -1]);
    assert.throws(() => x.check(), TimeoutError);
  });

  test("are not run with numbers that are none: their bound would be gone", async () => {
    for (const timeoutMs of [NaN, Infinity]) {
      const none = (err: CoveError) => err instanceof InvalidError && /^timeout: (NaN|Infinity) is not a number/.test(err.message);
      await assert.rejects(sandbox.commands.run("true", { timeoutMs }), none);
      await assert.rejects(sandbox.commands.run("cat", { timeoutMs, stdin: new Blob(["x"]) }), none);
      await assert.rejects(sandbox.commands.start("true", { timeoutMs }), none);
      await assert.rejects(sandbox.code.run("1", { timeoutMs }), none);
      await assert.rejects(sandbox.setTimeout(timeoutMs), InvalidError);
    }
    await assert.rejects(sandbox.code.run(undefined as unknown as string), /code: must be a text/);
  });

  test("may have one signal, however many they are", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on("warning", warned);
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 20 }, () => sandbox.commands.run("true", { signal })));
    await new Promise(setImmediate);
    process.off("warning", warned);
    assert.deepEqual(warnings, []);
  });

  test("end when they are aborted, also inside", async () => {
    const stop = new AbortController();
    const running = sandbox.commands.run("echo began; exec sleep 4242", { signal: stop.signal, onStdout: () => stop.abort(new Error("enough")) });
    await assert.rejects(running, (err: CanceledError) => err instanceof CanceledError && err.code === "canceled" && (err.cause as Error).message === "enough");
    await assert.rejects(sandbox.commands.run("true", { signal: AbortSignal.abort() }), CanceledError);
    await assert.rejects(sandbox.commands.run("sleep 60", { signal: AbortSignal.timeout(100) }), TimeoutError);
    await gone(sandbox, "sleep 4242");
  });

  test("end when nobody listens any more", async () => {
    for await (const event of sandbox.commands.stream("echo began; exec sleep 4343")) {
      assert.equal(event.type, "stdout");
      break;
    }
    await gone(sandbox, "sleep 4343");
  });

  test("run in the background", async () => {
    const p = await sandbox.commands.run("echo one; read line; echo $line; exit 7", { background: true, keepStdin: true, tag: "mine" });
    assert.ok(p instanceof Process && p.pid > 0);
    const listed = (await sandbox.commands.list()).find((one) => one.pid === p.pid);
    assert.deepEqual([listed?.running, listed?.tag], [true, "mine"]);
    const again = await sandbox.commands.connect(p.pid);
    await again.write("two\n");
    const pieces = await collect(again);
    assert.equal(pieces.map((c) => c.text).join(""), "one\ntwo\n");
    assert.equal((await p.wait()).exitCode, 7);
    const rest = await collect(p.output({ offset: 4 }));
    assert.equal(rest.map((c) => c.text).join(""), "two\n");
  });

  test("in the background are killed, and their input is closed", async () => {
    const sleeper = await sandbox.commands.start("sleep 60");
    await sandbox.commands.kill(sleeper.pid, "TERM");
    assert.equal((await sleeper.wait()).signal, "TERM");
    const counter = await sandbox.commands.start("wc -c", { keepStdin: true, stdin: "abc" });
    await counter.write("de");
    await counter.closeStdin();
    const said: string[] = [];
    assert.equal((await counter.wait({ onStdout: (text) => said.push(text) })).exitCode, 0);
    assert.equal(said.join("").trim(), "5");
  });

  test("keep long output to be read later", async () => {
    const x = await sandbox.commands.run("seq 1 200000");
    assert.ok(x.truncated && x.outputId);
    const page = await sandbox.commands.output(x.outputId, { grep: "^199999$" });
    assert.equal(page.text.trim(), "199999");
  });

  test("are refused by policy with the rule and the place, and that is no error", async () => {
    await using strict = await Sandbox.create({ ...where(served), policy: "agent-bash" });
    const x = await strict.commands.run("ls; rm -rf /");
    assert.deepEqual([x.outcome, x.refusal?.word], ["blocked", "rm"]);
    const p = await strict.commands.start("rm x");
    assert.equal(p.pid, 0);
    assert.equal((await p.wait()).outcome, "blocked");
  });

  test("have terminals", async () => {
    const terminal = await sandbox.terminals.open({ cols: 100, rows: 30, command: "stty size; read a; stty size; echo bye $a" });
    let text = "";
    for await (const piece of terminal) {
      text += piece.text;
      if (text.includes("30 100") && !text.includes("bye") && !text.includes("typed")) {
        await terminal.resize({ cols: 120, rows: 40 });
        await terminal.write("typed\r");
      }
    }
    assert.match(text, /30 100[^]*40 120[^]*bye typed/);
    const shell = await sandbox.terminals.open();
    await shell.write("echo $((6*7)) $TERM; exit 5\r");
    assert.equal((await shell.wait()).exitCode, 5);
    assert.match((await collect(shell)).map((c) => c.text).join(""), /42 xterm-256color/);
  });
});

/** gone waits until nothing of that name runs in a sandbox. */
async function gone(sandbox: Sandbox, name: string): Promise<void> {
  const look = `while cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -v grep | grep -q '^${name}\\| ${name}$'; do sleep 0.05; done`;
  assert.equal((await sandbox.commands.run(["sh", "-c", look.replaceAll(name, name.replace(" ", "[ ]"))], { timeoutMs: 20_000 })).outcome, "exited");
}

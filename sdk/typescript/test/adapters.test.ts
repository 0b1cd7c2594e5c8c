/** The tools for models, called as frameworks call them. With real frameworks they are run in examples/tools. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import { CanceledError, Sandbox } from "cove-sandbox";
import { coveTools } from "cove-sandbox/ai";
import { bashTool, codeExecution, codeExecutionTool } from "cove-sandbox/anthropic";
import { shellOutput } from "cove-sandbox/openai";

import { type Served, serve, where } from "./rig.js";

describe("tools for models", () => {
  let served: Served;
  before(async () => {
    served = await serve();
  });

  test("of the AI SDK", async () => {
    await using sandbox = await Sandbox.create({ ...where(served), policy: "agent-bash" });
    const tools = coveTools(sandbox, { timeoutMs: 2_000, maxOutput: 200 });
    const call = async (name: keyof typeof tools, input: object, abortSignal?: AbortSignal) =>
      (tools[name].execute as (input: object, options: object) => Promise<string>)(input, { toolCallId: "1", messages: [], abortSignal });
    assert.equal(await call("write_file", { path: "d/f", content: "grüße\n" }), "wrote 8 bytes to d/f");
    assert.equal(await call("read_file", { path: "d/f" }), "grüße\n");
    assert.match(await call("read_file", { path: "nothing" }), /^\[not_found\] /);
    assert.equal(await call("list_files", { path: "." }), "/workspace/d/\n");
    assert.equal(await call("bash", { command: "cat d/f; cat nothing" }), "grüße\ncat: nothing: No such file or directory\n[exit code 1]");
    assert.match(await call("bash", { command: "rm -rf ." }), /\[blocked by policy: rm is denied by the command policy agent-bash\]$/);
    assert.match(await call("python", { code: "import time\ntime.sleep(60)" }), /\[the time ran out after [\d.]+ s\]$/);
    assert.equal(await call("python", { code: "x = 41" }), "(no output)");
    assert.equal(await call("python", { code: "print('here')\nx + 1" }), "here\n42");
    assert.match(await call("python", { code: "1/0" }), /ZeroDivisionError: division by zero$/);
    const long = await call("python", { code: "print('a' * 5000)" });
    assert.ok(long.length < 260 && /^a+\n\[…\]\na+\n\[output was cut\]$/.test(long), long);
    await sandbox.files.write("long", "b".repeat(1000));
    assert.match(await call("read_file", { path: "long" }), /^b{200}\n\[the file has 1000 bytes; these are the first 200\]$/);
    await assert.rejects(call("bash", { command: "sleep 60" }, AbortSignal.abort()), CanceledError);
    await assert.rejects(call("python", { code: "while True: pass" }, AbortSignal.timeout(300)), { code: "timeout" });
    const schema = tools.bash.inputSchema as { validate: (value: unknown) => { success: boolean } | Promise<{ success: boolean }> };
    assert.deepEqual([(await schema.validate({ command: "true" })).success, (await schema.validate({ command: ["true"] })).success, (await schema.validate(null)).success], [true, false, false]);
  });

  test("of Anthropic's models", async () => {
    await using sandbox = await Sandbox.create(where(served));
    const bash = bashTool(sandbox, { timeoutMs: 2_000 });
    assert.equal(await bash.run({ command: "x=1; mkdir d; cd d; false" }), "[exit code 1]");
    assert.equal(await bash.run({ command: "pwd; echo $x" }), "/workspace/d\n1");
    assert.match(await bash.run({ command: "sleep 60" }), /\[the time ran out after [\d.]+ s\]$/);
    assert.equal(await bash.run({ restart: true }), "The shell was started again. Files are still there.");
    assert.equal(await bash.run({ command: "pwd; echo ${x-gone}" }), "/workspace\ngone");
    for (const odd of [{}, { command: 5 }, null, "ls"]) assert.equal(await bash.run(odd), "[invalid] command: must be a text");
    await assert.rejects(bash.run({ command: "sleep 60" }, { signal: AbortSignal.abort() }), CanceledError);

    const python = codeExecutionTool(sandbox);
    assert.deepEqual(JSON.parse(await python.run({ code: "print('out')\n6 * 7" })), { type: "code_execution_result", stdout: "out\n42\n", stderr: "", return_code: 0, content: [] });
    const raised = await codeExecution(sandbox, { code: "1/0" });
    assert.ok(raised.type === "code_execution_result" && raised.return_code === 1 && /ZeroDivisionError/.test(raised.stderr), JSON.stringify(raised));
    assert.deepEqual(await codeExecution(sandbox, { code: "while True: pass" }, { timeoutMs: 500 }), { type: "code_execution_tool_result_error", error_code: "execution_time_exceeded" });
    assert.deepEqual(await codeExecution(sandbox, {}), { type: "code_execution_tool_result_error", error_code: "invalid_tool_input" });
    await sandbox.kill();
    assert.deepEqual(await codeExecution(sandbox, { code: "1" }), { type: "code_execution_tool_result_error", error_code: "unavailable" });
    assert.match(await bash.run({ command: "true" }), /^\[not_found\] /);
  });

  test("have whole characters in what they answer, and bounds that are bounds", async () => {
    await using sandbox = await Sandbox.create(where(served));
    for (const maxOutput of [4, 99, 100, 101]) {
      const told = await bashTool(sandbox, { maxOutput }).run({ command: "printf a; printf '😀%.0s' {1..200}" });
      // Half a character is a request that the servers of models refuse.
      assert.equal(Buffer.from(told).toString(), told, String(maxOutput));
    }
    for (const maxOutput of [NaN, 0, -1, 1.5, Infinity]) {
      for (const make of [coveTools, bashTool, codeExecutionTool]) assert.throws(() => make(sandbox, { maxOutput }), /maxOutput: must be a whole number above 0/);
      await assert.rejects(shellOutput(sandbox, { call_id: "c", action: { commands: ["true"] } }, { maxOutput }), /maxOutput: must be/);
    }
  });

  test("of OpenAI's models", async () => {
    await using sandbox = await Sandbox.create({ ...where(served), policy: "agent-bash" });
    const call = (commands: string[], more: object = {}) => shellOutput(sandbox, { call_id: "c", action: { commands, ...more } }, { timeoutMs: 2_000 });
    const { type, call_id, output } = await call(["echo a > f", "cat f; exit 3", "rm f"]);
    assert.deepEqual([type, call_id], ["shell_call_output", "c"]);
    assert.deepEqual(output.slice(0, 2), [{ stdout: "", stderr: "", outcome: { type: "exit", exit_code: 0 } }, { stdout: "a\n", stderr: "", outcome: { type: "exit", exit_code: 3 } }]);
    assert.match(output[2]!.stderr, /blocked by policy: rm is denied/);
    assert.deepEqual((await call(["python3 -c 'import time; time.sleep(60)'"], { timeout_ms: 3_600_000 })).output[0]!.outcome, { type: "timeout" }, "it gets no more time than it is given");
    assert.ok((await call(["python3 -c 'print(\"a\" * 5000)'"], { max_output_length: 100 })).output[0]!.stdout.length <= 100);
    assert.ok((await call(["python3 -c 'print(\"a\" * 50000)'"], { max_output_length: 1e9 })).output[0]!.stdout.length <= 20_000);
    const many = await call(Array.from({ length: 70 }, () => "echo"));
    assert.deepEqual([many.output.length, many.output[64]!.outcome], [65, { type: "exit", exit_code: 125 }]);
    assert.match(many.output[64]!.stderr, /the other 6 commands were not run/);
    const odd = await call([5 as unknown as string]);
    assert.match(odd.output[0]!.stderr, /^\[invalid\] /);
    for (const action of [null, {}, { commands: "ls" }, { commands: [] }]) {
      const { output } = await shellOutput(sandbox, { call_id: "c", action: action as unknown as { commands: string[] } });
      assert.match(output[0]!.stderr, /^\[invalid\] commands: must be a list of texts/);
    }
  });
});

/**
 * Asks all that the SDK can ask, at a server that is as docs/openapi.json describes one
 * and answers with every field (sdk/wiretest). The server says what was asked that is
 * not described; here is looked at whether something was read that is not in an answer.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Client, type CodeOptions, type CommandOptions, type ForkOptions, Sandbox, type SandboxFilter, type SandboxSpec, type StartOptions } from "cove-sandbox";

import { folder } from "./rig.js";

const serverUrl = process.env["COVE_DESCRIBED"];
const at = { serverUrl: serverUrl ?? "", apiKey: "key" };

/** Given is all options but for the signal, so that the compiler says which are new. */
type Given<T> = Required<Omit<T, "signal">>;

const labels = { a: "b" };
const spec: Given<SandboxSpec> = {
  provider: "local", template: "base", flavor: "small", project: "p", userId: "u", threadId: "t", memory: "1g", cpus: 1.5, pids: 9, timeoutMs: 60_000, lifetimeMs: 60_000,
  fixedEnd: true, onEnd: "stop", wake: true, env: labels, metadata: labels, network: { mode: "allow", allow: ["example.com"], secrets: ["s"] },
  volumes: [{ source: "/a", target: "/b", write: true }], workspace: { kind: "disk", sizeMb: 1.5, files: 9, moves: true }, policy: "agent-bash", isolation: "none", ports: [80],
  publicPorts: true, snapshot: "s", onFull: "wait",
};
const filter: Given<SandboxFilter> = { project: "p", userId: "u", threadId: "t", status: "running", nodeId: "n", metadata: labels };
const copy: Given<ForkOptions> = { userId: "u", threadId: "t", metadata: labels, idempotencyKey: "k" };
const how: Given<Omit<CommandOptions, "stdin">> = { cwd: "/", env: labels, timeoutMs: 1500, maxOutput: "1k", autoRetry: false };
const background: Given<StartOptions> = {
  cwd: "/", env: labels, timeoutMs: 1500, maxOutput: 1000, stdin: new Uint8Array([255]), keepStdin: true, tag: "t", tty: { cols: 80, rows: 24 }, idempotencyKey: "k",
};
const code: Given<CodeOptions> = { language: "python", context: "c", timeoutMs: 1500, maxOutput: "1k", env: labels, imports: "warn", autoRetry: false };

/** whole looks for what is not there: everything is in the answers but bytes in the place of text. */
function whole(value: unknown, where: string): void {
  assert.ok(value !== undefined && value !== null && !Number.isNaN(value), `${where} is in no answer`);
  if (value instanceof Date) assert.ok(!Number.isNaN(value.getTime()), `${where} is no time`);
  if (typeof value !== "object" || value instanceof Uint8Array) return;
  for (const [name, one] of Object.entries(value)) if (name !== "pathBytes") whole(one, `${where}.${name}`);
}

/** all reads a stream to its end. */
async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = [];
  for await (const one of stream) got.push(one);
  return got;
}

async function* pieces(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array([1]);
}

test("all that is asked and read is described", { skip: serverUrl === undefined && "the tests were not started by go test" }, async (t) => {
  const box = await Sandbox.create({ ...at, ...spec });
  const link = { ttlMs: 1500 };
  await using server = new Client(at);
  const file = join(await folder(), "file");
  await writeFile(file, "text");
  const { commands, files, code: contexts, terminals, ports } = box;
  const program = await commands.start("cat", background);
  const told: string[] = [];
  const tell = (text: string) => void told.push(text);
  const asked: Record<string, () => Promise<unknown>> = {
    "Sandbox.info": async () => box.info,
    "Sandbox.connect": async () => (await Sandbox.connect(box.id, at)).info,
    "Sandbox.list": () => all(Sandbox.list({ ...at, ...filter })),
    "Sandbox.snapshots": () => all(Sandbox.snapshots({ ...at, sandboxId: "s" })),
    "Sandbox.deleteSnapshot": async () => (await Sandbox.deleteSnapshot("s", at), true),
    "Sandbox.kill": () => Sandbox.kill("s", at),
    "nodes": () => server.nodes(),
    "drainNode": () => server.drainNode("n"),
    "uncordonNode": () => server.uncordonNode("n"),
    "refresh": () => box.refresh(),
    "setTimeout": () => box.setTimeout(60_000),
    "pause": () => box.pause(),
    "resume": () => box.resume(),
    "stop": () => box.stop(),
    "start": () => box.start(),
    "snapshot": () => box.snapshot({ name: "n" }),
    "fork": async () => (await box.fork(copy)).info,
    "setNetwork": () => box.setNetwork(spec.network),
    "usage": () => box.usage(),
    "commands.run": () => commands.run(["true"], { ...how, stdin: "text" }),
    "commands.run, told": () => commands.run("true", { ...how, onStdout: tell, onStderr: tell }),
    "commands.run, following": () => commands.run("cat", { ...how, stdin: pieces() }),
    "commands.stream": () => all(commands.stream("true", how)),
    "commands.start": async () => program.info,
    "commands.list": () => commands.list(),
    "commands.connect": async () => (await commands.connect(1)).info,
    "commands.kill": async () => (await commands.kill(1), true),
    "commands.output": () => commands.output("o", { stream: "stdout", offset: 1, limit: 1, grep: "x" }),
    "process.output": () => all(program.output({ offset: 1 })),
    "process.wait": () => program.wait(),
    "process.write": async () => (await program.write(new Uint8Array([255]), { end: true }), true),
    "process.resize": async () => (await program.resize({ cols: 80, rows: 24 }), true),
    "terminals.open": async () => (await terminals.open({ ...how, cols: 80, rows: 24 })).info,
    "ports.link": () => ports.link(80, link),
    "ports.dial": async () => (await ports.dial(80)).destroy().destroyed,
    "code.run": () => contexts.run("1", code),
    "code.run, told": () => contexts.run("1", { ...code, onStdout: tell, onStderr: tell, onResult: (value) => tell(value["text"]!) }),
    "code.stream": () => all(contexts.stream("1", code)),
    "code.createContext": () => contexts.createContext({ language: "python", cwd: "/", id: "i" }),
    "code.contexts": () => contexts.contexts(),
    "code.others": async () => (await contexts.interrupt("c"), await contexts.restart("c"), await contexts.closeContext("c"), true),
    "files.read": () => files.read("f", { offset: 1, length: 1 }),
    "files.write": async () => (await files.write("f", "text", { mode: 0o600 }), await files.write("f", new Uint8Array(1)), true),
    "files.upload": async () => (await files.upload(file, "f"), true),
    "files.download": async () => (await files.download("f", file), await readFile(file, "utf8")),
    "files.archive": async () => all(await files.archive("d")),
    "files.unpack": async () => (await files.unpack("d", "tar"), true),
    "files.list": () => files.list("d", { depth: 2 }),
    "files.stat": () => files.stat("f"),
    "files.exists": () => files.exists("f"),
    "files.others": async () => (await files.mkdir("d"), await files.move("a", "b"), await files.remove("a"), await files.tag("a", labels), true),
    "files.downloadLink": () => files.downloadLink("f", link),
    "files.uploadLink": () => files.uploadLink("f", link),
    "files.watch": async () => {
      await using watch = await files.watch("d");
      return watch !== undefined;
    },
    "kill": () => box.kill(),
  };
  for (const [name, ask] of Object.entries(asked)) await t.test(name, async () => whole(await ask(), name));
  assert.deepEqual(told, ["7", "7", "7", "7", "7"]);
});

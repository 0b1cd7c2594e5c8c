import { randomUUID } from "node:crypto";
import { type Duplex, Readable } from "node:stream";

import {
  type CodeContext, CodeResult, type ConnectionOptions, CoveError, type Execution, type FileInfo, type OutputPage, type Process, Sandbox, type SandboxFilter, type SandboxInfo,
  type RunOptions, type SandboxSpec, type StartOptions, type Watch,
} from "cove-sandbox";

import { type Served, collect, where } from "./rig.js";

/** Step is one call and what must come of it, as the table has it. */
export interface Step {
  do: string;
  begin?: string;
  as?: string;
  in?: string;
  of?: string;
  id?: string;
  once?: string;
  request?: Record<string, unknown>;
  filter?: Record<string, string>;
  limit?: number;
  after?: string;
  snapshot?: string;
  path?: string;
  to?: string;
  text?: string;
  pieces?: string[];
  base64?: string;
  times?: number;
  mode?: string;
  offset?: number;
  length?: number;
  depth?: number;
  cols?: number;
  rows?: number;
  port?: number;
  minutes?: number;
  eof?: boolean;
  range?: { offset?: number; limit?: number };
  want?: unknown;
  fail?: Record<string, string>;
}

/** lacks returns what of want is not in got, or "". Objects may have more than is wanted. */
export function lacks(want: unknown, got: unknown): string {
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) return `is ${JSON.stringify(got)} and not ${JSON.stringify(want)}`;
    return want.map((one, i) => lacks(one, got[i])).find((why) => why !== "") ?? "";
  }
  if (typeof want !== "object" || want === null) return Object.is(want, got) ? "" : `is ${JSON.stringify(got)} and not ${JSON.stringify(want)}`;
  const part = (want as Record<string, unknown>)["$contains"];
  if (typeof part === "string") return typeof got === "string" && got.includes(part) ? "" : `${JSON.stringify(got)} does not contain ${part}`;
  if (typeof got !== "object" || got === null) return `is ${JSON.stringify(got)} and no object`;
  for (const [name, value] of Object.entries(want)) {
    const have = (got as Record<string, unknown>)[name];
    if ((have === undefined || have === null) && (value === "" || value === false || value === 0)) continue; // left out is the same as nothing
    const why = lacks(value, have);
    if (why !== "") return `${name}: ${why}`;
  }
  return "";
}

/** Outcome is what came of a step: an answer, or an error of Cove's. */
export type Outcome = { got: unknown } | { err: CoveError };

/** waitTime is for something to become so, in milliseconds. */
const waitTime = 60_000;

/** Player makes the calls of one scenario. What came of them is kept by its name. */
export class Player {
  private readonly at: ConnectionOptions;
  private readonly own = randomUUID(); // what makes its idempotency keys different from those of others
  private readonly begun = new Map<string, Promise<Outcome>>();
  private readonly lists = new Map<string, string>();
  private readonly archives = new Map<string, Uint8Array>();
  private readonly contexts = new Map<string, CodeContext>();
  private readonly watches = new Map<string, Watch>();
  private readonly conns = new Map<string, Duplex>();
  private readonly sandboxes = new Map<string, Sandbox>();
  private readonly programs = new Map<string, Process>();
  private readonly outputs = new Map<string, string>();
  private readonly snapshots = new Map<string, string>();

  constructor(private readonly served: Served, options: ConnectionOptions) {
    this.at = { ...where(served), ...options };
  }

  async close(): Promise<void> {
    for (const watch of this.watches.values()) watch.close();
    for (const conn of this.conns.values()) conn.destroy();
    for (const sandbox of this.sandboxes.values()) await sandbox.kill();
  }

  /** judged makes a step and is what is wrong with what came of it, or "". */
  async judged(step: Step): Promise<string> {
    const ended = step.do === "end" ? this.begun.get(step.of!)! : this.outcome(step);
    if (step.begin !== undefined) {
      this.begun.set(step.begin, ended);
      return "";
    }
    const came = await ended;
    if ("err" in came) {
      if (!step.fail) throw came.err;
      return lacks(step.fail, { code: came.err.code, reason: came.err.reason });
    }
    if (step.fail) return `did not fail: ${JSON.stringify(came.got)}`;
    return step.want === undefined ? "" : lacks(step.want, came.got);
  }

  private async outcome(step: Step): Promise<Outcome> {
    try {
      return { got: await this.do(step) };
    } catch (err) {
      if (err instanceof CoveError) return { err };
      throw err;
    }
  }

  private async do(step: Step): Promise<unknown> {
    const does = [this.session(step), this.snapshot(step), this.file(step), this.stream(step), this.port(step), this.code(step), this.program(step)].find((calls) => step.do in calls);
    if (!does) throw new Error(`the table has ${step.do}, which this player does not know`);
    return does[step.do]!();
  }

  private once({ once }: Step): string | undefined {
    return once === undefined ? undefined : once + this.own;
  }

  private sandbox(step: Step): Sandbox {
    return this.sandboxes.get(step.in ?? "")!;
  }

  private session(step: Step): Calls {
    const keep = (made: Sandbox) => {
      const known_as = nameOf(this.sandboxes, (one) => one.id === made.id);
      this.sandboxes.set(step.as!, made);
      return { ...sessionForm(made.info), known_as };
    };
    const snapshot = this.snapshots.get(step.snapshot ?? "");
    return {
      restart: async () => {
        await this.served.stop(`SIG${step.text}` as "SIGKILL");
        await this.served.start();
      },
      open: async () => keep(await Sandbox.create({ ...this.at, ...spec(step.request ?? {}), ...given({ snapshot }), idempotencyKey: this.once(step) })),
      get: async () => sessionForm((await Sandbox.connect(step.id!, this.at)).info),
      close: async () => void (await this.sandbox(step).kill()),
      sessions: async () => {
        const found = await collect(Sandbox.list({ ...this.at, ...(spec(step.filter!) as SandboxFilter), limit: step.limit, after: this.lists.get(step.after ?? "") }));
        if (found.length > 0 && step.as !== undefined) this.lists.set(step.as, found.at(-1)!.id);
        return { count: found.length, known_as: found.map((one) => nameOf(this.sandboxes, (sandbox) => sandbox.id === one.id)) };
      },
      expired: () => until(() => Sandbox.connect(this.sandbox(step).id, this.at).then(() => false, (err: CoveError) => err.reason === "session_expired")),
      stop: async () => sessionForm(await this.sandbox(step).stop()),
      resume_stopped: async () => sessionForm(await this.sandbox(step).start()),
      pause: async () => sessionForm(await this.sandbox(step).pause()),
      resume: async () => sessionForm(await this.sandbox(step).resume()),
      renew: async () => sessionForm(await this.sandbox(step).setTimeout(ms(step.minutes, 60_000))),
      fork: async () => keep(await this.sandbox(step).fork({ idempotencyKey: this.once(step) })),
    };
  }

  private snapshot(step: Step): Calls {
    return {
      snapshot: async () => {
        const made = await this.sandbox(step).snapshot({ name: step.text, idempotencyKey: this.once(step) });
        const known_as = nameOf(this.snapshots, (id) => id === made.id);
        this.snapshots.set(step.as!, made.id);
        return { ...made, known_as };
      },
      snapshots: async () => ({ names: (await collect(Sandbox.snapshots({ ...this.at, sandboxId: this.sandbox(step).id }))).map((one) => one.name).sort() }),
      forget: () => Sandbox.deleteSnapshot(this.snapshots.get(step.of!)!, this.at),
    };
  }

  private file(step: Step): Calls {
    const { path = "" } = step;
    const files = this.sandbox(step)?.files;
    return {
      write: () => {
        const data = step.base64 === undefined ? (step.text ?? "").repeat(step.times ?? 1) : Buffer.from(step.base64, "base64");
        return files.write(path, data, step.mode === undefined ? {} : { mode: Number.parseInt(step.mode, 8) });
      },
      read: async () => {
        const data = Buffer.from(await files.readBytes(path, given({ offset: step.offset, length: step.length })));
        const text = data.toString("utf8");
        return Buffer.from(text, "utf8").equals(data) ? { text } : { base64: data.toString("base64") };
      },
      stat: async () => fileForm(await files.stat(path)),
      list: async () => ({ paths: (await files.list(path === "" ? undefined : path, given({ depth: step.depth }))).map((f) => f.path) }),
      mkdir: () => files.mkdir(path),
      move: () => files.move(path, step.to!),
      remove: () => files.remove(path),
      appears: () => until(() => files.exists(path)),
    };
  }

  /** stream has the calls about files whose answers come bit by bit. */
  private stream(step: Step): Calls {
    const files = this.sandbox(step)?.files;
    return {
      archive: async () => void this.archives.set(step.as!, Buffer.concat(await collect(await files.archive(step.path)))),
      unpack: () => files.unpack(step.path!, step.of === undefined ? step.text! : this.archives.get(step.of)!),
      watch: async () => void this.watches.set(step.as!, await files.watch(step.path)),
      changed: async () => {
        const watch = this.watches.get(step.of!)!;
        for (let next = await watch.next(); !next.done; next = await watch.next()) {
          if (next.value.path === step.path && next.value.kind === step.text) return;
        }
      },
      unwatch: async () => this.watches.get(step.of!)!.close(),
      link: async () => {
        const link = await (step.text === undefined ? files.downloadLink(step.path!) : files.uploadLink(step.path!));
        const res = await fetch(link.url, step.text === undefined ? {} : { method: "PUT", body: step.text });
        return { http: res.status, text: await res.text() };
      },
    };
  }

  private port(step: Step): Calls {
    const conn = () => this.conns.get(step.of!)!;
    return {
      port_link: () => this.sandbox(step).ports.link(step.port ?? 0),
      dial: async () => void this.conns.set(step.as!, await this.sandbox(step).ports.dial(step.port ?? 0)),
      send: async () => void (step.eof ? conn().end(step.text) : conn().write(step.text)),
      recv: async () => ({ text: Buffer.concat(await collect(conn() as AsyncIterable<Buffer>)).toString("utf8") }),
    };
  }

  private code(step: Step): Calls {
    const code = this.sandbox(step)?.code;
    const context = this.contexts.get(step.of ?? "");
    return {
      code: async () => {
        const { language, code: text, timeout } = only(step.request!, "language", "code", "timeout");
        return executionForm(await code.run(text as string, given({ language: language as string, timeoutMs: ms(timeout, 1000), context })));
      },
      context: async () => {
        const { language, cwd, id } = only(step.request!, "language", "cwd", "id") as Record<string, string>;
        const made = await code.createContext({ ...given({ language, cwd, id }), idempotencyKey: this.once(step) });
        const known_as = nameOf(this.contexts, (one) => one.id === made.id);
        this.contexts.set(step.as!, made);
        return { ...made, known_as };
      },
      contexts: async () => ({ languages: (await code.contexts()).map((one) => one.language).sort() }),
      restart_context: () => code.restart(context!),
      interrupt: () => code.interrupt(context!),
      close_context: () => code.closeContext(context!),
    };
  }

  private program(step: Step): Calls {
    const program = () => this.programs.get(step.of!)!;
    const { command, options } = commandOf(step);
    const sandbox = this.sandbox(step);
    const kept = (x: Execution) => {
      if (step.as !== undefined) this.outputs.set(step.as, x.outputId ?? "");
      return executionForm(x);
    };
    return {
      run: async () => kept(await sandbox.commands.run(command, options)),
      stream: async () => {
        const told = { streamed_stdout: "", streamed_stderr: "" };
        const x = await sandbox.commands.run(command, { ...options, onStdout: (text) => (told.streamed_stdout += text), onStderr: (text) => (told.streamed_stderr += text) });
        return { ...kept(x), ...told };
      },
      output: async () => outputForm(await sandbox.commands.output(step.id ?? this.outputs.get(step.of!)!, step.range ?? {})),
      start: async () => {
        const started = await sandbox.commands.start(command, { ...(options as StartOptions), idempotencyKey: this.once(step) });
        const known_as = nameOf(this.programs, (one) => one.pid === started.pid);
        this.programs.set(step.as!, started);
        return { ...started.info, known_as };
      },
      processes: async () => Object.fromEntries((await sandbox.commands.list()).map((info) => [nameOf(this.programs, (one) => one.pid === info.pid), info])),
      input: () => program().write(step.text ?? "", { end: step.eof ?? false }),
      signal: () => program().kill(step.text!),
      resize: () => program().resize({ cols: step.cols!, rows: step.rows! }),
      wait: async () => executionForm(await program().wait()),
      follow: async () => this.follow(step, program()),
      hears: async () => this.follow(step, program()),
    };
  }

  /** follow hears what a program writes: all of it, or for hears up to a text. */
  private async follow(step: Step, program: Process): Promise<unknown> {
    const told = { streamed_stdout: "", streamed_stderr: "" };
    for await (const piece of program.output(given({ offset: step.offset }))) {
      told[`streamed_${piece.type}`] += piece.text;
      if (step.do === "hears" && told.streamed_stdout.includes(step.text!)) break;
    }
    return told;
  }
}

type Calls = Record<string, () => Promise<unknown>>;

/** nameOf is the name that something was given by an earlier step, or "". */
function nameOf<T>(named: Map<string, T>, is: (one: T) => boolean): string {
  return [...named.keys()].sort().find((name) => is(named.get(name)!)) ?? "";
}

/** until looks again and again whether something is so. */
async function until(so: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + waitTime; !(await so()); ) {
    if (Date.now() > end) throw new Error("it never becomes so");
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** given leaves out what is not there. */
function given<T extends object>(all: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> };
}

const ms = (value: unknown, unit: number) => (value === undefined ? undefined : Number(value) * unit);

/** only demands that a request has no fields but those: what the table adds must not be lost here. */
function only(request: Record<string, unknown>, ...names: string[]): Record<string, unknown> {
  const more = Object.keys(request).filter((name) => !names.includes(name));
  if (more.length > 0) throw new Error(`the table asks for ${more.join(", ")}, which this player does not know`);
  return request;
}

function spec(request: Record<string, unknown>): SandboxSpec {
  const r = only(
    request, "env", "policy", "project_name", "user_id", "thread_id", "flavor", "provider", "timeout_minutes", "lifetime_minutes", "fixed_end", "metadata", "template", "network", "ports",
    "memory_limit", "status", "on_end", "wake",
  );
  return given({
    project: r["project_name"], lifetimeMs: ms(r["lifetime_minutes"], 60_000), network: r["network"], ports: r["ports"], memory: r["memory_limit"], status: r["status"],
    env: r["env"], policy: r["policy"], userId: r["user_id"], threadId: r["thread_id"], flavor: r["flavor"], provider: r["provider"], metadata: r["metadata"],
    template: r["template"], timeoutMs: ms(r["timeout_minutes"], 60_000), fixedEnd: r["fixed_end"], onEnd: r["on_end"], wake: r["wake"],
  }) as SandboxSpec;
}

function commandOf({ request = {}, pieces }: Step): { command: string | string[]; options: RunOptions & StartOptions } {
  if (!("command" in request)) return { command: "", options: {} };
  const r = only(request, "command", "stdin", "stdin_base64", "env", "workdir", "timeout", "keep_stdin", "tag", "tty");
  const whole = r["stdin_base64"] === undefined ? r["stdin"] : Buffer.from(r["stdin_base64"] as string, "base64");
  const stdin = pieces === undefined ? whole : Readable.from(pieces.map((piece) => Buffer.from(piece)));
  const options = given({ stdin, env: r["env"], cwd: r["workdir"], timeoutMs: ms(r["timeout"], 1000), keepStdin: r["keep_stdin"], tag: r["tag"], tty: r["tty"] });
  return { command: r["command"] as string | string[], options: options as RunOptions & StartOptions };
}

function sessionForm(s: SandboxInfo): Record<string, unknown> {
  return { ...s, session_id: s.id, user_id: s.userId, thread_id: s.threadId, minutes_left: Math.round((s.expiresAt.getTime() - Date.now()) / 60_000) };
}

function fileForm(f: FileInfo): unknown {
  return { ...f, mode: "0" + f.mode.toString(8) };
}

function outputForm(page: OutputPage): unknown {
  return { ...page, data: page.text };
}

function executionForm(x: Execution): Record<string, unknown> {
  const form: Record<string, unknown> = {
    exit_code: x.exitCode, status: x.status, outcome: x.outcome, signal: x.signal, truncated: x.truncated, stdout_bytes: x.stdoutBytes, stderr_bytes: x.stderrBytes,
    stdout: x.stdout, stderr: x.stderr, stdout_base64: Buffer.from(x.stdoutData).toString("base64"), refusal: x.refusal, session_recreated: x.recreated, session_restarted: x.restarted, session_id: x.sandboxId,
  };
  if (!(x instanceof CodeResult)) return form;
  const main = x.value === undefined ? 0 : x.results.indexOf(x.value) + 1;
  return { ...form, success: x.ok, context_fresh: x.fresh, results: x.results, error: x.error, main_result: main };
}

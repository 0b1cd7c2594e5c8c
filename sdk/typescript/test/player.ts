import {
  CodeResult, type ConnectionOptions, CoveError, type Execution, type FileInfo, type OutputPage, type Process, Sandbox, type SandboxInfo, type SandboxSpec, type StartOptions,
} from "cove-sandbox";

import { collect } from "./rig.js";

/** Step is one call and what must come of it, as the table has it. */
export interface Step {
  do: string;
  as?: string;
  in?: string;
  of?: string;
  id?: string;
  request?: Record<string, unknown>;
  filter?: Record<string, string>;
  snapshot?: string;
  path?: string;
  to?: string;
  text?: string;
  base64?: string;
  times?: number;
  mode?: string;
  offset?: number;
  length?: number;
  depth?: number;
  cols?: number;
  rows?: number;
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

/** Player makes the calls of one scenario. */
export class Player {
  private readonly sandboxes = new Map<string, Sandbox>();
  private readonly programs = new Map<string, Process>();
  private readonly outputs = new Map<string, string>();
  private readonly snapshots = new Map<string, string>();

  constructor(private readonly at: ConnectionOptions) {}

  async close(): Promise<void> {
    for (const sandbox of this.sandboxes.values()) await sandbox.kill();
  }

  async do(step: Step): Promise<unknown> {
    const does = (this.session(step) ?? this.file(step) ?? this.program(step))?.[step.do];
    if (!does) throw new Error(`the table has ${step.do}, which this player does not know`);
    return does();
  }

  private sandbox(step: Step): Sandbox {
    return this.sandboxes.get(step.in ?? "")!;
  }

  private session(step: Step): Calls | undefined {
    const keep = (made: Sandbox) => {
      this.sandboxes.set(step.as!, made);
      return sessionForm(made.info);
    };
    const calls: Calls = {
      open: async () => keep(await Sandbox.create({ ...this.at, ...spec(step.request ?? {}), ...(step.snapshot ? { snapshot: this.snapshots.get(step.snapshot)! } : {}) })),
      get: async () => sessionForm((await Sandbox.connect(step.id!, this.at)).info),
      close: async () => void (await this.sandbox(step).kill()),
      sessions: async () => ({ count: (await collect(Sandbox.list({ ...this.at, ...spec(step.filter!) }))).length }),
      expired: () => this.expired(this.sandbox(step).id),
      stop: async () => sessionForm(await this.sandbox(step).stop()),
      resume_stopped: async () => sessionForm(await this.sandbox(step).start()),
      pause: async () => sessionForm(await this.sandbox(step).pause()),
      resume: async () => sessionForm(await this.sandbox(step).resume()),
      renew: async () => sessionForm(await this.sandbox(step).setTimeout(step.minutes! * 60_000)),
      fork: async () => keep(await this.sandbox(step).fork()),
      snapshot: async () => {
        const made = await this.sandbox(step).snapshot({ name: step.text! });
        this.snapshots.set(step.as!, made.id);
        return made;
      },
      forget: () => Sandbox.deleteSnapshot(this.snapshots.get(step.of!)!, this.at),
    };
    return step.do in calls ? calls : undefined;
  }

  private async expired(id: string): Promise<void> {
    for (const until = Date.now() + 60_000; Date.now() < until; ) {
      const over = await Sandbox.connect(id, this.at).then(() => false, (err: CoveError) => err.reason === "session_expired");
      if (over) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error("it does not expire");
  }

  private file(step: Step): Calls | undefined {
    const { path = "" } = step;
    const files = this.sandbox(step)?.files;
    const calls: Calls = {
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
    };
    return step.do in calls ? calls : undefined;
  }

  private program(step: Step): Calls | undefined {
    const program = () => this.programs.get(step.of!)!;
    const { command, options } = commandOf(step.request ?? {});
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
      output: async () => outputForm(await sandbox.commands.output(this.outputs.get(step.of!)!, step.range ?? {})),
      code: async () => {
        const { language, code, timeout } = only(step.request!, "language", "code", "timeout");
        return executionForm(await sandbox.code.run(code as string, given({ language: language as string, timeoutMs: ms(timeout, 1000) })));
      },
      start: async () => {
        const started = await sandbox.commands.start(command, options);
        this.programs.set(step.as!, started);
        return started.info;
      },
      input: () => program().write(step.text ?? "", { end: step.eof ?? false }),
      signal: () => program().kill(step.text!),
      resize: () => program().resize({ cols: step.cols!, rows: step.rows! }),
      wait: async () => executionForm(await program().wait()),
      follow: async () => {
        const told = { streamed_stdout: "", streamed_stderr: "" };
        for await (const piece of program().output(given({ offset: step.offset }))) told[`streamed_${piece.type}`] += piece.text;
        return told;
      },
    };
  }
}

type Calls = Record<string, () => Promise<unknown>>;

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
  const r = only(request, "env", "policy", "user_id", "thread_id", "flavor", "provider", "timeout_minutes", "fixed_end", "metadata", "template");
  return given({
    env: r["env"], policy: r["policy"], userId: r["user_id"], threadId: r["thread_id"], flavor: r["flavor"], provider: r["provider"], metadata: r["metadata"],
    template: r["template"], timeoutMs: ms(r["timeout_minutes"], 60_000), fixedEnd: r["fixed_end"],
  }) as SandboxSpec;
}

function commandOf(request: Record<string, unknown>): { command: string | string[]; options: StartOptions } {
  if (!("command" in request)) return { command: "", options: {} };
  const r = only(request, "command", "stdin", "stdin_base64", "env", "workdir", "timeout", "keep_stdin", "tag", "tty");
  const stdin = r["stdin_base64"] === undefined ? r["stdin"] : Buffer.from(r["stdin_base64"] as string, "base64");
  const options = given({ stdin, env: r["env"], cwd: r["workdir"], timeoutMs: ms(r["timeout"], 1000), keepStdin: r["keep_stdin"], tag: r["tag"], tty: r["tty"] });
  return { command: r["command"] as string | string[], options: options as StartOptions };
}

function sessionForm(s: SandboxInfo): unknown {
  return { ...s, session_id: s.id, user_id: s.userId, thread_id: s.threadId };
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
    stdout: x.stdout, stderr: x.stderr, stdout_base64: Buffer.from(x.stdoutData).toString("base64"), refusal: x.refusal, session_recreated: x.recreated, session_id: x.sandboxId,
  };
  if (!(x instanceof CodeResult)) return form;
  const main = x.value === undefined ? 0 : x.results.indexOf(x.value) + 1;
  return { ...form, success: x.ok, context_fresh: x.fresh, results: x.results, error: x.error, main_result: main };
}

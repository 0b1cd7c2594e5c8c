import { Body, type Content, bodyOf, bytesOf, encoded } from "./body.js";
import { type Ask, at } from "./connection.js";
import { invalid } from "./errors.js";
import { Execution, type ExecutionForm, bytesIn, executionOf } from "./execution.js";
import { type ProcessForm, type ProcessInfo, processInfoOf, seconds } from "./forms.js";
import { type Attempt, type Handle, onlyOnce } from "./handle.js";
import type { CallOptions, OnceOptions } from "./options.js";
import { type Chunk, Process, type WindowSize, chunks, inputForm } from "./process.js";

/** Command is a line for the shell, or a list of words that are run as they are. */
export type Command = string | string[];

/** CommandOptions say how a program is run. */
export interface CommandOptions extends CallOptions {
  /** Left out, the workspace. */
  cwd?: string;
  /** On top of the sandbox's. */
  env?: Record<string, string>;
  /** After which it is killed; left out, the server's own bound. */
  timeoutMs?: number;
  /** Bytes of both streams together, after which it is killed. */
  maxOutput?: number | string;
  /** What the program reads. A stream follows as it comes. */
  stdin?: Content;
  /** Whether a sandbox that has expired or was lost is opened again for it. Left out, what the connection was told. */
  autoRetry?: boolean;
}

/** RunOptions also say who is told of the output as it comes. */
export interface RunOptions extends CommandOptions {
  background?: false;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

/** StartOptions are those of a program in the background. */
export interface StartOptions extends Omit<CommandOptions, "stdin" | "autoRetry">, OnceOptions {
  /** What the program reads first. */
  stdin?: string | Uint8Array;
  /** Leave its input open, for Process.write. */
  keepStdin?: boolean;
  /** A word to find it by. */
  tag?: string;
  /** Give it a terminal. */
  tty?: WindowSize;
}

/** CommandEvent is a piece of output, or how the program ended, which comes last. */
export type CommandEvent = Chunk | { type: "exit"; result: Execution };

/** OutputPage is a part of kept output. */
export interface OutputPage {
  data: Uint8Array;
  text: string;
  offset: number;
  /** Where to go on; -1 at the end. */
  next: number;
  /** Bytes kept. */
  total: number;
  /** Bytes written after the cap and not kept. */
  dropped: number;
}

/** maxInline is how much input goes along in the request itself. */
const maxInline = 1024 * 1024;

/** Commands are the programs of a sandbox. */
export class Commands {
  constructor(private readonly handle: Handle) {}

  /** run runs a program to its end, or starts it in the background. Aborting ends one in the foreground. */
  run(command: Command, options: StartOptions & { background: true }): Promise<Process>;
  run(command: Command, options?: RunOptions): Promise<Execution>;
  async run(command: Command, options: RunOptions | (StartOptions & { background: true }) = {}): Promise<Execution | Process> {
    if (options.background === true) return this.start(command, options);
    const { onStdout, onStderr } = options as RunOptions;
    const input = options.stdin === undefined ? new Uint8Array() : bytesOf(options.stdin);
    if (!onStdout && !onStderr && input && input.byteLength <= maxInline) {
      return this.handle.run(async (attempt) => executionOf(await this.connection.json<ExecutionForm>(ask(attempt, command, options, input))), { ...options, repeatable: () => true });
    }
    for await (const event of this.stream(command, options as RunOptions)) {
      if (event.type === "exit") return event.result;
      (event.type === "stdout" ? onStdout : onStderr)?.(event.text);
    }
    throw this.connection.odd(); // a stream ends with an exit or an error
  }

  /** stream runs a program and yields its output as it comes, and then how it ended. Who leaves the loop ends the program. */
  async *stream(command: Command, options: CommandOptions = {}): AsyncGenerator<CommandEvent, void, undefined> {
    const input = options.stdin === undefined ? new Uint8Array() : bytesOf(options.stdin);
    const whole = input !== undefined && input.byteLength <= maxInline;
    const events = (attempt: Attempt) => {
      const chunk = chunks(this.connection);
      const asked = whole ? ask(attempt, command, options, input) : following(ask(attempt, command, options), options.stdin!);
      return this.events(attempt, asked, chunk);
    };
    yield* this.handle.stream(events, { ...options, repeatable: () => whole });
  }

  private async *events(attempt: Attempt, asked: Ask, chunk: ReturnType<typeof chunks>): AsyncGenerator<CommandEvent, void, undefined> {
    for await (const event of this.connection.follow(asked, "exit")) {
      yield* chunk(event);
      if (event.name === "exit") yield { type: "exit", result: this.handle.tell(executionOf(this.connection.data<ExecutionForm>(event)), attempt) };
    }
  }

  /** start starts a program in the background. It is started once, also where the answer got lost on its way. */
  async start(command: Command, options: StartOptions = {}): Promise<Process> {
    const input = options.stdin === undefined ? new Uint8Array() : bytesOf(options.stdin);
    if (!input || input.byteLength > maxInline) throw invalid("stdin", "of a program in the background is a text or bytes, up to 1 MiB; send more with Process.write, and keepStdin");
    const json = {
      ...form(command, options, input), keep_stdin: options.keepStdin, tag: options.tag, tty: options.tty && { cols: options.tty.cols, rows: options.tty.rows },
    };
    const id = this.handle.id;
    const made = await this.connection.json<ProcessForm>({ method: "POST", path: this.handle.path("/processes"), json, headers: onlyOnce(options.idempotencyKey), safe: true, signal: options.signal });
    const info = processInfoOf(made);
    return new Process(this.connection, id, info.pid, info);
  }

  /** list returns the programs in the background, ended ones included. */
  async list({ signal }: CallOptions = {}): Promise<ProcessInfo[]> {
    const all: ProcessInfo[] = [];
    for await (const one of this.connection.pages<ProcessForm>({ method: "GET", path: this.handle.path("/processes"), signal })) all.push(processInfoOf(one));
    return all;
  }

  /** connect returns a program in the background by its number. */
  async connect(pid: number, options: CallOptions = {}): Promise<Process> {
    const found = (await this.list(options)).find((p) => p.pid === pid);
    // Where it is not in the list the server says so, with its reason, when it is used.
    return new Process(this.connection, this.handle.id, pid, found);
  }

  /** kill sends a signal to a program in the background. */
  async kill(pid: number, name = "KILL", options: CallOptions = {}): Promise<void> {
    return new Process(this.connection, this.handle.id, pid, undefined).kill(name, options);
  }

  /** output reads a part of what a program wrote, by the outputId of its Execution or ProcessInfo. */
  async output(outputId: string, options: { stream?: "stdout" | "stderr"; offset?: number; limit?: number; grep?: string } & CallOptions = {}): Promise<OutputPage> {
    const { stream, offset, limit, grep, signal } = options;
    const page = await this.connection.json<{ data?: string; data_base64?: string; offset: number; next: number; total: number; dropped?: number }>({
      method: "GET", path: at`/api/sandboxes/${this.handle.id}/output/${outputId}`, query: { stream, offset, limit, grep }, signal, safe: true,
    });
    const data = bytesIn(page.data, page.data_base64);
    return { data, text: Buffer.from(data).toString("utf8"), offset: page.offset, next: page.next, total: page.total, dropped: page.dropped ?? 0 };
  }

  private get connection() {
    return this.handle.connection;
  }
}

function form(command: Command, o: Omit<CommandOptions, "stdin">, input?: Uint8Array): Record<string, unknown> {
  return { command, workdir: o.cwd, timeout: seconds(o.timeoutMs), max_output: o.maxOutput, env: o.env, ...(input ? inputForm("stdin", input) : {}) };
}

function ask(attempt: Attempt, command: Command, options: CommandOptions, input?: Uint8Array): Ask {
  return { method: "POST", path: at`/api/sandboxes/${attempt.id}/execute`, json: form(command, options, input), headers: attempt.headers, signal: options.signal };
}

/** following is a request on one line with the input after it. */
function following(asked: Ask, stdin: Content): Ask {
  const head = Buffer.from(encoded(asked.json) + "\n");
  const input = bodyOf(stdin);
  async function* all() {
    yield head as Uint8Array;
    yield* input;
  }
  const { json: _, ...others } = asked;
  return { ...others, body: new Body(all()), headers: { ...asked.headers, "Content-Type": "application/x-cove-exec" } };
}

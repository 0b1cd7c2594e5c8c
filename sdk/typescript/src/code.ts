import { type Ask, at } from "./connection.js";
import { type CoveError, invalid } from "./errors.js";
import { Execution, type ExecutionForm, failure, lastLine } from "./execution.js";
import { seconds } from "./forms.js";
import { type Attempt, type Handle, onlyOnce } from "./handle.js";
import type { CallOptions, OnceOptions } from "./options.js";
import { type Chunk, chunks } from "./process.js";

/** Rich is a value that code showed, in all its forms: text, html, markdown, png in base64, json and so on; others by their MIME type. */
export type Rich = Record<string, string>;

/** CodeFault is what code raised. */
export interface CodeFault {
  name: string;
  value: string;
  traceback?: string;
  line?: number;
}

/** CodeOptions say how code is run. */
export interface CodeOptions extends CallOptions {
  /** python, node, typescript or bash. Left out, python, or that of the context. */
  language?: string;
  /** A context that was made by createContext, or its id. Left out, the language's own. */
  context?: string | CodeContext;
  timeoutMs?: number;
  maxOutput?: number | string;
  /** For this run alone. */
  env?: Record<string, string>;
  /** What becomes of Python code that imports os, subprocess and the like; only stricter than the server's setting. */
  imports?: "off" | "warn" | "block";
  /** Whether a sandbox that has expired or was lost is opened again for it; never for code in a context that was named. */
  autoRetry?: boolean;
}

/** RunCodeOptions also say who is told as it happens. */
export interface RunCodeOptions extends CodeOptions {
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  onResult?: (value: Rich, main: boolean) => void;
}

interface CodeResultForm extends ExecutionForm {
  context_id: string;
  results: Rich[];
  main_result?: number;
  error: CodeFault | null;
  execution_count?: number;
  context_fresh: boolean;
  results_truncated?: boolean;
}

/** CodeResult is how code ended, and the values that it showed. */
export class CodeResult extends Execution {
  readonly contextId: string;
  /** The values it showed, in their order. */
  readonly results: Rich[];
  /** The value of the last expression. */
  readonly value: Rich | undefined;
  /** What it raised. */
  readonly error: CodeFault | undefined;
  readonly executionCount: number | undefined;
  /** The interpreter was started for this call and remembers nothing of earlier ones. */
  readonly fresh: boolean;
  readonly resultsTruncated: boolean;

  constructor(f: CodeResultForm) {
    super(f);
    this.contextId = f.context_id;
    this.results = f.results ?? [];
    this.value = f.main_result ? this.results[f.main_result - 1] : undefined;
    this.error = f.error ?? undefined;
    this.executionCount = f.execution_count;
    this.fresh = f.context_fresh;
    this.resultsTruncated = f.results_truncated ?? false;
  }

  /** The value of the last expression as text. */
  get text(): string | undefined {
    return this.value?.["text"];
  }

  /** Whether it ran to its end and raised nothing. */
  override get ok(): boolean {
    return super.ok && this.error === undefined;
  }

  override check(): this {
    if (!this.ok) throw this.failed();
    return this;
  }

  private failed(): CoveError {
    const said = this.error ? lastLine(`${this.error.name}: ${this.error.value}`) : lastLine(this.stderr);
    return failure("the code", this, said, "code_failed");
  }
}

/** CodeContext is an interpreter that remembers. */
export interface CodeContext {
  id: string;
  language: string;
  cwd: string;
  busy: boolean;
  createdAt: Date;
}

interface ContextForm {
  id: string;
  language: string;
  cwd: string;
  busy: boolean;
  created_at: string;
}

/** CodeEvent is a piece of output, a value as it is shown, or how the code ended, which comes last. */
export type CodeEvent = Chunk | { type: "value"; value: Rich; main: boolean } | { type: "result"; result: CodeResult };

/** Code runs code in a sandbox, in contexts that keep variables from one run to the next. */
export class Code {
  constructor(private readonly handle: Handle) {}

  private get connection() {
    return this.handle.connection;
  }

  /** run runs code to its end. Aborting interrupts it. */
  async run(code: string, options: RunCodeOptions = {}): Promise<CodeResult> {
    const { onStdout, onStderr, onResult } = options;
    if (!onStdout && !onStderr && !onResult) {
      const once = async (attempt: Attempt) => new CodeResult(await this.connection.json<CodeResultForm>(ask(attempt, code, options, false)));
      return this.handle.run(once, { ...options, repeatable: () => options.context === undefined });
    }
    for await (const event of this.stream(code, options)) {
      switch (event.type) {
        case "stdout":
          onStdout?.(event.text);
          break;
        case "stderr":
          onStderr?.(event.text);
          break;
        case "value":
          onResult?.(event.value, event.main);
          break;
        case "result":
          return event.result;
      }
    }
    throw this.connection.odd(); // a stream ends with a result or an error
  }

  /** stream runs code and yields what it writes and shows, as it happens, and then how it ended. */
  async *stream(code: string, options: CodeOptions = {}): AsyncGenerator<CodeEvent, void, undefined> {
    const events = (attempt: Attempt) => this.events(attempt, ask(attempt, code, options, true));
    yield* this.handle.stream(events, { ...options, repeatable: () => options.context === undefined });
  }

  private async *events(attempt: Attempt, asked: Ask): AsyncGenerator<CodeEvent, void, undefined> {
    const chunk = chunks(this.connection);
    for await (const event of this.connection.follow(asked, "result")) {
      yield* chunk(event);
      if (event.name === "value") {
        const form = this.connection.data<{ forms: Rich; main?: boolean }>(event);
        yield { type: "value", value: form.forms, main: form.main ?? false };
      }
      if (event.name === "result") yield { type: "result", result: this.handle.tell(new CodeResult(this.connection.data<CodeResultForm>(event)), attempt) };
    }
  }

  /** createContext makes an interpreter of its own. */
  async createContext(options: { language?: string; cwd?: string; id?: string } & OnceOptions = {}): Promise<CodeContext> {
    const { language = "python", cwd, id, signal, idempotencyKey } = options;
    return contextOf(await this.connection.json<ContextForm>({
      method: "POST", path: this.handle.path("/contexts"), json: { id, language, cwd }, headers: onlyOnce(idempotencyKey), safe: true, signal,
    }));
  }

  /** contexts returns the interpreters of the sandbox. */
  async contexts({ signal }: CallOptions = {}): Promise<CodeContext[]> {
    const all: CodeContext[] = [];
    for await (const one of this.connection.pages<ContextForm>({ method: "GET", path: this.handle.path("/contexts"), signal })) all.push(contextOf(one));
    return all;
  }

  /** interrupt stops what runs in a context; its variables stay. */
  async interrupt(context: string | CodeContext, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.at(context) + "/interrupt", signal });
  }

  /** restart makes a context forget all. */
  async restart(context: string | CodeContext, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.at(context) + "/restart", signal });
  }

  /** closeContext ends a context. */
  async closeContext(context: string | CodeContext, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "DELETE", path: this.at(context), signal });
  }

  private at(context: string | CodeContext): string {
    return at`/api/sandboxes/${this.handle.id}/contexts/${nameOf(context)}`;
  }
}

function nameOf(context: string | CodeContext): string {
  return typeof context === "string" ? context : context.id;
}

function contextOf(f: ContextForm): CodeContext {
  return { id: f.id, language: f.language, cwd: f.cwd, busy: f.busy, createdAt: new Date(f.created_at) };
}

function ask(attempt: Attempt, code: string, o: CodeOptions, values: boolean): Ask {
  if (typeof code !== "string") throw invalid("code", "must be a text");
  const context = o.context === undefined ? undefined : nameOf(o.context);
  const language = o.language ?? (context === undefined ? "python" : undefined);
  return {
    method: "POST", path: at`/api/sandboxes/${attempt.id}/code`, headers: attempt.headers, signal: o.signal,
    json: { code, language, context_id: context, timeout: seconds(o.timeoutMs), max_output: o.maxOutput, env: o.env, imports: o.imports, values: values || undefined },
  };
}

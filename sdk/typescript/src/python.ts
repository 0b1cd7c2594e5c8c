/** Python as a tool for a model: code goes in, and a text that it can act on comes out. */
import { CoveError, misfit } from "./errors.js";
import type { CallOptions, ConnectionOptions } from "./options.js";
import { Sandbox } from "./sandbox.js";
import { Client, type PythonAnswer } from "./server.js";

/** kinds are the sandboxes that can be asked for by name. */
const kinds = ["local", "gvisor", "docker", "microsandbox", "e2b", "fake"] as const;

/** SandboxKind is what isolates a sandbox. */
export type SandboxKind = (typeof kinds)[number];

/** ExecutionResult is what came of a piece of code. */
export interface ExecutionResult {
  stdout: string;
  stderr: string;
  /** -1 when the time ran out, and where nothing ran. */
  exitCode: number;
  durationMs: number;
  meta: { runtime: string; truncated: boolean; timedOut: boolean; blockedImports: string[]; resourceLimits: Record<string, unknown> };
  /** All of it in words for a model. */
  text: string;
  /** Whether it ran to its end. */
  success: boolean;
}

/** PythonOptions bound a piece of code. */
export interface PythonOptions extends CallOptions {
  timeoutMs?: number;
}

/** CodeSandbox runs each piece of code in a sandbox of its own, which is gone afterwards. */
export class CodeSandbox implements AsyncDisposable {
  private readonly client: Client;

  /** Left out, kind is as the server has it. */
  constructor(readonly kind: SandboxKind | undefined, options: ConnectionOptions = {}) {
    this.client = new Client(options);
  }

  /** execute runs Python code. What it does wrong is in the result; an error says that the platform could not do its work. */
  async execute(code: string, options: PythonOptions = {}): Promise<ExecutionResult> {
    if (this.kind === undefined) return resultOf(await this.client.runPython(code, options));
    const sandbox = await Sandbox.openOn(this.client.connection, { provider: this.kind }, { signal: options.signal });
    try {
      return resultOf(await this.client.runPython(code, { ...options, sandboxId: sandbox.id }));
    } finally {
      await sandbox.kill(); // not by the caller's signal: it may have ended
    }
  }

  /** close lets go of the server. */
  async close(): Promise<void> {
    await this.client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function resultOf(a: PythonAnswer): ExecutionResult {
  const { runtime, truncated, timed_out, blocked_imports, resource_limits } = a.meta;
  return {
    stdout: a.stdout, stderr: a.stderr, exitCode: a.exit_code, durationMs: a.duration * 1000, text: a.result, success: a.exit_code === 0,
    meta: { runtime, truncated, timedOut: timed_out, blockedImports: blocked_imports ?? [], resourceLimits: resource_limits },
  };
}

/**
 * getSandbox returns the sandbox that is asked for, or that SANDBOX_TYPE or
 * SANDBOX_PROVIDER names, or that the server has. No other one steps in for it.
 */
export function getSandbox(kind?: SandboxKind, options: ConnectionOptions = {}): CodeSandbox {
  const named = kind ?? (process.env["SANDBOX_TYPE"] || process.env["SANDBOX_PROVIDER"] || undefined);
  if (named !== undefined && !(kinds as readonly string[]).includes(named)) throw misfit("SANDBOX_TYPE", `${JSON.stringify(named)} is no kind of sandbox; use one of ${kinds.join(", ")}`);
  return new CodeSandbox(named as SandboxKind | undefined, options);
}

/** runPythonCode runs Python code for a model. It never fails: every error is a text, too. */
export async function runPythonCode(code: string, options: PythonOptions & ConnectionOptions = {}): Promise<string> {
  let sandbox: CodeSandbox | undefined;
  try {
    sandbox = getSandbox(undefined, options);
    return (await sandbox.execute(code, options)).text;
  } catch (err) {
    if (err instanceof CoveError) return `Execution failed: ${err.message}`;
    throw err;
  } finally {
    await sandbox?.close();
  }
}

import { type CoveError, CanceledError, DeniedError, ExhaustedError, InvalidError, TimeoutError } from "./errors.js";

/** Outcome is how a program came to its end. */
export type Outcome = "exited" | "signaled" | "timed_out" | "out_of_memory" | "output_limit" | "blocked" | "killed";

/** Refusal is why policy did not let something run. */
export interface Refusal {
  rule: string;
  reason: string;
  word?: string;
  line?: number;
  column?: number;
}

export interface ExecutionForm {
  exit_code: number;
  status: "success" | "error" | "timeout" | "blocked";
  outcome: Outcome;
  signal?: string;
  stdout?: string;
  stdout_base64?: string;
  stderr?: string;
  stderr_base64?: string;
  stdout_bytes: number;
  stderr_bytes: number;
  truncated: boolean;
  output_id?: string;
  execution_time_ms: number;
  cpu_time_ms: number;
  peak_memory_bytes?: number;
  refusal?: Refusal;
  provider: string;
  pid?: number;
  session_id: string;
  session_recreated?: boolean;
  session_restarted?: boolean;
}

/** Execution is how a program ended. That it failed is no error: check throws one, for who wants it. */
export class Execution {
  /** 128+n for a signal; -1 when timed out. */
  readonly exitCode: number;
  readonly status: ExecutionForm["status"];
  readonly outcome: Outcome;
  readonly signal: string | undefined;
  /** The output as text, cut in the middle where it is long; stdoutData has its bytes. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutData: Uint8Array;
  readonly stderrData: Uint8Array;
  /** All that was written, in bytes. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Something was cut; Commands.output has the rest under outputId. */
  readonly truncated: boolean;
  readonly outputId: string | undefined;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMemoryBytes: number | undefined;
  /** Why it was blocked. */
  readonly refusal: Refusal | undefined;
  readonly provider: string;
  readonly pid: number | undefined;
  /** Where it ran. */
  readonly sandboxId: string;
  /** The sandbox had expired or was lost, and this is a new one: files may be gone. */
  recreated: boolean;
  /** The sandbox had been stopped and was started again: files are kept, variables and programs that ran are gone. */
  readonly restarted: boolean;

  constructor(f: ExecutionForm) {
    this.exitCode = f.exit_code;
    this.status = f.status;
    this.outcome = f.outcome;
    this.signal = f.signal;
    this.stdoutData = bytesIn(f.stdout, f.stdout_base64);
    this.stderrData = bytesIn(f.stderr, f.stderr_base64);
    this.stdout = f.stdout ?? Buffer.from(this.stdoutData).toString("utf8");
    this.stderr = f.stderr ?? Buffer.from(this.stderrData).toString("utf8");
    this.stdoutBytes = f.stdout_bytes;
    this.stderrBytes = f.stderr_bytes;
    this.truncated = f.truncated;
    this.outputId = f.output_id;
    this.wallMs = f.execution_time_ms;
    this.cpuMs = f.cpu_time_ms;
    this.peakMemoryBytes = f.peak_memory_bytes;
    this.refusal = f.refusal;
    this.provider = f.provider;
    this.pid = f.pid;
    this.sandboxId = f.session_id;
    this.recreated = f.session_recreated ?? false;
    this.restarted = f.session_restarted ?? false;
  }

  /** Whether it ended by itself with exit code 0. */
  get ok(): boolean {
    return this.outcome === "exited" && this.exitCode === 0;
  }

  /** check returns the execution, or throws an error that says how it failed. */
  check(): this {
    if (!this.ok) throw failure("the program", this, lastLine(this.stderr), "command_failed");
    return this;
  }
}

export function executionOf(f: ExecutionForm): Execution {
  return new Execution(f);
}

/** bytesIn are bytes that travel as text where they are UTF-8. */
export function bytesIn(text: string | undefined, base64: string | undefined): Uint8Array {
  return base64 === undefined ? Buffer.from(text ?? "", "utf8") : Buffer.from(base64, "base64");
}

/** failure is the error about what ran and failed; its code says how. */
export function failure(what: string, x: Execution, said: string, reason: string): CoveError {
  const tail = said === "" ? "" : `: ${said}`;
  const fault = { reason, details: { exit_code: x.exitCode, outcome: x.outcome, result: x } };
  switch (x.outcome) {
    case "timed_out":
      return new TimeoutError(`${what} ran out of time after ${x.wallMs / 1000}s${tail}`, fault);
    case "out_of_memory":
      return new ExhaustedError(`${what} needed more memory than it may have${tail}`, fault);
    case "output_limit":
      return new ExhaustedError(`${what} wrote more than it may${tail}`, fault);
    case "blocked":
      return new DeniedError(`${what} was not run: ${x.refusal?.reason ?? "policy does not allow it"}`, fault);
    case "killed":
      return new CanceledError(`${what} was killed${tail}`, fault);
    case "signaled":
      return new InvalidError(`${what} ended by the signal ${x.signal}${tail}`, fault);
    default:
      return new InvalidError(`${what} failed with exit code ${x.exitCode}${tail}`, fault);
  }
}

/** maxShown bounds what an error repeats of a program's own words. */
const maxShown = 200;

/** lastLine is the last line of a text that says something, fit for a message. */
export function lastLine(text: string): string {
  const line = text.slice(-16 * maxShown).trim().split("\n").at(-1) ?? "";
  const plain = line.replace(/[\p{C}\uFFFD]/gu, "");
  return plain.length > maxShown ? plain.slice(0, maxShown) + "…" : plain;
}

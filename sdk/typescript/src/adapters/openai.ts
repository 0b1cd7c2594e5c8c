/**
 * The shell tool of OpenAI's models, run in a sandbox: a shell_call item of the
 * Responses API goes in, the shell_call_output item that answers it comes out.
 */
import { CoveError, InvalidError } from "../errors.js";
import type { Execution } from "../execution.js";
import type { CallOptions } from "../options.js";
import type { Sandbox } from "../sandbox.js";
import { type ToolOptions, cut, longest, refused, startedAgain } from "./told.js";

/** shell is the tool to offer: one whose commands run with the caller. */
export const shell = { type: "shell", environment: { type: "local" } } as const;

/** ShellCall is what a model asks for. */
export interface ShellCall {
  call_id: string;
  action: { commands: string[]; timeout_ms?: number | null; max_output_length?: number | null };
}

/** ShellOutcome is what came of one command. */
export interface ShellOutcome {
  stdout: string;
  stderr: string;
  outcome: { type: "timeout" } | { type: "exit"; exit_code: number };
}

/** ShellCallOutput is the answer. */
export interface ShellCallOutput {
  type: "shell_call_output";
  call_id: string;
  max_output_length?: number | null;
  output: ShellOutcome[];
}

/** maxCommands bounds the commands of one call. */
const maxCommands = 64;
/** platformFailed is the exit code for what the platform could not do, as that of the command line. */
const platformFailed = 125;

/**
 * shellOutput runs the commands of a call, one after the other, each in a fresh shell;
 * files stay. What the platform could not do is an answer, too; aborting is none.
 */
export async function shellOutput(sandbox: Sandbox, call: ShellCall, options: ToolOptions & CallOptions = {}): Promise<ShellCallOutput> {
  const { call_id } = call;
  const action = call.action ?? {}; // a model may have sent anything
  const most = least(longest(options), action.max_output_length);
  const given = Array.isArray(action.commands) ? action.commands : [];
  const output: ShellOutcome[] = [];
  if (given.length === 0) output.push(failed(new InvalidError("commands: must be a list of texts, and not empty"), most));
  for (const command of given.slice(0, maxCommands)) output.push(await ran(sandbox, command, action, most, options));
  if (given.length > maxCommands) output.push(failed(new InvalidError(`the other ${given.length - maxCommands} commands were not run: a call has ${maxCommands} at most`), most));
  return { type: "shell_call_output", call_id, ...(action.max_output_length === undefined ? {} : { max_output_length: action.max_output_length }), output };
}

async function ran(sandbox: Sandbox, command: string, action: ShellCall["action"], most: number, options: ToolOptions & CallOptions): Promise<ShellOutcome> {
  const { signal } = options;
  const timeoutMs = least(options.timeoutMs ?? Infinity, action.timeout_ms);
  try {
    return outcomeOf(await sandbox.commands.run(command, { signal, ...(timeoutMs === Infinity ? {} : { timeoutMs }) }), most);
  } catch (err) {
    if (!(err instanceof CoveError) || signal?.aborted) throw err;
    return failed(err, most);
  }
}

/** least is a bound that a model may lower and not raise. */
function least(bound: number, asked: number | null | undefined): number {
  return typeof asked === "number" && asked > 0 ? Math.min(bound, asked) : bound;
}

function outcomeOf(x: Execution, most: number): ShellOutcome {
  const notes = [x.stderr, refused(x)];
  if (x.recreated) notes.push("the sandbox had expired or was lost: this is a new one, without the files of before");
  if (x.restarted) notes.push(startedAgain);
  return {
    stdout: cut(x.stdout, most), stderr: cut(notes.filter(Boolean).join("\n"), most),
    outcome: x.outcome === "timed_out" ? { type: "timeout" } : { type: "exit", exit_code: x.exitCode },
  };
}

function failed(err: CoveError, most: number): ShellOutcome {
  return { stdout: "", stderr: cut(`[${err.code}] ${err.message}`, most), outcome: { type: "exit", exit_code: platformFailed } };
}

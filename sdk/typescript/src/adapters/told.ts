/** What a model is told of what ran: bounded, and an answer whatever happened. */
import { CodeResult } from "../code.js";
import { CoveError, InvalidError, misfit } from "../errors.js";
import type { Execution } from "../execution.js";

/** ToolOptions bound what a model can ask for. */
export interface ToolOptions {
  /** After which a command or code is ended; left out, the server's own bound. */
  timeoutMs?: number;
  /** Characters of an answer, of which the head and the tail are kept. Left out, 20000. */
  maxOutput?: number;
}

/** bound is the bound on time as calls take it. */
export const bound = ({ timeoutMs }: ToolOptions) => (timeoutMs === undefined ? {} : { timeoutMs });

/** usual is how long an answer is at most where nobody says otherwise. */
const usual = 20_000;

/** longest is how many characters an answer has at most. */
export function longest({ maxOutput = usual }: ToolOptions): number {
  if (!Number.isSafeInteger(maxOutput) || maxOutput < 1) throw misfit("maxOutput", "must be a whole number above 0");
  return maxOutput;
}

/** whole leaves out the halves of characters at the ends of a part of a text: who serves a model refuses all that has one. */
export const whole = (part: string) => part.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");

/** cut keeps the head and the tail of a text. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const gap = "\n[…]\n";
  const half = Math.floor((most - gap.length) / 2);
  return half < 1 ? whole(text.slice(0, most)) : whole(text.slice(0, half)) + gap + whole(text.slice(-half));
}

/** raised is what code raised, in words. */
export function raised({ error }: CodeResult): string {
  return error ? error.traceback || `${error.name}: ${error.value}` : "";
}

/** refused is why policy did not let something run, in words. */
export function refused(x: Execution): string {
  return x.outcome === "blocked" ? `blocked by policy: ${x.refusal?.reason ?? "it is not allowed"}` : "";
}

/** startedAgain is what a model must know of a sandbox that the server had stopped. */
export const startedAgain = "the sandbox had been stopped and was started again: its files are kept, variables and programs that ran are gone";

/** told is what ran in words: what it wrote and gave, and how it ended where that matters. */
export function told(x: Execution, most: number): string {
  const shown = [x.stdout];
  if (x instanceof CodeResult) shown.push(x.text ?? "");
  shown.push(x.stderr);
  if (x instanceof CodeResult) shown.push(raised(x));
  const output = lines(shown);
  const ended = lines([
    x.recreated ? "[the sandbox had expired or was lost: this is a new one, without the files and variables of before]" : "",
    x.restarted ? `[${startedAgain}]` : "",
    x.truncated || output.length > most ? "[output was cut]" : "",
    ending(x),
  ]);
  return lines([cut(output, most), ended]) || "(no output)";
}

const lines = (parts: string[]) => parts.map((part) => part.replace(/\n$/, "")).filter(Boolean).join("\n");

/** ending is how something ended that did not end well. */
function ending(x: Execution): string {
  switch (x.outcome) {
    case "timed_out":
      return `[the time ran out after ${x.wallMs / 1000} s]`;
    case "blocked":
      return `[${refused(x)}]`;
    case "out_of_memory":
      return "[it needed more memory than it may have]";
    case "output_limit":
      return "[it wrote more than it may, and was ended]";
    case "signaled":
    case "killed":
      return `[it was ended${x.signal ? ` by the signal ${x.signal}` : ""}]`;
    default:
      return x.exitCode === 0 || (x instanceof CodeResult && x.error) ? "" : `[exit code ${x.exitCode}]`;
  }
}

/** answered makes an answer of an error of the platform: a model can read it. What the caller's own signal ended is none. */
export async function answered(run: () => Promise<string>, signal?: AbortSignal | null): Promise<string> {
  try {
    return await run();
  } catch (err) {
    if (!(err instanceof CoveError) || signal?.aborted) throw err;
    return `[${err.code}] ${err.message}`;
  }
}

/** words demands texts in what a model sent: it may have sent anything. */
export function words<Name extends string>(input: unknown, ...names: Name[]): Record<Name, string> {
  const given = (typeof input === "object" && input !== null ? input : {}) as Record<string, unknown>;
  for (const name of names) {
    if (typeof given[name] !== "string") throw new InvalidError(`${name}: must be a text`, { details: { field: name } });
  }
  return given as Record<Name, string>;
}

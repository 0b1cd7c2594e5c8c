/**
 * Tools for Anthropic's models that run in a sandbox. Hand them to
 * client.beta.messages.toolRunner of @anthropic-ai/sdk, or call run yourself with the
 * input of a tool_use block: its answer is the content of the tool_result.
 */
import { CoveError, ExhaustedError, InvalidError, TimeoutError } from "../errors.js";
import type { Sandbox } from "../sandbox.js";
import { type ToolOptions, answered, bound, cut, longest, raised, refused, told, words } from "./told.js";

/** RunContext is what a tool runner says of a call. */
export interface RunContext {
  signal?: AbortSignal | null | undefined;
}

/** BashTool is the bash tool that models know. */
export interface BashTool {
  type: "bash_20250124";
  name: "bash";
  parse: (input: unknown) => unknown;
  run: (input: unknown, context?: RunContext) => Promise<string>;
}

/** bashTool is one shell of a sandbox, which remembers its directory and variables until it is started again. */
export function bashTool(sandbox: Sandbox, options: ToolOptions = {}): BashTool {
  const most = longest(options);
  return {
    type: "bash_20250124",
    name: "bash",
    parse: (input) => input,
    run: (input, context) =>
      answered(async () => {
        const signal = context?.signal ?? undefined;
        if ((input as { restart?: unknown } | null)?.restart === true) return restarted(sandbox, signal);
        const { command } = words(input, "command");
        return told(await sandbox.code.run(command, { language: "bash", ...bound(options), signal }), most);
      }, context?.signal),
  };
}

async function restarted(sandbox: Sandbox, signal?: AbortSignal): Promise<string> {
  for (const context of await sandbox.code.contexts({ signal })) {
    if (context.language === "bash") await sandbox.code.restart(context, { signal });
  }
  return "The shell was started again. Files are still there.";
}

/** CodeExecutionTool is Python in the shape of Anthropic's own code execution. */
export interface CodeExecutionTool {
  type: "custom";
  name: "code_execution";
  description: string;
  input_schema: { type: "object"; properties: Record<string, unknown>; required: string[] };
  parse: (input: unknown) => unknown;
  run: (input: unknown, context?: RunContext) => Promise<string>;
}

/** CodeExecutionResult is what ran, in that shape; files stay in the sandbox, so that content names none. */
export interface CodeExecutionResult {
  type: "code_execution_result";
  stdout: string;
  stderr: string;
  return_code: number;
  content: [];
}

/** CodeExecutionToolError says in that shape that nothing ran, or not to its end. */
export interface CodeExecutionToolError {
  type: "code_execution_tool_result_error";
  error_code: "invalid_tool_input" | "unavailable" | "too_many_requests" | "execution_time_exceeded";
}

/** codeExecutionTool runs Python in a sandbox, whose variables and files stay. Its answer is one of codeExecution, in JSON. */
export function codeExecutionTool(sandbox: Sandbox, options: ToolOptions = {}): CodeExecutionTool {
  longest(options); // now, and not when a model asks
  return {
    type: "custom",
    name: "code_execution",
    description: "Runs Python code in a sandbox. Variables, imports and files stay from one call to the next. The value of the last expression is printed.",
    input_schema: { type: "object", properties: { code: { type: "string", description: "Python code" } }, required: ["code"] },
    parse: (input) => input,
    run: async (input, context) => JSON.stringify(await codeExecution(sandbox, input, { ...options, signal: context?.signal ?? undefined })),
  };
}

/** codeExecution runs the input of a code_execution call. */
export async function codeExecution(
  sandbox: Sandbox, input: unknown, options: ToolOptions & { signal?: AbortSignal | undefined } = {},
): Promise<CodeExecutionResult | CodeExecutionToolError> {
  const most = longest(options);
  try {
    const { code } = words(input, "code");
    const r = await sandbox.code.run(code, { language: "python", ...bound(options), signal: options.signal });
    if (r.outcome === "timed_out") return { type: "code_execution_tool_result_error", error_code: "execution_time_exceeded" };
    const stderr = [r.stderr, raised(r), refused(r)].filter(Boolean).join("\n");
    const stdout = r.stdout + (r.text === undefined ? "" : r.text + "\n");
    return { type: "code_execution_result", stdout: cut(stdout, most), stderr: cut(stderr, most), return_code: r.ok ? 0 : r.exitCode || 1, content: [] };
  } catch (err) {
    if (!(err instanceof CoveError) || options.signal?.aborted) throw err;
    return { type: "code_execution_tool_result_error", error_code: errorCode(err) };
  }
}

function errorCode(err: CoveError): CodeExecutionToolError["error_code"] {
  if (err instanceof InvalidError) return "invalid_tool_input";
  if (err instanceof ExhaustedError) return "too_many_requests";
  return err instanceof TimeoutError ? "execution_time_exceeded" : "unavailable";
}

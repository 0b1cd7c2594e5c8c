/**
 * Tools for the AI SDK of Vercel, the package ai, that run in a sandbox: hand coveTools
 * to generateText, streamText or an agent as tools. Their answers are texts, bounded,
 * also where something goes wrong; what the caller's own signal ends is thrown.
 */
import { jsonSchema, tool } from "ai";

import type { Sandbox } from "../sandbox.js";
import { type ToolOptions, answered, bound, longest, told, whole, words } from "./told.js";

/** coveTools are a shell, Python that remembers, and the files of a sandbox. */
export function coveTools(sandbox: Sandbox, options: ToolOptions = {}) {
  const most = longest(options);
  const within = bound(options);
  return {
    bash: tool({
      description: "Runs a shell command in a sandbox. Files in the working directory stay from one call to the next; variables and directories do not.",
      inputSchema: texts({ command: "a line for bash" }),
      execute: ({ command }, { abortSignal: signal }) => answered(async () => told(await sandbox.commands.run(command, { ...within, signal }), most), signal),
    }),
    python: tool({
      description: "Runs Python code in the same sandbox. Variables and imports stay from one call to the next. The value of the last expression is shown.",
      inputSchema: texts({ code: "Python code" }),
      execute: ({ code }, { abortSignal: signal }) => answered(async () => told(await sandbox.code.run(code, { ...within, signal }), most), signal),
    }),
    read_file: tool({
      description: "Reads a text file of the sandbox.",
      inputSchema: texts({ path: "where it is; the working directory is /workspace" }),
      execute: ({ path }, { abortSignal: signal }) => answered(() => read(sandbox, path, most, signal), signal),
    }),
    write_file: tool({
      description: "Writes a text file of the sandbox, with the directories on the way to it.",
      inputSchema: texts({ path: "where it goes", content: "all of its text" }),
      execute: ({ path, content }, { abortSignal: signal }) =>
        answered(async () => {
          await sandbox.files.write(path, content, { signal });
          return `wrote ${Buffer.byteLength(content)} bytes to ${path}`;
        }, signal),
    }),
    list_files: tool({
      description: "Lists what is in a directory of the sandbox.",
      inputSchema: texts({ path: "the directory; . is the working directory" }),
      execute: ({ path }, { abortSignal: signal }) => answered(() => listed(sandbox, path, most, signal), signal),
    }),
  };
}

async function read(sandbox: Sandbox, path: string, most: number, signal?: AbortSignal): Promise<string> {
  const { size } = await sandbox.files.stat(path, { signal });
  const text = await sandbox.files.read(path, { length: most, signal }); // what is not shown is not fetched
  return size > most ? `${text}\n[the file has ${size} bytes; these are the first ${most}]` : text || "(the file is empty)";
}

async function listed(sandbox: Sandbox, path: string, most: number, signal?: AbortSignal): Promise<string> {
  let text = "";
  for await (const f of sandbox.files.walk(path, { signal })) {
    text += f.type === "dir" ? `${f.path}/\n` : `${f.path} (${f.size} bytes)\n`;
    if (text.length > most) return `${whole(text.slice(0, most))}\n[there is more]`;
  }
  return text || "(nothing)";
}

/** texts is the schema of an input of texts, all of which must be there. Models send anything, so that they are looked at. */
function texts<Name extends string>(properties: Record<Name, string>) {
  const names = Object.keys(properties) as Name[];
  const described = Object.fromEntries(names.map((name) => [name, { type: "string" as const, description: properties[name] }]));
  return jsonSchema<Record<Name, string>>({ type: "object", properties: described, required: names, additionalProperties: false }, {
    validate: (value) => {
      try {
        return { success: true, value: words(value, ...names) };
      } catch (err) {
        return { success: false, error: err as Error };
      }
    },
  });
}

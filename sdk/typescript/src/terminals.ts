import type { Command, Commands, StartOptions } from "./commands.js";
import type { CallOptions } from "./options.js";
import type { Process, WindowSize } from "./process.js";

/** shell is what a terminal runs where nothing else is asked for. */
const shell = "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi";

/** TerminalOptions say what runs in a terminal. */
export interface TerminalOptions extends Omit<StartOptions, "tty" | "keepStdin">, Partial<WindowSize> {
  /** Left out, a shell. */
  command?: Command;
}

/**
 * Terminals are programs in the background with a terminal: what they write is followed
 * from the Process, as often and by as many as like, and what is typed is written to it.
 */
export class Terminals {
  constructor(private readonly commands: Commands) {}

  /** open starts a shell, or another program, in a terminal of 80 times 24 unless it is told otherwise. */
  async open(options: TerminalOptions = {}): Promise<Process> {
    const { command, cols, rows, ...others } = options;
    const env = { TERM: "xterm-256color", ...others.env };
    return this.commands.start(command ?? shell, { ...others, env, keepStdin: true, tty: { cols: cols ?? 80, rows: rows ?? 24 } });
  }

  /** connect returns a terminal by the number of its program. */
  async connect(pid: number, options: CallOptions = {}): Promise<Process> {
    return this.commands.connect(pid, options);
  }
}

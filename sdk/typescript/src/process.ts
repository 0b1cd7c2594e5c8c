import { bytesOf } from "./body.js";
import { type Connection, at, brokeOff, rest } from "./connection.js";
import { invalid } from "./errors.js";
import type { ServerEvent } from "./events.js";
import { Execution, type ExecutionForm, bytesIn, executionOf } from "./execution.js";
import type { ProcessInfo } from "./forms.js";
import type { CallOptions } from "./options.js";

/** Chunk is a piece of what a program wrote. */
export interface Chunk {
  type: "stdout" | "stderr";
  data: Uint8Array;
  /** The text that is whole with this piece: a character that was cut comes with the next one, and as \uFFFD, with no data, where none comes. */
  text: string;
  /** Where the next piece begins, in bytes of both streams. */
  next: number;
}

/** Events after which there is no more output. */
const lastEvents = ["exit", "result", "end"];

/** chunks makes pieces of output of events, and keeps the start of a character that was cut until the rest comes, or the last event. */
export function chunks(connection: Connection): (event: ServerEvent) => Chunk[] {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let next = 0;
  return (event) => {
    const { name } = event;
    if (name === "stdout" || name === "stderr") {
      const form = connection.data<{ offset: number; data?: string; data_base64?: string }>(event);
      const data = bytesIn(form.data, form.data_base64);
      next = form.offset + data.byteLength;
      return [{ type: name, data, text: decoders[name].decode(data, { stream: true }), next }];
    }
    if (!lastEvents.includes(name)) return [];
    const cut = (["stdout", "stderr"] as const).map((type) => ({ type, data: new Uint8Array(), text: decoders[type].decode(), next }));
    return cut.filter((piece) => piece.text !== "");
  };
}

/** maxInput bounds the input in one request, also when all of it needs escaping. */
const maxInput = 1024 * 1024;

/** FollowOptions say from where output is followed. */
export interface FollowOptions extends CallOptions {
  /** Bytes of both streams to leave out. */
  offset?: number;
}

/** WaitOptions say who is told of the output meanwhile. */
export interface WaitOptions extends CallOptions {
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

/**
 * Process is a program in the background. It runs on when the caller goes away, and,
 * where the provider can keep it, when the server restarts.
 */
export class Process implements AsyncIterable<Chunk> {
  private result: Execution | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly sandboxId: string,
    readonly pid: number,
    /** As it was when it was started or found. */
    readonly info: ProcessInfo | undefined,
  ) {
    this.result = info?.result;
  }

  private path(rest: string): string {
    return at`/api/sandboxes/${this.sandboxId}/processes/${this.pid}` + rest;
  }

  [Symbol.asyncIterator](): AsyncIterator<Chunk> {
    return this.output();
  }

  /**
   * output yields what the program writes, from the first byte or from offset, up to its
   * end. Where the connection breaks off it goes on where it was.
   */
  async *output(options: FollowOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    if (this.pid === 0) return; // it never began
    const { signal } = options;
    const chunk = chunks(this.connection);
    let offset = options.offset ?? 0;
    let until: number | undefined; // when patience ends
    for (;;) {
      try {
        for await (const event of this.connection.follow({ method: "GET", path: this.path(""), query: { offset }, signal, safe: true }, "exit", "end")) {
          until = undefined;
          if (event.name === "exit") this.result = executionOf(this.connection.data<ExecutionForm>(event));
          for (const piece of chunk(event)) {
            offset = piece.next;
            yield piece;
          }
        }
        return;
      } catch (err) {
        until ??= Date.now() + this.connection.platform.reconnectMs;
        if (!brokeOff(err) || Date.now() > until) throw err;
        await rest(200, signal);
      }
    }
  }

  /** wait returns how the program ended, when it has. */
  async wait(options: WaitOptions = {}): Promise<Execution> {
    const { signal, onStdout, onStderr } = options;
    if (onStdout || onStderr) {
      for await (const piece of this.output({ signal })) (piece.type === "stdout" ? onStdout : onStderr)?.(piece.text);
    }
    this.result ??= executionOf(await this.connection.json<ExecutionForm>({ method: "GET", path: this.path("/wait"), signal, safe: true }));
    return this.result;
  }

  /** write writes to the program's input, which must have been kept open, and with end closes it. Long input goes in several requests. */
  async write(data: string | Uint8Array, options: { end?: boolean } & CallOptions = {}): Promise<void> {
    const bytes = bytesOf(data);
    if (!bytes) throw invalid("data", "must be a text or bytes");
    let from = 0;
    do {
      const part = bytes.subarray(from, from + maxInput);
      from += part.byteLength;
      await this.input(part, options.end === true && from >= bytes.byteLength, options);
    } while (from < bytes.byteLength);
  }

  /** closeStdin ends the program's input. */
  async closeStdin(options: CallOptions = {}): Promise<void> {
    return this.write("", { ...options, end: true });
  }

  private async input(data: Uint8Array, eof: boolean, { signal }: CallOptions): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.path("/input"), json: { ...inputForm("data", data), eof }, signal });
  }

  /** kill sends a signal to the program. */
  async kill(name = "KILL", { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.path("/signal"), json: { signal: name }, signal });
  }

  /** resize says how large the program's terminal is. */
  async resize(size: WindowSize, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.path("/resize"), json: { cols: size.cols, rows: size.rows }, signal, safe: true });
  }
}

/** WindowSize is how large a terminal is, in characters. */
export interface WindowSize {
  cols: number;
  rows: number;
}

/** inputForm is input as it travels: as text where it is UTF-8. */
export function inputForm(name: string, data: Uint8Array): Record<string, string> {
  if (data.byteLength === 0) return {};
  try {
    return { [name]: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data) };
  } catch {
    return { [name + "_base64"]: Buffer.from(data).toString("base64") };
  }
}


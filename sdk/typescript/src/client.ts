import type { Command, RunOptions } from "./commands.js";
import { Connection } from "./connection.js";
import { ConflictError, invalid } from "./errors.js";
import type { Execution } from "./execution.js";
import type { Content } from "./body.js";
import type { TransferOptions, WriteOptions } from "./files.js";
import type { FileInfo, SandboxInfo, SandboxSpec } from "./forms.js";
import type { OpenOptions } from "./handle.js";
import type { CallOptions, ConnectionOptions } from "./options.js";
import { Sandbox } from "./sandbox.js";

/** SessionOptions find a session: that of a user and a thread. */
export interface SessionOptions extends SandboxSpec, OpenOptions {
  userId: string;
  threadId: string;
}

/** maxSessions bounds how many sessions a client remembers how to open again. */
const maxSessions = 10_000;

/**
 * SandboxClient is for backends of agents: a session for each user and conversation,
 * which is made by the first call and is there for all that follow. Sessions stay when
 * the client is closed, until their time is up.
 */
export class SandboxClient implements AsyncDisposable {
  private readonly connection: Connection;
  private readonly known = new Map<string, Sandbox>();

  constructor(options: ConnectionOptions = {}) {
    this.connection = new Connection(options);
  }

  /**
   * getOrCreateSession returns the live session of a user and a thread, or makes one. When
   * nothing happens in it for timeoutMs it ends, and its files with it, unless onEnd says otherwise, or others opened it.
   */
  async getOrCreateSession({ signal, onQueue, idempotencyKey, ...spec }: SessionOptions): Promise<SandboxInfo> {
    if (!spec.userId || !spec.threadId) throw invalid("userId", "and threadId name a session; give both");
    const open = (more: SandboxSpec) => Sandbox.openOn(this.connection, { ...more, ...spec }, { signal, onQueue, idempotencyKey });
    const sandbox = await open({ onEnd: "close" }).catch((err: unknown) => {
      const fields = err instanceof ConflictError && spec.onEnd === undefined ? err.details["fields"] : undefined;
      if (!Array.isArray(fields) || fields.join() !== "on_end") throw err;
      return open({}); // others opened it, and said how it ends
    });
    this.remember(sandbox);
    return sandbox.info;
  }

  /** execute runs a command in a session. One that has expired or was lost is opened again, unless autoRetry is false; the answer says so. */
  async execute(sessionId: string, command: Command, options: RunOptions = {}): Promise<Execution> {
    const sandbox = await this.sandbox(sessionId, options.signal);
    const result = await sandbox.commands.run(command, options);
    if (result.recreated) this.remember(sandbox); // under its new id, too
    return result;
  }

  /** uploadFile writes a file of a session: the file of this machine that is named, or content. */
  async uploadFile(sessionId: string, from: string | { content: Content }, to: string, options: TransferOptions & WriteOptions = {}): Promise<void> {
    const { files } = await this.sandbox(sessionId, options.signal);
    if (typeof from === "string") return files.upload(from, to, options as TransferOptions);
    return files.write(to, from.content, options as WriteOptions);
  }

  /** downloadFile copies a file of a session to this machine, or returns its bytes where no place is named. */
  async downloadFile(sessionId: string, from: string, to?: string, options: TransferOptions = {}): Promise<Uint8Array | undefined> {
    const { files } = await this.sandbox(sessionId, options.signal);
    if (to === undefined) return files.readBytes(from, options);
    await files.download(from, to, options);
    return undefined;
  }

  /** listFiles returns what is below a directory of a session. */
  async listFiles(sessionId: string, path = ".", options: { depth?: number } & CallOptions = {}): Promise<FileInfo[]> {
    return (await this.sandbox(sessionId, options.signal)).files.list(path, options);
  }

  /** session returns a session with all that can be done in it. */
  async session(sessionId: string, { signal }: CallOptions = {}): Promise<Sandbox> {
    return this.sandbox(sessionId, signal);
  }

  /** closeSession ends a session and its files, and reports whether it was still there. */
  async closeSession(sessionId: string, { signal }: CallOptions = {}): Promise<boolean> {
    const known = this.known.get(sessionId);
    if (!known) return Sandbox.killOn(this.connection, sessionId, signal);
    const there = await known.kill({ signal });
    for (const [id, one] of this.known) if (one === known) this.known.delete(id);
    return there;
  }

  /** close lets go of the server. Sessions stay. */
  async close(): Promise<void> {
    this.known.clear();
    this.connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async sandbox(id: string, signal?: AbortSignal): Promise<Sandbox> {
    return this.known.get(id) ?? Sandbox.connectOn(this.connection, id, signal);
  }

  /** remember keeps what opens a session again, and forgets the one that was opened first where there are many. */
  private remember(sandbox: Sandbox): void {
    this.known.set(sandbox.id, sandbox);
    if (this.known.size > maxSessions) this.known.delete(this.known.keys().next().value!);
  }
}

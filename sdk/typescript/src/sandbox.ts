import { Code } from "./code.js";
import { Commands } from "./commands.js";
import { Connection, at } from "./connection.js";
import { SessionNotFoundError } from "./errors.js";
import { Files } from "./files.js";
import {
  type Network, type SandboxInfo, type SandboxSpec, type SessionForm, type Snapshot, type SnapshotForm, type Usage, type UsageForm, sandboxInfoOf, snapshotOf, usageOf,
} from "./forms.js";
import { Handle, type OpenOptions, onlyOnce, open, session } from "./handle.js";
import type { CallOptions, ConnectionOptions, OnceOptions } from "./options.js";
import { Ports } from "./ports.js";
import { Terminals } from "./terminals.js";

/** CreateOptions say what sandbox is wanted, and of which platform. */
export interface CreateOptions extends SandboxSpec, ConnectionOptions, OpenOptions {}

/** SandboxFilter says which sandboxes are meant. */
export interface SandboxFilter {
  project?: string;
  userId?: string;
  threadId?: string;
  status?: SandboxInfo["status"];
  nodeId?: string;
  metadata?: Record<string, string>;
}

/** PageOptions name a part of a list. */
export interface PageOptions {
  /** How many at most; left out, all. */
  limit?: number | undefined;
  /** The id of the last one before. */
  after?: string | undefined;
}

/** ForkOptions name a copy. */
export interface ForkOptions extends OnceOptions {
  userId?: string;
  threadId?: string;
  metadata?: Record<string, string>;
}

/**
 * Sandbox is one isolated machine, with files that stay from one command to the next.
 * `await using` ends one that was created here, and only lets go of one that was
 * connected to.
 */
export class Sandbox implements AsyncDisposable {
  readonly commands: Commands;
  readonly files: Files;
  readonly code: Code;
  readonly terminals: Terminals;
  readonly ports: Ports;
  private alone: Connection | undefined; // nobody else has it

  private constructor(
    private readonly handle: Handle,
    private last: SandboxInfo,
    private readonly owned: boolean,
  ) {
    this.commands = new Commands(handle);
    this.files = new Files(handle);
    this.code = new Code(handle);
    this.terminals = new Terminals(this.commands);
    this.ports = new Ports(handle);
  }

  /** create makes a sandbox, or returns the live one of the same user and thread. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    const connection = new Connection(options);
    return Sandbox.on(connection, Sandbox.openOn(connection, specOf(options), options));
  }

  /** openOn is create on a connection that is there. */
  static async openOn(connection: Connection, spec: SandboxSpec, options: OpenOptions = {}): Promise<Sandbox> {
    const info = await open(connection, spec, options);
    return new Sandbox(new Handle(connection, info.id, spec), info, true);
  }

  /** connect returns a sandbox that is there, by its id. */
  static async connect(id: string, options: ConnectionOptions & CallOptions = {}): Promise<Sandbox> {
    const connection = new Connection(options);
    return Sandbox.on(connection, Sandbox.connectOn(connection, id, options.signal));
  }

  /** connectOn is connect on a connection that is there. */
  static async connectOn(connection: Connection, id: string, signal?: AbortSignal): Promise<Sandbox> {
    const info = await session(connection, { method: "GET", path: at`/api/sandboxes/${id}`, signal, safe: true });
    return new Sandbox(new Handle(connection, id), info, false);
  }

  /** on has a sandbox let go of its connection with itself, or does so where nothing comes of it. */
  private static async on(connection: Connection, making: Promise<Sandbox>): Promise<Sandbox> {
    try {
      const made = await making;
      made.alone = connection;
      return made;
    } catch (err) {
      connection.close();
      throw err;
    }
  }

  /** list yields the sandboxes that the caller has. */
  static async *list(options: SandboxFilter & PageOptions & ConnectionOptions & CallOptions = {}): AsyncGenerator<SandboxInfo, void, undefined> {
    const connection = new Connection(options);
    try {
      yield* Sandbox.listOn(connection, options);
    } finally {
      connection.close();
    }
  }

  /** listOn is list on a connection that is there. */
  static async *listOn(connection: Connection, filter: SandboxFilter & PageOptions & CallOptions = {}): AsyncGenerator<SandboxInfo, void, undefined> {
    const query = {
      project_name: filter.project, user_id: filter.userId, thread_id: filter.threadId, status: filter.status, node_id: filter.nodeId,
      label: Object.entries(filter.metadata ?? {}).map(([name, value]) => `${name}=${value}`),
    };
    for await (const one of connection.pages<SessionForm>({ method: "GET", path: "/api/sandboxes", query, signal: filter.signal }, filter)) yield sandboxInfoOf(one);
  }

  /** kill ends a sandbox by its id, and reports whether there was one. */
  static async kill(id: string, options: ConnectionOptions & CallOptions = {}): Promise<boolean> {
    const connection = new Connection(options);
    try {
      return await Sandbox.killOn(connection, id, options.signal);
    } finally {
      connection.close();
    }
  }

  /** killOn is kill on a connection that is there. */
  static async killOn(connection: Connection, id: string, signal?: AbortSignal): Promise<boolean> {
    try {
      await connection.json({ method: "DELETE", path: at`/api/sandboxes/${id}`, signal });
      return true;
    } catch (err) {
      if (err instanceof SessionNotFoundError) return false;
      throw err;
    }
  }

  /** snapshots yields the snapshots that the caller has. */
  static async *snapshots(options: { sandboxId?: string } & PageOptions & ConnectionOptions & CallOptions = {}): AsyncGenerator<Snapshot, void, undefined> {
    const connection = new Connection(options);
    try {
      const query = { session_id: options.sandboxId };
      for await (const one of connection.pages<SnapshotForm>({ method: "GET", path: "/api/snapshots", query, signal: options.signal }, options)) yield snapshotOf(one);
    } finally {
      connection.close();
    }
  }

  /** deleteSnapshot forgets a snapshot. */
  static async deleteSnapshot(id: string, options: ConnectionOptions & CallOptions = {}): Promise<void> {
    const connection = new Connection(options);
    try {
      await connection.tell({ method: "DELETE", path: at`/api/snapshots/${id}`, signal: options.signal });
    } finally {
      connection.close();
    }
  }

  /** The id of the session behind it; another one where that had expired or was lost and was opened again. */
  get id(): string {
    return this.handle.id;
  }

  /** What the server said last, when it was asked. */
  get info(): SandboxInfo {
    return this.last;
  }

  /** refresh asks what the server says now. */
  async refresh({ signal }: CallOptions = {}): Promise<SandboxInfo> {
    return this.about({ method: "GET", path: this.handle.path(""), signal, safe: true });
  }

  private async about(ask: Parameters<typeof session>[1]): Promise<SandboxInfo> {
    this.last = await session(this.handle.connection, ask);
    return this.last;
  }

  /** setTimeout moves the end of the sandbox to so long from now; left out, to its own timeout. */
  async setTimeout(timeoutMs?: number, { signal }: CallOptions = {}): Promise<SandboxInfo> {
    const json = { timeout_minutes: timeoutMs === undefined ? undefined : timeoutMs / 60_000 };
    return this.about({ method: "POST", path: this.handle.path("/renew"), json, signal, safe: true });
  }

  /** pause freezes all that runs in it. */
  async pause({ signal }: CallOptions = {}): Promise<SandboxInfo> {
    return this.about({ method: "POST", path: this.handle.path("/pause"), signal });
  }

  /** resume lets a paused sandbox go on. */
  async resume({ signal }: CallOptions = {}): Promise<SandboxInfo> {
    return this.about({ method: "POST", path: this.handle.path("/resume"), signal });
  }

  /** stop ends what runs in it and keeps its files. */
  async stop({ signal }: CallOptions = {}): Promise<SandboxInfo> {
    return this.about({ method: "POST", path: this.handle.path("/stop"), signal });
  }

  /** start brings a stopped sandbox back. */
  async start({ signal }: CallOptions = {}): Promise<SandboxInfo> {
    return this.about({ method: "POST", path: this.handle.path("/start"), signal });
  }

  /** snapshot saves its files; create with snapshot starts from them. */
  async snapshot({ name, idempotencyKey, signal }: { name?: string | undefined } & OnceOptions = {}): Promise<Snapshot> {
    return snapshotOf(await this.handle.connection.json<SnapshotForm>({
      method: "POST", path: this.handle.path("/snapshot"), json: { name }, headers: onlyOnce(idempotencyKey), safe: true, signal,
    }));
  }

  /** fork makes a second sandbox with the same files. */
  async fork({ userId, threadId, metadata, idempotencyKey, signal }: ForkOptions = {}): Promise<Sandbox> {
    const json = { user_id: userId, thread_id: threadId, metadata };
    const connection = this.handle.connection;
    const info = await session(connection, { method: "POST", path: this.handle.path("/fork"), json, headers: onlyOnce(idempotencyKey), safe: true, signal });
    return new Sandbox(new Handle(connection, info.id), info, true);
  }

  /** setNetwork replaces what it may reach. One that takes its place gets the same. */
  async setNetwork(network: Network, { signal }: CallOptions = {}): Promise<SandboxInfo> {
    const info = await this.about({ method: "PUT", path: this.handle.path("/network"), json: network, signal, safe: true });
    this.handle.change({ network });
    return info;
  }

  /** usage says what it consumes. */
  async usage({ signal }: CallOptions = {}): Promise<Usage> {
    return usageOf(await this.handle.connection.json<UsageForm>({ method: "GET", path: this.handle.path("/stats"), signal, safe: true }));
  }

  /** kill ends it, and reports whether it was still there. It is not opened again. */
  async kill({ signal }: CallOptions = {}): Promise<boolean> {
    return Sandbox.killOn(this.handle.connection, await this.handle.forget(signal), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.owned) await this.kill();
    } finally {
      this.alone?.close();
    }
  }
}

/** specOf takes what is about the sandbox from options. */
function specOf(options: CreateOptions): SandboxSpec {
  const { mode, serverUrl, apiKey, home, coveBin, ca, autoRetry, checkVersion, reconnectMs, silenceMs, signal, onQueue, idempotencyKey, ...spec } = options;
  return spec;
}

/**
 * Code and commands in sandboxes of several sizes, for MCP servers and agents. It has
 * the shape of a wrapper that others wrote around microsandbox, and works on every
 * provider.
 */
import type { CodeResult } from "./code.js";
import { CoveError, ExhaustedError, misfit } from "./errors.js";
import type { Execution } from "./execution.js";
import type { SandboxInfo, Volume } from "./forms.js";
import type { CallOptions, ConnectionOptions } from "./options.js";
import { Sandbox } from "./sandbox.js";
import { Client, type Health, type Maintenance, type Stats } from "./server.js";

/** SandboxFlavor are the sizes of sandboxes: 1, 2 and 4 CPUs, with as many GB. */
export const SandboxFlavor = { SMALL: "small", MEDIUM: "medium", LARGE: "large" } as const;

export type SandboxFlavor = (typeof SandboxFlavor)[keyof typeof SandboxFlavor];

/** What runs in a template where nothing else is said, and which one is meant by another name. */
const languages = new Map(Object.entries({ python: "python", data: "python", node: "node", nodejs: "node", javascript: "node", typescript: "typescript", bash: "bash" }));
const templates = new Map(Object.entries({ nodejs: "node", javascript: "node", typescript: "node", bash: "base" }));

/** WrapperSettings are what a WrapperConfig is made of. */
export interface WrapperSettings {
  /** Left out, as COVE_URL says, or this machine. */
  serverUrl?: string | undefined;
  apiKey?: string | undefined;
  /** Of this wrapper; 0 leaves the bound to the server. */
  maxConcurrentSessions?: number | undefined;
  /** After so long without activity a session ends. Left out, half an hour. */
  sessionTimeoutMs?: number | undefined;
  defaultFlavor?: SandboxFlavor | undefined;
  /** Such as /host/data:/sandbox/data, with :ro for one that is only read; from the server's list. */
  sharedVolumeMappings?: string[] | undefined;
  /** For calls that name no timeout; left out, the server's own bound. */
  executionTimeoutMs?: number | undefined;
  /** Whether code and commands that fail are errors. Left out, they are results. */
  throwOnFailure?: boolean | undefined;
}

/** WrapperConfig is how a wrapper works. Values that do not fit are refused when it is made. */
export class WrapperConfig {
  serverUrl: string | undefined;
  maxConcurrentSessions: number;
  sessionTimeoutMs: number;
  defaultFlavor: SandboxFlavor;
  sharedVolumeMappings: string[];
  executionTimeoutMs: number | undefined;
  throwOnFailure: boolean;
  readonly #apiKey: string | undefined; // shown by nothing that prints or serializes

  constructor(s: WrapperSettings = {}) {
    this.serverUrl = s.serverUrl;
    this.#apiKey = s.apiKey;
    this.maxConcurrentSessions = s.maxConcurrentSessions ?? 0;
    this.sessionTimeoutMs = s.sessionTimeoutMs ?? 1_800_000;
    this.defaultFlavor = flavorOf(s.defaultFlavor ?? SandboxFlavor.SMALL);
    this.sharedVolumeMappings = [...(s.sharedVolumeMappings ?? [])];
    this.executionTimeoutMs = s.executionTimeoutMs;
    this.throwOnFailure = s.throwOnFailure ?? false;
    if (!(this.maxConcurrentSessions >= 0)) throw misfit("maxConcurrentSessions", "must not be below 0; 0 leaves the bound to the server");
    if (!(this.sessionTimeoutMs > 0)) throw misfit("sessionTimeoutMs", "must be above 0");
  }

  get apiKey(): string | undefined {
    return this.#apiKey;
  }

  /** fromEnv reads the variables MSB_…, whose times are in seconds. */
  static fromEnv(env: NodeJS.ProcessEnv = process.env): WrapperConfig {
    return new WrapperConfig({
      serverUrl: env["MSB_SERVER_URL"] || undefined,
      apiKey: env["MSB_API_KEY"] || undefined,
      maxConcurrentSessions: numberIn(env, "MSB_MAX_SESSIONS"),
      sessionTimeoutMs: millis(numberIn(env, "MSB_SESSION_TIMEOUT")),
      defaultFlavor: (env["MSB_DEFAULT_FLAVOR"] || undefined) as SandboxFlavor | undefined,
      sharedVolumeMappings: mappingsIn(env["MSB_SHARED_VOLUME_PATH"] ?? ""),
      executionTimeoutMs: millis(numberIn(env, "MSB_EXECUTION_TIMEOUT")) || undefined,
    });
  }
}

const millis = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000);

function numberIn(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw misfit(name, `${JSON.stringify(text)} is no number`);
  return value;
}

function mappingsIn(text: string): string[] {
  if (text.trim() === "") return [];
  let found: unknown;
  try {
    found = text.trimStart().startsWith("[") ? JSON.parse(text) : text.split(",");
  } catch {
    // It is told below.
  }
  if (!Array.isArray(found) || found.some((one) => typeof one !== "string")) throw misfit("MSB_SHARED_VOLUME_PATH", 'is no list of mappings; write ["/host/path:/path/inside"]');
  return (found as string[]).map((one) => one.trim());
}

function flavorOf(name: string): SandboxFlavor {
  const known = Object.values(SandboxFlavor).find((one) => one === name);
  if (!known) throw misfit("flavor", `${JSON.stringify(name)} is no size; use small, medium or large`);
  return known;
}

/** volumeOf reads a mapping. One of a wrapper can be written to where the server's own list lets it. */
function volumeOf(mapping: string): Volume {
  const [source, target, how, ...more] = mapping.split(":");
  if (!source || !target || more.length > 0 || !["ro", "rw", undefined].includes(how)) {
    throw misfit("sharedVolumeMappings", `${JSON.stringify(mapping)} is not source:target, source:target:ro or source:target:rw`);
  }
  return how === "ro" ? { source, target } : { source, target, write: true };
}

/** ExecuteOptions say where something runs. */
export interface ExecuteOptions extends CallOptions {
  /** Left out, python. */
  template?: string;
  /** A session that there is: the sandboxId of a result. Left out, a new one, which stays until it is stopped. */
  sessionId?: string;
  flavor?: SandboxFlavor;
  timeoutMs?: number;
}

/** MicrosandboxWrapper runs code and commands; it makes sessions, and ends those that it made when it is stopped. */
export class MicrosandboxWrapper implements AsyncDisposable {
  private readonly client: Client;
  private readonly made = new Map<string, Sandbox>();
  private opening = 0; // sessions that have been asked for, and count

  /** options say more about the connection, such as ca; what config says goes before. */
  constructor(readonly config: WrapperConfig = WrapperConfig.fromEnv(), options: ConnectionOptions = {}) {
    const { serverUrl, apiKey } = config;
    this.client = new Client({ ...options, ...(serverUrl === undefined ? {} : { serverUrl }), ...(apiKey === undefined ? {} : { apiKey }) });
  }

  /** start finds out now whether the server can be reached. */
  async start(options: CallOptions = {}): Promise<this> {
    await this.health(options);
    return this;
  }

  /**
   * stop ends the sessions that this wrapper made, and lets go of the server. One that
   * cannot be ended keeps no other from that; why is thrown at the end.
   */
  async stop(): Promise<void> {
    let failed: { why: unknown } | undefined;
    for (const id of this.made.keys()) {
      await this.stopSession(id).catch((why: unknown) => (failed ??= { why }));
    }
    await this.client.close();
    if (failed) throw failed.why;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** executeCode runs code in a session, or in a new one: the result has its sandboxId. */
  async executeCode(code: string, options: ExecuteOptions & { language?: string } = {}): Promise<CodeResult> {
    const template = options.template ?? "python";
    const language = options.language ?? languages.get(template) ?? template;
    return this.run(options, (sandbox, bounds) => sandbox.code.run(code, { language, ...bounds }));
  }

  /** executeCommand runs a line for the shell, or with args a program and its words. */
  async executeCommand(command: string, options: ExecuteOptions & { args?: string[] } = {}): Promise<Execution> {
    const words = options.args === undefined ? command : [command, ...options.args];
    return this.run(options, (sandbox, bounds) => sandbox.commands.run(words, bounds));
  }

  /** getSessions returns the sessions of this caller, or the one that is named. */
  async getSessions(sessionId?: string, { signal }: CallOptions = {}): Promise<SandboxInfo[]> {
    if (sessionId !== undefined) return [(await Sandbox.connectOn(this.client.connection, sessionId, signal)).info];
    const all: SandboxInfo[] = [];
    for await (const one of Sandbox.listOn(this.client.connection, { signal })) all.push(one);
    return all;
  }

  /** stopSession ends a session, and reports whether it was still there. */
  async stopSession(sessionId: string, { signal }: CallOptions = {}): Promise<boolean> {
    const known = this.made.get(sessionId);
    const there = known ? await known.kill({ signal }) : await Sandbox.killOn(this.client.connection, sessionId, signal);
    this.made.delete(sessionId);
    return there;
  }

  /** health says how the server is. */
  async health(options: CallOptions = {}): Promise<Health> {
    return this.client.health(options);
  }

  /** getResourceStats returns the platform in numbers. */
  async getResourceStats(options: CallOptions = {}): Promise<Stats> {
    return this.client.stats(options);
  }

  /** getVolumeMappings returns the paths of the host that sessions can have. */
  async getVolumeMappings(options: CallOptions = {}): Promise<Volume[]> {
    return this.client.volumes(options);
  }

  /** pauseBackgroundTasks holds expiry, cleaning and the rest. */
  async pauseBackgroundTasks(options: CallOptions = {}): Promise<Maintenance> {
    return this.client.maintenance("pause", options);
  }

  /** resumeBackgroundTasks lets them go on. */
  async resumeBackgroundTasks(options: CallOptions = {}): Promise<Maintenance> {
    return this.client.maintenance("resume", options);
  }

  /** restartBackgroundTasks starts them over. */
  async restartBackgroundTasks(options: CallOptions = {}): Promise<Maintenance> {
    return this.client.maintenance("restart", options);
  }

  /** getBackgroundTaskStatus says how they are. */
  async getBackgroundTaskStatus(options: CallOptions = {}): Promise<Maintenance> {
    return this.client.maintenance(undefined, options);
  }

  /** cleanupOrphanSandboxes removes sandboxes that belong to no session, and returns how many went. */
  async cleanupOrphanSandboxes(options: CallOptions = {}): Promise<number> {
    return (await this.client.maintenance("cleanup", options)).orphansRemoved;
  }

  /**
   * run does something in a session. One that was made for a call without a result goes
   * with it: nobody hears of it.
   */
  private async run<X extends Execution>(options: ExecuteOptions, call: (sandbox: Sandbox, bounds: Bounds) => Promise<X>): Promise<X> {
    const { sessionId, signal } = options;
    const timeoutMs = options.timeoutMs ?? this.config.executionTimeoutMs;
    const sandbox = sessionId === undefined ? await this.open(options) : (this.made.get(sessionId) ?? (await Sandbox.connectOn(this.client.connection, sessionId, signal)));
    const was = sandbox.id;
    let result: X;
    try {
      result = await call(sandbox, { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    } catch (err) {
      this.keep(sandbox, was);
      // The first error is the one to tell; stop tries once more.
      if (sessionId === undefined) await this.stopSession(sandbox.id).catch((other: unknown) => expected(other));
      throw err;
    }
    this.keep(sandbox, was);
    return this.config.throwOnFailure ? result.check() : result;
  }

  /** open makes a session, if this wrapper may have one more. */
  private async open(options: ExecuteOptions): Promise<Sandbox> {
    const most = this.config.maxConcurrentSessions;
    const flavor = flavorOf(options.flavor ?? this.config.defaultFlavor);
    if (most > 0 && this.made.size + this.opening >= most) {
      throw new ExhaustedError(`this wrapper has ${most} sessions, as many as it may`, {
        reason: "capacity", remedy: "name sessionId to use one of them, stop one, or raise maxConcurrentSessions",
      });
    }
    const template = options.template ?? "python";
    this.opening++; // before anybody else gets a turn
    try {
      const spec = { template: templates.get(template) ?? template, flavor, timeoutMs: this.config.sessionTimeoutMs, volumes: await this.volumes(options) };
      const sandbox = await Sandbox.openOn(this.client.connection, spec, { signal: options.signal });
      this.made.set(sandbox.id, sandbox);
      return sandbox;
    } finally {
      this.opening--;
    }
  }

  /** volumes are the mappings that must be asked for: those that the server gives to all are there already. */
  private async volumes({ signal }: CallOptions): Promise<Volume[]> {
    const asked = this.config.sharedVolumeMappings.map(volumeOf);
    if (asked.length === 0) return [];
    const given = await this.client.volumes({ signal });
    return asked.filter((one) => !given.some((v) => v.source === one.source && v.target === one.target));
  }

  /** keep knows a session by its new id, if it was opened again. */
  private keep(sandbox: Sandbox, was: string): void {
    if (sandbox.id === was || this.made.get(was) !== sandbox) return;
    this.made.delete(was);
    this.made.set(sandbox.id, sandbox);
  }
}

interface Bounds extends CallOptions {
  timeoutMs?: number;
}

/** expected lets pass what the platform could not do. */
function expected(err: unknown): void {
  if (!(err instanceof CoveError)) throw err;
}

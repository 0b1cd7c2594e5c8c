import { Connection, at } from "./connection.js";
import { invalid } from "./errors.js";
import { type Volume, seconds } from "./forms.js";
import { type Node, type NodeForm, nodeOf } from "./nodes.js";
import type { CallOptions, ConnectionOptions } from "./options.js";

/** Health is how a server is. */
export interface Health {
  /** healthy, or what is the matter. */
  status: string;
  message: string;
  version: string;
  /** Of a node of a cluster. */
  nodeId: string;
}

interface HealthForm {
  status: string;
  message?: string;
  version?: string;
  node_id?: string;
}

function healthOf(f: HealthForm): Health {
  return {
    status: f.status, message: f.message ?? "", version: f.version ?? "", nodeId: f.node_id ?? "",
  };
}

/** Stats are the platform in numbers. */
export interface Stats {
  activeSessions: number;
  maxSessions: number;
  sessionsByFlavor: Record<string, number>;
  sessionsByStatus: Record<string, number>;
  /** Promised to sessions. */
  totalMemoryMb: number;
  maxMemoryMb: number;
  totalCpus: number;
  uptimeSeconds: number;
  poolSize: number;
  poolAvailable: number;
  /** Callers that wait for room. */
  queued: number;
  sessionsOpened: number;
  sessionsReused: number;
  sessionReuseRate: number;
  executions: number;
  provider: string;
  nodeId: string;
  byProvider: Record<string, ProviderShare>;
}

/** ProviderShare is what the sessions of one provider were promised, and use as far as they were measured lately. */
export interface ProviderShare {
  /** Those with a sandbox. */
  activeSessions: number;
  sessionsByStatus: Record<string, number>;
  /** Promised. */
  totalMemoryMb: number;
  /** Promised. */
  totalCpus: number;
  usedMemoryMb: number;
  /** CPU time in a second. */
  usedCpus: number;
  /** How many were measured; it is done while somebody asks. */
  measuredSessions: number;
  measuredAt: Date | undefined;
}

interface ProviderShareForm {
  active_sessions: number;
  sessions_by_status: Record<string, number>;
  total_memory_mb: number;
  total_cpus: number;
  used_memory_mb: number;
  used_cpus: number;
  measured_sessions: number;
  measured_at?: string;
}

interface StatsForm {
  active_sessions: number;
  max_sessions: number;
  sessions_by_flavor: Record<string, number>;
  sessions_by_status: Record<string, number>;
  total_memory_mb: number;
  max_memory_mb: number;
  total_cpus: number;
  uptime_seconds: number;
  pool_size: number;
  pool_available: number;
  queued: number;
  sessions_opened: number;
  sessions_reused: number;
  session_reuse_rate: number;
  executions: number;
  provider: string;
  node_id: string;
  by_provider: Record<string, ProviderShareForm>;
}

function shareOf(f: ProviderShareForm): ProviderShare {
  return {
    activeSessions: f.active_sessions, sessionsByStatus: f.sessions_by_status ?? {}, totalMemoryMb: f.total_memory_mb, totalCpus: f.total_cpus, usedMemoryMb: f.used_memory_mb, usedCpus: f.used_cpus,
    measuredSessions: f.measured_sessions, measuredAt: f.measured_at === undefined ? undefined : new Date(f.measured_at),
  };
}

function statsOf(f: StatsForm): Stats {
  return {
    activeSessions: f.active_sessions, maxSessions: f.max_sessions, sessionsByFlavor: f.sessions_by_flavor ?? {}, sessionsByStatus: f.sessions_by_status ?? {},
    totalMemoryMb: f.total_memory_mb, maxMemoryMb: f.max_memory_mb, totalCpus: f.total_cpus, uptimeSeconds: f.uptime_seconds, poolSize: f.pool_size,
    poolAvailable: f.pool_available, queued: f.queued, sessionsOpened: f.sessions_opened, sessionsReused: f.sessions_reused, sessionReuseRate: f.session_reuse_rate,
    executions: f.executions, provider: f.provider, nodeId: f.node_id,
    byProvider: Object.fromEntries(Object.entries(f.by_provider ?? {}).map(([name, share]) => [name, shareOf(share)])),
  };
}

/** Task is one of the server's background tasks, such as expiry or orphans. */
export interface Task {
  state: "waiting" | "running" | "paused" | "stopped";
  intervalSeconds: number;
  runs: number;
  /** Things it has dealt with, in all, and in its last run. */
  done: number;
  lastDone: number;
  lastRun: Date | undefined;
  lastError: string | undefined;
}

/** Maintenance is how the background tasks are. */
export interface Maintenance {
  overallStatus: "running" | "paused" | "partly_paused" | "failing";
  tasks: Record<string, Task>;
  /** After a cleanup: how many sandboxes went that belonged to no session. */
  orphansRemoved: number;
}

interface TaskForm {
  state: Task["state"];
  interval_seconds: number;
  runs: number;
  done: number;
  last_done: number;
  last_run?: string;
  last_error?: string;
}

interface MaintenanceForm {
  overall_status: Maintenance["overallStatus"];
  tasks: Record<string, TaskForm>;
  orphans_removed?: number | null;
}

function maintenanceOf(f: MaintenanceForm): Maintenance {
  const tasks = Object.entries(f.tasks ?? {}).map(([name, task]) => [name, taskOf(task)] as const);
  return { overallStatus: f.overall_status, tasks: Object.fromEntries(tasks), orphansRemoved: f.orphans_removed ?? 0 };
}

function taskOf(f: TaskForm): Task {
  return {
    state: f.state, intervalSeconds: f.interval_seconds, runs: f.runs, done: f.done, lastDone: f.last_done,
    lastRun: f.last_run === undefined ? undefined : new Date(f.last_run), lastError: f.last_error,
  };
}

/** MaintenanceVerb is what can be done with background tasks. */
export type MaintenanceVerb = "pause" | "resume" | "restart" | "cleanup";

const verbs: readonly string[] = ["pause", "resume", "restart", "cleanup"];

/** PythonAnswer is what came of code for a model, as it travels. */
export interface PythonAnswer {
  result: string;
  stdout: string;
  stderr: string;
  exit_code: number;
  duration: number;
  meta: { runtime: string; truncated: boolean; timed_out: boolean; blocked_imports: string[] | null; resource_limits: Record<string, unknown> };
}

/**
 * Client is a server as one caller sees it: how it is, what it has, and its background
 * tasks, which need a key that may see and do that. What runs in sandboxes is Sandbox's.
 */
export class Client implements AsyncDisposable {
  /** Sandbox.openOn and its like use the same connections. */
  readonly connection: Connection;

  constructor(options: ConnectionOptions = {}) {
    this.connection = new Connection(options);
  }

  /** health says how the server is. It needs no key. */
  async health({ signal }: CallOptions = {}): Promise<Health> {
    return healthOf(await this.connection.json<HealthForm>({ method: "GET", path: "/health", signal, safe: true }));
  }

  /** stats returns the platform in numbers. */
  async stats({ signal }: CallOptions = {}): Promise<Stats> {
    return statsOf(await this.connection.json<StatsForm>({ method: "GET", path: "/api/stats", signal, safe: true }));
  }

  /** volumes returns the paths of the host that sandboxes can have. */
  async volumes({ signal }: CallOptions = {}): Promise<Volume[]> {
    const { items } = await this.connection.json<{ items: Volume[] | null }>({ method: "GET", path: "/api/volumes", signal, safe: true });
    return items ?? [];
  }

  /** nodes returns the servers of the cluster; one that is alone is the only one. */
  async nodes({ signal }: CallOptions = {}): Promise<Node[]> {
    const { items } = await this.connection.json<{ items: NodeForm[] | null }>({ method: "GET", path: "/api/nodes", signal, safe: true });
    return (items ?? []).map(nodeOf);
  }

  /** drainNode has a node take no new sandboxes and give away those that can move. nodes says how far it is: activeSessions are those that it still has. */
  async drainNode(node: string, { signal }: CallOptions = {}): Promise<Node> {
    return nodeOf(await this.connection.json<NodeForm>({ method: "POST", path: at`/api/nodes/${node}/drain`, signal }));
  }

  /** uncordonNode lets a node take new sandboxes again. */
  async uncordonNode(node: string, { signal }: CallOptions = {}): Promise<Node> {
    return nodeOf(await this.connection.json<NodeForm>({ method: "POST", path: at`/api/nodes/${node}/uncordon`, signal }));
  }

  /** maintenance shows the background tasks, or does something with all of them, or with one, first. */
  async maintenance(verb?: MaintenanceVerb, { task, signal }: { task?: string } & CallOptions = {}): Promise<Maintenance> {
    if (verb !== undefined && !verbs.includes(verb)) throw invalid("verb", `${JSON.stringify(verb)} is none of ${verbs.join(", ")}`);
    const ask = verb === undefined ? { method: "GET", path: "/api/maintenance", safe: true } : { method: "POST", path: `/api/maintenance/${verb}`, query: { task } };
    return maintenanceOf(await this.connection.json<MaintenanceForm>({ ...ask, signal }));
  }

  /** runPython runs Python code for a model, in a sandbox of its own or in one that is named: the answer has a text, whatever the code does. */
  async runPython(code: string, options: { timeoutMs?: number | undefined; sandboxId?: string | undefined; template?: string | undefined } & CallOptions = {}): Promise<PythonAnswer> {
    if (typeof code !== "string") throw invalid("code", "must be a text");
    const json = { code, timeout: seconds(options.timeoutMs), session_id: options.sandboxId, template: options.template };
    return this.connection.json<PythonAnswer>({ method: "POST", path: "/api/tools/run_python_code", json, signal: options.signal });
  }

  /** close lets go of the server. */
  async close(): Promise<void> {
    this.connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

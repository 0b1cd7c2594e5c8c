/**
 * The forms that travel, and what callers see of them. Names on the wire have
 * underscores; times are text there and Date here; bytes that are not UTF-8 come in
 * base64.
 */
import { Execution, type ExecutionForm, executionOf } from "./execution.js";

/** Network is what a sandbox may reach. */
export interface Network {
  mode?: "none" | "allow" | "open";
  /** Names that may be reached in mode allow. */
  allow?: string[];
  /** Names of the operator's credentials. */
  secrets?: string[];
}

/** Volume is a folder that outlives sandboxes: a path of the host, from the operator's list, or one that has a name. */
export interface Volume {
  source?: string;
  name?: string;
  target: string;
  write?: boolean;
}

/** SandboxSpec is what can be asked of a sandbox. What is left out, the server decides. */
export interface SandboxSpec {
  /** Which provider serves it, such as local. */
  provider?: string;
  /** What is installed inside. */
  template?: string;
  /** A named size, such as small. */
  flavor?: string;
  project?: string;
  /** Whose it is. The same user and thread get the same sandbox again. */
  userId?: string;
  /** Which conversation it belongs to. */
  threadId?: string;
  /** Enforced or refused, such as 1g, or in bytes. */
  memory?: string | number;
  cpus?: number;
  pids?: number;
  /** onEnd happens after so long without activity. */
  timeoutMs?: number;
  /** It ends so long after it was made, whatever happens in it. */
  lifetimeMs?: number;
  /** Activity does not prolong timeoutMs. */
  fixedEnd?: boolean;
  /** What happens when its time is over. Left out, stop: it keeps its files, and is started again when it is used. */
  onEnd?: "close" | "pause" | "stop";
  /** The next action inside starts it also where its caller stopped or paused it, or its fixed end did. */
  wake?: boolean;
  env?: Record<string, string>;
  /** Labels to find it by. */
  metadata?: Record<string, string>;
  network?: Network;
  volumes?: Volume[];
  /** moves: the files of a stopped sandbox are kept where every node finds them, so that another one can start it. */
  workspace?: { kind?: "memory" | "disk"; sizeMb?: number; files?: number; moves?: boolean };
  /** The command policy, such as agent-bash. */
  policy?: string;
  /** The boundary below which it is not made. */
  isolation?: string;
  /** Ports that it will listen on. */
  ports?: number[];
  /** Its ports need no link at addresses of their own. */
  publicPorts?: boolean;
  /** Start with the files of this snapshot. */
  snapshot?: string;
  /** Wait for room or be refused when there is none. */
  onFull?: "wait" | "reject";
}

const minutes = (ms: number | undefined) => (ms === undefined ? undefined : ms / 60_000);

/** seconds are milliseconds as they travel. */
export const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);

/** specForm is a spec as it travels. */
export function specForm(s: SandboxSpec): Record<string, unknown> {
  return {
    provider: s.provider, template: s.template, flavor: s.flavor, project_name: s.project, user_id: s.userId, thread_id: s.threadId,
    memory_limit: s.memory, cpu_limit: s.cpus, pids_limit: s.pids, timeout_minutes: minutes(s.timeoutMs), lifetime_minutes: minutes(s.lifetimeMs),
    fixed_end: s.fixedEnd, on_end: s.onEnd, wake: s.wake, env: s.env, metadata: s.metadata, network: s.network, volumes: s.volumes,
    workspace: s.workspace && { kind: s.workspace.kind, size_mb: s.workspace.sizeMb, files: s.workspace.files, moves: s.workspace.moves },
    policy: s.policy, require: s.isolation === undefined ? undefined : { isolation: s.isolation },
    ports: s.ports, public_ports: s.publicPorts, snapshot: s.snapshot, on_full: s.onFull,
  };
}

/** SandboxInfo is what the server says about a sandbox. */
export interface SandboxInfo {
  id: string;
  status: "creating" | "running" | "paused" | "stopped" | "error" | "ended";
  /** Why it is stopped, paused, in error or has ended. */
  cause: string | undefined;
  /** Something runs in it now. */
  busy: boolean;
  /** This very request made it. */
  created: boolean;
  provider: string;
  /** The provider that was to serve it and was not ready. */
  insteadOf: string | undefined;
  /** What really holds, by kind. */
  isolation: Record<string, string>;
  workspaceDir: string;
  project: string | undefined;
  userId: string | undefined;
  threadId: string | undefined;
  template: string | undefined;
  flavor: string | undefined;
  metadata: Record<string, string>;
  network: Network;
  createdAt: Date;
  lastActivity: Date;
  expiresAt: Date;
  endedAt: Date | undefined;
  tenant: string;
  nodeId: string;
}

export interface SessionForm {
  session_id: string;
  status: SandboxInfo["status"];
  cause?: string;
  busy: boolean;
  created: boolean;
  provider: string;
  instead_of?: string;
  isolation: Record<string, string>;
  workspace_dir: string;
  project_name?: string;
  user_id?: string;
  thread_id?: string;
  template?: string;
  flavor?: string;
  created_at: string;
  last_activity: string;
  expires_at: string;
  ended_at?: string;
  tenant: string;
  node_id: string;
  spec: { metadata?: Record<string, string>; network?: Network };
}

export function sandboxInfoOf(f: SessionForm): SandboxInfo {
  return {
    id: f.session_id, status: f.status, cause: f.cause, busy: f.busy, created: f.created, provider: f.provider, insteadOf: f.instead_of,
    isolation: f.isolation ?? {}, workspaceDir: f.workspace_dir, project: f.project_name, userId: f.user_id, threadId: f.thread_id,
    template: f.template, flavor: f.flavor, metadata: f.spec?.metadata ?? {}, network: f.spec?.network ?? {},
    createdAt: new Date(f.created_at), lastActivity: new Date(f.last_activity), expiresAt: new Date(f.expires_at),
    endedAt: f.ended_at === undefined ? undefined : new Date(f.ended_at), tenant: f.tenant, nodeId: f.node_id,
  };
}

/** ProcessInfo is what the server says about a background program. */
export interface ProcessInfo {
  /** 0 for one that policy did not let begin. */
  pid: number;
  command: string;
  cwd: string | undefined;
  tag: string | undefined;
  tty: boolean;
  running: boolean;
  startedAt: Date;
  outputId: string | undefined;
  /** How it ended, where it has. */
  result: Execution | undefined;
}

export interface ProcessForm {
  pid?: number;
  command: string;
  workdir?: string;
  tag?: string;
  tty?: boolean;
  running: boolean;
  started_at: string;
  output_id?: string;
  result?: ExecutionForm;
}

export function processInfoOf(f: ProcessForm): ProcessInfo {
  return {
    pid: f.pid ?? 0, command: f.command, cwd: f.workdir, tag: f.tag, tty: f.tty ?? false, running: f.running,
    startedAt: new Date(f.started_at), outputId: f.output_id, result: f.result && executionOf(f.result),
  };
}

/** FileInfo is what the server says about a file. */
export interface FileInfo {
  /** Where it is; pathBytes has it where it is not UTF-8. */
  path: string;
  pathBytes: Uint8Array | undefined;
  type: "file" | "dir" | "symlink" | "pipe" | "socket" | "device" | "char_device" | "other";
  size: number;
  /** Permissions. */
  mode: number;
  modified: Date;
  /** Where a symbolic link points. */
  link: string | undefined;
  meta: Record<string, string>;
}

export interface FileForm {
  path?: string;
  path_base64?: string;
  type: FileInfo["type"];
  size: number;
  mode: string;
  modified: string;
  link?: string;
  link_base64?: string;
  meta?: Record<string, string>;
}

export function fileInfoOf(f: FileForm): FileInfo {
  const raw = f.path_base64 === undefined ? undefined : Buffer.from(f.path_base64, "base64");
  return {
    path: f.path ?? raw?.toString("utf8") ?? "", pathBytes: raw, type: f.type, size: f.size, mode: Number.parseInt(f.mode, 8), modified: new Date(f.modified),
    link: f.link ?? (f.link_base64 === undefined ? undefined : Buffer.from(f.link_base64, "base64").toString("utf8")), meta: f.meta ?? {},
  };
}

/** FileChange is one thing that happened below a directory. */
export interface FileChange {
  /** overflow: so much happened that some of it was not told. */
  kind: "created" | "modified" | "removed" | "overflow";
  path: string;
}

/** Link is an address that works without a key, for a while. */
export interface Link {
  url: string;
  expiresAt: Date;
}

export function linkOf(f: { url: string; expires_at: string }): Link {
  return { url: f.url, expiresAt: new Date(f.expires_at) };
}

/** Snapshot is the files of a sandbox as they were. */
export interface Snapshot {
  id: string;
  sandboxId: string;
  name: string | undefined;
  provider: string;
  template: string;
  size: number;
  /** Which node has the files, where there are several. */
  nodeId: string | undefined;
  createdAt: Date;
}

export interface SnapshotForm {
  snapshot_id: string;
  session_id: string;
  name?: string;
  provider: string;
  template: string;
  size_bytes: number;
  node_id?: string;
  created_at: string;
}

export function snapshotOf(f: SnapshotForm): Snapshot {
  return {
    id: f.snapshot_id, sandboxId: f.session_id, name: f.name, provider: f.provider, template: f.template, size: f.size_bytes, nodeId: f.node_id,
    createdAt: new Date(f.created_at),
  };
}

/** Usage is what a sandbox consumes now. */
export interface Usage {
  cpuSeconds: number;
  memoryBytes: number;
  peakMemoryBytes: number;
  pids: number;
  diskBytes: number;
  files: number;
}

export interface UsageForm {
  cpu_seconds: number;
  memory_bytes: number;
  peak_memory_bytes: number;
  pids: number;
  disk_bytes: number;
  files: number;
}

export function usageOf(f: UsageForm): Usage {
  return {
    cpuSeconds: f.cpu_seconds, memoryBytes: f.memory_bytes, peakMemoryBytes: f.peak_memory_bytes, pids: f.pids, diskBytes: f.disk_bytes, files: f.files,
  };
}

// The JSON that travels, as docs/openapi.json describes it: what the console reads
// of it.

export type Level = "hard" | "soft" | "none";

export interface Isolation {
  boundary: string;
  network: Level;
  memory: Level;
  cpu: Level;
  pids: Level;
  policy: Level;
  disk: Level;
  files: Level;
}

export interface Network {
  mode?: "none" | "allow" | "open";
  allow?: string[];
  secrets?: string[];
}

export interface Spec {
  provider?: string;
  template?: string;
  flavor?: string;
  project_name?: string;
  user_id?: string;
  thread_id?: string;
  memory_limit?: string | number;
  cpu_limit?: string | number;
  pids_limit?: number;
  timeout_minutes?: number;
  lifetime_minutes?: number;
  network?: Network;
  workspace?: { kind?: string; size_mb?: number; files?: number };
  policy?: string;
  metadata?: Record<string, string>;
  ports?: number[];
}

export interface Session {
  session_id: string;
  status: "creating" | "running" | "paused" | "stopped" | "error" | "ended";
  cause?: string;
  busy: boolean;
  provider: string;
  instead_of?: string;
  isolation: Isolation;
  project_name?: string;
  user_id?: string;
  thread_id?: string;
  template?: string;
  flavor?: string;
  resource_limits: { memory_limit?: string | number; cpu_limit?: string | number; pids_limit?: number; workspace?: { kind?: string; size_mb?: number; files?: number } };
  created_at: string;
  last_activity: string;
  expires_at: string;
  ended_at?: string;
  tenant: string;
  owner: string;
  node_id: string;
  trial?: string;
  spec: Spec;
  floors?: string[];
}

export interface Usage {
  cpu_seconds: number;
  memory_bytes: number;
  peak_memory_bytes: number;
  pids: number;
  disk_bytes: number;
  files: number;
}

export interface Refusal {
  rule: string;
  reason: string;
  word?: string;
  line?: number;
  column?: number;
}

export interface Execution {
  exit_code: number;
  status: "success" | "error" | "timeout" | "blocked";
  outcome: string;
  signal?: string;
  stdout?: string;
  stdout_base64?: string;
  stderr?: string;
  stderr_base64?: string;
  stdout_bytes: number;
  stderr_bytes: number;
  truncated: boolean;
  execution_time_ms: number;
  peak_memory_bytes?: number;
  refusal?: Refusal;
}

export interface CodeResult extends Execution {
  success: boolean;
  results: Record<string, string>[] | null;
  error: { name: string; value: string; traceback?: string; line?: number } | null;
  execution_count?: number;
  context_fresh: boolean;
  results_truncated?: boolean;
}

export interface FileEntry {
  path?: string;
  path_base64?: string;
  type: string;
  size: number;
  mode: string;
  modified: string;
  link?: string;
}

export interface Process {
  pid?: number;
  command: string;
  tag?: string;
  tty?: boolean;
  running: boolean;
  started_at: string;
  result?: Execution;
}

export interface Connection {
  number: number;
  at: string;
  protocol: string;
  host: string;
  port?: number;
  address?: string;
  allowed: boolean;
  why?: string;
  sent_bytes: number;
  received_bytes: number;
  took_ms: number;
}

export interface Trial {
  open: boolean;
  committed: boolean;
  created: number;
  modified: number;
  removed: number;
  bytes: number;
  truncated: boolean;
  changes: { kind: string; path?: string; path_base64?: string; file?: FileEntry }[] | null;
  execution?: Execution;
}

export interface JournalEvent {
  seq: number;
  time: string;
  node_id?: string;
  kind: string;
  phase: "intent" | "outcome" | "note";
  intent?: number;
  principal?: string;
  tenant?: string;
  session_id?: string;
  provider?: string;
  effect?: string;
  rule?: string;
  code?: string;
  outcome?: string;
  wall_ms?: number;
  data?: unknown;
}

export interface Link {
  url: string;
  expires_at: string;
}

export interface Template {
  name: string;
  kind?: string;
  source?: string;
  size: number;
  ready: boolean;
  why?: string;
  remedy?: string;
  providers: string[];
}

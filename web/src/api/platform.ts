// The forms of what an operator looks at: numbers, tasks, providers, keys, data.

import type { Isolation, Refusal, Spec } from "./forms";

export interface Who {
  name: string;
  key_name?: string;
  tenant: string;
  scopes: string[];
}

export interface Stats {
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
  active_runs: number;
  provider: string;
  node_id: string;
  by_provider: Record<string, Share>;
}

// Share is what the sandboxes of one provider were promised, and use as far as they
// were measured lately.
export interface Share {
  active_sessions: number;
  sessions_by_status: Record<string, number>;
  total_memory_mb: number; // promised
  total_cpus: number; // promised
  used_memory_mb: number;
  used_cpus: number;
  measured_sessions: number;
  measured_at?: string;
}

export interface Task {
  state: "waiting" | "running" | "paused" | "stopped";
  interval_seconds: number;
  runs: number;
  done: number;
  last_done: number;
  last_run?: string;
  last_error?: string;
}

export interface Maintenance {
  overall_status: string;
  tasks: Record<string, Task>;
  orphans_removed?: number;
}

export interface ProviderReport {
  name: string;
  default: boolean;
  fallback?: number;
  capabilities: {
    ready: boolean;
    why?: string;
    remedy?: string;
    isolation: Isolation;
    powers: string[] | null;
    notes?: string[];
  };
}

export interface Finding {
  attack: string;
  try: string;
  via: string;
  held: boolean;
  by?: string;
  detail?: string;
  skipped?: string;
}

export interface Verdict {
  attempts: number;
  held: number;
  got_through: number;
  not_tried: number;
}

export interface Key {
  key_id: string;
  name: string;
  tenant: string;
  scopes: string[];
  limits: { rate_per_second?: number; concurrent?: number; sessions?: number };
  defaults?: Spec;
  created_at: string;
  expires_at?: string;
  revoked_at?: string;
}

export interface NewKey extends Key {
  secret: string;
}

export interface Amounts {
  sessions: number;
  memory_mb: number;
  cpu_seconds: number;
  disk_mb?: number;
}

export interface Tenant {
  name: string;
  quota: Amounts;
  usage: Amounts;
  disk: {
    snapshots_bytes: number;
    archives_bytes: number;
    output_bytes: number;
    artifacts_bytes: number;
    workspaces_bytes: number;
    bound_bytes: number;
  };
  consumed: {
    session_seconds: number;
    memory_gb_seconds: number;
    cpu_seconds: number;
    executions: number;
    uploaded_bytes: number;
    downloaded_bytes: number;
  };
  cost?: { amount: number; currency: string };
}

export interface Table {
  name: string;
  file: string;
  format: string;
  size_bytes: number;
  columns?: { name: string; type: string }[];
  row_count?: number;
  sample_rows?: unknown[][];
  problem?: string;
}

export interface Dataset {
  id: string;
  description?: string;
  tables: Table[];
  size_bytes: number;
  changed_at?: string;
}

export interface Run {
  run_id: string;
  state: string;
  status: "running" | "success" | "error" | "timeout";
  columns: string[] | null;
  rows: unknown[][] | null;
  row_count: number;
  exec_time_ms: number;
  stdout_trunc: string;
  stderr_trunc: string;
  error: { type: string; message: string; refusal?: Refusal } | null;
  provider: string;
  types?: string[];
  truncated?: boolean;
  decision?: { allowed: boolean; refusal?: Refusal; tables?: string[]; columns?: string[]; imports?: string[] };
  timings?: Record<string, number>;
  request: {
    dataset_id?: string; files?: { name: string; path: string }[]; query_type: string; sql?: string; python_code?: string;
    timeout_seconds?: number; max_rows?: number; max_output_bytes?: number;
  };
  instead_of?: string;
  node_id?: string;
  owner: string;
  created_at: string;
  ended_at?: string;
}

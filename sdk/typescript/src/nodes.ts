/** NodeProvider is a provider of a node. */
export interface NodeProvider {
  name: string;
  /** What stands between its sandboxes and the host. */
  boundary: string;
  default: boolean;
}

/** Node is one server of a cluster. */
export interface Node {
  id: string;
  /** Only one that is ready is given new sandboxes. */
  state: "ready" | "cordoned" | "away" | "gone";
  region: string | undefined;
  /** Where other nodes reach it. */
  address: string | undefined;
  version: string;
  /** Those that are ready. */
  providers: NodeProvider[];
  templates: string[];
  /** With a sandbox at once; 0 is no bound. */
  maxSessions: number;
  /** 0 is no bound. */
  maxMemoryMb: number;
  /** Those with a sandbox. */
  activeSessions: number;
  /** Promised to those. */
  totalMemoryMb: number;
  poolAvailable: number;
  /** That it answers for, stopped ones too. */
  sessions: number;
  startedAt: Date;
  /** When it was last heard of. */
  seenAt: Date;
}

export interface NodeForm {
  node_id: string;
  state: Node["state"];
  region?: string;
  address?: string;
  version: string;
  providers: { name: string; boundary: string; default?: boolean }[] | null;
  templates: string[] | null;
  max_sessions: number;
  max_memory_mb: number;
  active_sessions: number;
  total_memory_mb: number;
  pool_available: number;
  sessions: number;
  started_at: string;
  seen_at: string;
}

export function nodeOf(f: NodeForm): Node {
  return {
    id: f.node_id, state: f.state, region: f.region, address: f.address, version: f.version,
    providers: (f.providers ?? []).map((p) => ({ name: p.name, boundary: p.boundary, default: p.default ?? false })), templates: f.templates ?? [],
    maxSessions: f.max_sessions, maxMemoryMb: f.max_memory_mb, activeSessions: f.active_sessions, totalMemoryMb: f.total_memory_mb,
    poolAvailable: f.pool_available, sessions: f.sessions, startedAt: new Date(f.started_at), seenAt: new Date(f.seen_at),
  };
}

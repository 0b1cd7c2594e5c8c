import { misfit } from "./errors.js";

/** Mode is where sandboxes are: on this machine, or on a server. */
export type Mode = "local" | "remote";

/**
 * ConnectionOptions say which platform is talked to. What is left out comes from the
 * environment, as for the command line: COVE_URL, or SANDBOX_MODE with SANDBOX_URL,
 * COVE_API_KEY, COVE_HOME, COVE_BIN. Where nothing names a server, it is local mode.
 */
export interface ConnectionOptions {
  /** local: the server of COVE_HOME, which the cove executable starts when it is needed. remote: serverUrl. */
  mode?: Mode;
  /** http://host:port, https://host or unix:///path/to.sock. Left out in remote mode, COVE_URL, SANDBOX_URL or http://localhost:8000. */
  serverUrl?: string;
  /** The key that is shown to the server. The local one needs none. */
  apiKey?: string;
  /** The directory of the local server; left out, COVE_HOME or what cove itself says. */
  home?: string;
  /** The cove executable of local mode; left out, COVE_BIN, the one in the package that has it for this machine, or that in PATH. */
  coveBin?: string;
  /** Certificates of authorities to trust for https, as PEM; left out, those of Node. */
  ca?: string | Buffer | Array<string | Buffer>;
  /** Whether a sandbox that has expired or was lost is opened again by what would run in it. Left out, true. */
  autoRetry?: boolean;
  /** What comes of a server of a version that does not fit: true, a warning of the process, once; "refuse", a VersionError; false, nobody looks. Left out, true. */
  checkVersion?: boolean | "refuse";
  /** How long a server that has answered before is given to come back, for what is safe to ask again. Left out, 15000. */
  reconnectMs?: number;
  /** How long a stream, or a file on its way here, may be without a sign of life; of streams servers give one every 15 s. Left out, 60000. */
  silenceMs?: number;
}

/** CallOptions go with every call. */
export interface CallOptions {
  /** Ends the call, and what the server does for it. */
  signal?: AbortSignal | undefined;
}

/** OnceOptions go with every call that makes something. */
export interface OnceOptions extends CallOptions {
  /** The same key and request make the same thing, also in another process. Left out, a fresh one for each call. */
  idempotencyKey?: string | undefined;
}

/** Platform is what options and environment come to, but for the key. */
export interface Platform {
  mode: Mode;
  url: string; // of remote mode
  home: string | undefined;
  bin: string | undefined;
  ca: ConnectionOptions["ca"];
  autoRetry: boolean;
  checkVersion: boolean | "refuse";
  reconnectMs: number;
  silenceMs: number;
}

/** resolve reads options, and the environment where they say nothing. Who has the key shows it to the server alone. */
export function resolve(options: ConnectionOptions, env: NodeJS.ProcessEnv = process.env): Platform & { key: string } {
  const mode = options.mode ?? modeOf(options, env);
  if (mode !== "local" && mode !== "remote") throw misfit("mode", `${JSON.stringify(mode)} is unknown; use local or remote`);
  const key = options.apiKey ?? env["COVE_API_KEY"] ?? "";
  const checkVersion = options.checkVersion ?? true;
  if (typeof checkVersion !== "boolean" && checkVersion !== "refuse") throw misfit("checkVersion", `${JSON.stringify(checkVersion)} is unknown; use true, false or "refuse"`);
  if (/[^!-~]/.test(key)) throw misfit("apiKey", "is not a key: it holds spaces or characters that no key has");
  return {
    mode,
    url: options.serverUrl ?? (env["COVE_URL"] || env["SANDBOX_URL"] || "http://localhost:8000"),
    key: mode === "local" ? "" : key,
    home: options.home ?? env["COVE_HOME"],
    bin: options.coveBin ?? env["COVE_BIN"],
    ca: options.ca,
    autoRetry: options.autoRetry ?? true,
    checkVersion,
    reconnectMs: span("reconnectMs", options.reconnectMs, 15_000),
    silenceMs: span("silenceMs", options.silenceMs, 60_000),
  };
}

function modeOf(options: ConnectionOptions, env: NodeJS.ProcessEnv): Mode {
  if (options.serverUrl !== undefined) return "remote";
  if (options.home !== undefined) return "local";
  if (env["COVE_URL"]) return "remote";
  return (env["SANDBOX_MODE"] || "local") as Mode;
}

function span(name: string, value: number | undefined, usual: number): number {
  if (value === undefined) return usual;
  if (!(value >= 0 && value <= 24 * 3_600_000)) throw misfit(name, "must be milliseconds, up to a day");
  return value;
}

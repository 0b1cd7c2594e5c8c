import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join, resolve as absolute } from "node:path";

import { ConnectionError, CoveError, aborted, problem } from "./errors.js";
import type { Platform } from "./options.js";

/** startTime bounds how long cove may take to start its server, in milliseconds. */
const startTime = 90_000;
/** maxSaid bounds what is kept of what it prints. */
const maxSaid = 4 * 1024 * 1024;

/**
 * LocalServer is the server of a COVE_HOME on this machine. The cove executable starts
 * it and knows how: this only asks it to, and finds the socket.
 */
export class LocalServer {
  private home: string | undefined;

  constructor(private readonly platform: Platform) {
    this.home = platform.home === undefined || platform.home === "" ? undefined : absolute(platform.home);
  }

  /** reach returns the path of a socket that answers, after the server was started if need be. */
  async reach(signal?: AbortSignal): Promise<string> {
    this.home ??= await this.askHome(signal);
    const socket = join(this.home, "cove.sock");
    // Who only talks to a server must know that nobody else can have put the socket there.
    if ((await ours(this.home)) && (await answers(socket, signal))) return socket;
    // Any command that needs the server starts it. This one has nothing to say: nobody has the label.
    await this.run(["--json", "--home", this.home, "sandbox", "ls", "--label", "cove-sandbox=starts-the-server"], signal);
    if (!(await answers(socket, signal))) {
      throw new ConnectionError(`cove started no server at ${socket}`, {
        reason: "connection", remedy: `look at ${join(this.home, "config.yaml")}, which may name another server, and at daemon.log beside it`,
      });
    }
    return socket;
  }

  /** askHome asks cove which directory is its own. */
  private async askHome(signal?: AbortSignal): Promise<string> {
    const settings = parsed(await this.run(["--json", "serve", "--print-config"], signal));
    const home = Array.isArray(settings) ? (settings.find((s) => s?.name === "COVE_HOME")?.value as unknown) : undefined;
    if (typeof home !== "string" || home === "") {
      throw new ConnectionError(`${this.bin()} did not say which directory it uses`, { reason: "connection", remedy: "set COVE_HOME, or COVE_BIN to another cove" });
    }
    return home;
  }

  /** bin is the executable: the one that was named, the one in a package beside this one, or that of PATH. */
  private bin(): string {
    return this.platform.bin || carried() || "cove";
  }

  /** run runs a command of cove and returns what it printed. */
  private run(args: string[], signal?: AbortSignal): Promise<string> {
    const env: NodeJS.ProcessEnv = { ...process.env, SANDBOX_MODE: "local" };
    delete env["COVE_URL"]; // it would ask that server instead
    const limits = { env, timeout: startTime, maxBuffer: maxSaid, ...(signal ? { signal } : {}) };
    return new Promise((done, fail) => {
      execFile(this.bin(), args, limits, (err, stdout, stderr) => {
        if (!err) done(stdout);
        else if (signal?.aborted) fail(aborted(signal));
        else fail(this.complaint(err, stdout + "\n" + stderr));
      });
    });
  }

  /** complaint is the error that cove told of, or about cove itself. */
  private complaint(err: Error, said: string): CoveError {
    const missing = (err as NodeJS.ErrnoException).code;
    if (missing === "ENOENT" || missing === "EACCES") {
      return new ConnectionError(`there is no program ${this.bin()} to start a local server with`, {
        reason: "configuration", remedy: `install cove and put it into PATH${hasCarrier ? `, or the package ${carrier}` : ""}; set COVE_BIN to where it is; or use a server: mode remote with serverUrl`, cause: err,
      });
    }
    for (const line of said.split("\n").reverse()) {
      const told = line.startsWith("{") ? problem(parsed(line)) : undefined;
      if (told) return told;
    }
    return new ConnectionError("the local server could not be started", {
      reason: "connection", remedy: "run cove sandbox ls to see why", cause: err,
    });
  }
}

/** carrier is the package that has the executable for this machine inside, which there is for some. */
const carrier = `cove-sandbox-${process.platform}-${process.arch}`;
const hasCarrier = ["cove-sandbox-linux-x64", "cove-sandbox-linux-arm64"].includes(carrier);

/** carried is the executable in that package, where it is installed. */
function carried(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${carrier}/bin/cove`);
  } catch {
    return undefined;
  }
}

/** ours reports whether a directory belongs to this user and nobody else can change it. */
async function ours(dir: string): Promise<boolean> {
  try {
    const info = await stat(dir);
    return info.isDirectory() && info.uid === process.geteuid?.() && (info.mode & 0o022) === 0;
  } catch {
    return false;
  }
}

/** answers asks a server how it is; one that is about to end is no answer. */
function answers(socketPath: string, signal?: AbortSignal): Promise<boolean> {
  return new Promise((done, fail) => {
    const req = request({ socketPath, path: "/health", agent: false, timeout: 10_000, ...(signal ? { signal } : {}) }, (res) => {
      let text = "";
      res.setEncoding("utf8");
      res.on("data", (piece: string) => {
        text += piece;
        if (text.length > 64 * 1024) res.destroy();
      });
      res.on("end", () => done(res.statusCode === 200 && parsed(text)?.status === "healthy"));
      res.on("error", () => done(false));
      res.on("close", () => done(false)); // one that says too much has no end
    });
    req.on("timeout", () => req.destroy());
    req.on("error", () => (signal?.aborted ? fail(aborted(signal)) : done(false)));
    req.end();
  });
}

function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Servers for tests: the cove executable that COVE_BIN names, each in a directory of
 * its own, which is gone when the test is over.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type RequestListener, createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

import { type ConnectionOptions, Sandbox } from "cove-sandbox";

export const bin = process.env["COVE_BIN"] ?? "cove";

/** Served is a server that a test may stop and start again at the same address. */
export interface Served extends Required<Pick<ConnectionOptions, "serverUrl" | "apiKey">> {
  home: string;
  /** Whom to trust, where it speaks TLS. */
  ca: string | undefined;
  /** stop ends it: KILL as a crash would, TERM as an operator would. */
  stop(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  start(): Promise<void>;
}

/** undo is what is done when the tests of the file are over, the last first. */
const undo: Array<() => Promise<void>> = [];
after(async () => {
  for (const one of undo.reverse()) await one();
});

/** folder makes a directory that is removed after the tests of the file. */
export async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cove-ts-"));
  undo.push(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** peer is something at an address that answers as it is told to, until the tests of the file are over. */
export async function peer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  undo.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * nobody is an address on which nobody listens, nor can begin to: a connection of ours
 * has the port at its other end.
 */
export async function nobody(): Promise<string> {
  const { hostname, port } = new URL(await peer(() => undefined));
  const holder = connect(Number(port), hostname);
  await once(holder, "connect");
  undo.push(async () => void holder.destroy());
  return `http://${hostname}:${holder.localPort}`;
}

/** clean is an environment in which nothing speaks of a server. */
export function clean(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const name of ["COVE_URL", "COVE_API_KEY", "COVE_HOME", "SANDBOX_MODE", "SANDBOX_URL", "SANDBOX_PROVIDER"]) delete env[name];
  return { ...env, POOL_SIZE: "0", ...more };
}

/** serve runs a server until the tests of the file are over. */
export async function serve(settings: Record<string, string> = {}, program = bin): Promise<Served> {
  const dir = await mkdtemp(join(tmpdir(), "cove-ts-"));
  const home = join(dir, "home");
  let address = "127.0.0.1:0";
  let child: ChildProcess | undefined;
  const served: Served = {
    serverUrl: "", apiKey: "", home, ca: settings["COVE_TLS_CERT"] === undefined ? undefined : await readFile(settings["COVE_TLS_CERT"], "utf8"),
    async start() {
      child = spawn(program, ["--json", "--home", home, "serve", "--addr", address, "--log-level", "error"], {
        env: clean(settings), stdio: ["ignore", "pipe", "inherit"],
      });
      const at = JSON.parse(await firstLine(child)) as { url: string; key_file: string };
      served.serverUrl = at.url;
      address = new URL(at.url).host;
      served.apiKey = (await readFile(at.key_file, "utf8")).trim();
    },
    async stop(signal) {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    },
  };
  await served.start();
  undo.push(async () => {
    if (child?.exitCode !== null || child.signalCode !== null) await served.start(); // its sandboxes may have stayed
    for await (const one of Sandbox.list({ ...where(served), checkVersion: false })) await Sandbox.kill(one.id, { ...where(served), checkVersion: false });
    await served.stop("SIGTERM");
    await rm(dir, { recursive: true, force: true });
  });
  return served;
}

/** firstLine is what a server says when it listens. What follows is read and forgotten. */
async function firstLine(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout! });
  const ended = once(lines, "close").then(() => {
    throw new Error("the server ended before it listened");
  });
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  return line;
}

/** where is a server as callers are told of it. */
export function where(served: Served): ConnectionOptions {
  return { serverUrl: served.serverUrl, apiKey: served.apiKey, ...(served.ca === undefined ? {} : { ca: served.ca }) };
}

/** collect reads a stream to its end. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of stream) all.push(one);
  return all;
}

/** undone has something done when the tests of the file are over. */
export function undone(what: () => Promise<void>): void {
  undo.push(what);
}

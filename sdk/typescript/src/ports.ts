import type { Duplex } from "node:stream";

import { at } from "./connection.js";
import { type Link, linkOf, seconds } from "./forms.js";
import type { Handle } from "./handle.js";
import type { CallOptions } from "./options.js";

/** Ports are what listens inside a sandbox. */
export class Ports {
  constructor(private readonly handle: Handle) {}

  /** link makes an address for browsers that leads to a port, for a while. */
  async link(port: number, { ttlMs, signal }: { ttlMs?: number } & CallOptions = {}): Promise<Link> {
    const json = { ttl_seconds: seconds(ttlMs) };
    return linkOf(await this.handle.connection.json({ method: "POST", path: at`/api/sandboxes/${this.handle.id}/ports/${port}`, json, signal, safe: true }));
  }

  /** dial connects to a port: what it returns carries the bytes. The signal is for the dialing; who has the connection destroys it. */
  async dial(port: number, { signal }: CallOptions = {}): Promise<Duplex> {
    return this.handle.connection.dial({ method: "GET", path: at`/api/sandboxes/${this.handle.id}/ports/${port}/connect`, signal });
  }
}

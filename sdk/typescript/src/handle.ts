import { randomUUID } from "node:crypto";

import { type Ask, type Connection, at, orAborted } from "./connection.js";
import { CoveError } from "./errors.js";
import { type SandboxInfo, type SandboxSpec, type SessionForm, sandboxInfoOf, specForm } from "./forms.js";
import type { OnceOptions } from "./options.js";

/** OpenOptions say how a sandbox is asked for, beside what it is to be. */
export interface OpenOptions extends OnceOptions {
  /** Told of the place in the queue, from 1, while it is waited for room: where the spec has onFull as wait. */
  onQueue?: ((position: number) => void) | undefined;
}

/** onlyOnce is the header of a request that is done once, however often it is sent. */
export function onlyOnce(name: string = randomUUID()): Record<string, string> {
  return { "Idempotency-Key": name };
}

/** open opens a sandbox, or finds the live one of its user and thread. */
export async function open(connection: Connection, spec: SandboxSpec, options: OpenOptions = {}): Promise<SandboxInfo> {
  const { signal, onQueue, idempotencyKey } = options;
  const ask: Ask = { method: "POST", path: "/api/sandboxes", json: specForm(spec), headers: onlyOnce(idempotencyKey), safe: true, signal };
  if (!onQueue || spec.onFull !== "wait") return session(connection, ask);
  return connection.again(ask, () => queued(connection, ask, onQueue));
}

/** queued waits for a sandbox and tells of the place in the queue meanwhile. */
async function queued(connection: Connection, ask: Ask, onQueue: (position: number) => void): Promise<SandboxInfo> {
  for await (const event of connection.follow(ask, "session")) {
    if (event.name === "queue") onQueue(connection.data<{ position: number }>(event).position);
    if (event.name === "session") return infoIn(connection, connection.data<SessionForm>(event));
  }
  throw connection.odd(); // a stream ends with a session or an error
}

/** session asks for something that is answered with a sandbox. */
export async function session(connection: Connection, ask: Ask): Promise<SandboxInfo> {
  return infoIn(connection, await connection.json<SessionForm>(ask));
}

function infoIn(connection: Connection, form: SessionForm): SandboxInfo {
  if (typeof form.session_id !== "string" || form.session_id === "") throw connection.odd();
  return sandboxInfoOf(form);
}

/** first is a try in the sandbox that there is, and second one in that which took its place; a server can count those. */
const first = (id: string): Attempt => ({ id, headers: {}, again: false });
const second = (id: string, reason: string): Attempt => ({ id, headers: { "Cove-Retry": reason }, again: true });

/** gone are the reasons for which a sandbox is opened again: nothing has run then. */
const gone: ReadonlySet<string | undefined> = new Set(["session_expired", "node_lost"]);

/** why is for which of them a sandbox refused, if it was one. */
function why(err: unknown): string | undefined {
  return err instanceof CoveError && err.code === "not_found" && gone.has(err.reason) ? err.reason : undefined;
}

/** Again says whether, and for how long, something is tried again. */
export interface Again {
  /** Whether it can be: nothing was handed on or used up. */
  repeatable: () => boolean;
  /** What the caller wants; left out, what the connection was told. */
  autoRetry?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** Attempt is one try to run something: where, with which headers, and whether it is the second one. */
export interface Attempt {
  id: string;
  headers: Record<string, string>;
  again: boolean;
}

/**
 * Handle is what a caller holds as one sandbox. When the session behind it has expired or
 * was lost, what would run in it opens another one by the same request, and runs in that,
 * once. Only these reasons count: nothing has run then. From then on the handle is the
 * new one.
 */
export class Handle {
  private renewing: Promise<void> | undefined;
  private untold = false; // no answer has said yet that it is a new one

  constructor(
    readonly connection: Connection,
    public id: string,
    /** What opens it again; left out, nothing does. */
    private spec?: SandboxSpec,
  ) {}

  /** path is one below that of the session. */
  path(rest: string): string {
    return at`/api/sandboxes/${this.id}` + rest;
  }

  /** change remembers something else about how the sandbox is to be opened again. */
  change(more: Partial<SandboxSpec>): void {
    if (this.spec) this.spec = { ...this.spec, ...more };
  }

  /** forget is for a sandbox that is to end: nothing opens it again. It returns when nobody does so any more, with the id that is to end. */
  async forget(signal?: AbortSignal): Promise<string> {
    this.spec = undefined;
    // One that cannot be opened is none that must end.
    if (this.renewing) await orAborted(this.renewing.catch(() => undefined), signal);
    return this.id;
  }

  /** run runs something in the sandbox, and once more where that is gone. */
  async run<T extends { recreated: boolean }>(run: (attempt: Attempt) => Promise<T>, again: Again): Promise<T> {
    let attempt = first(this.id);
    let result: T;
    try {
      result = await run(attempt);
    } catch (err) {
      const reason = why(err);
      if (reason === undefined || !this.mayRenew(again)) throw err;
      await this.renew(attempt.id, again.signal);
      attempt = second(this.id, reason);
      result = await run(attempt);
    }
    return this.tell(result, attempt);
  }

  /** stream is run for what yields on its way; what was yielded is not taken back. */
  async *stream<E>(run: (attempt: Attempt) => AsyncGenerator<E, void, undefined>, again: Again): AsyncGenerator<E, void, undefined> {
    const was = this.id;
    let some = false;
    let reason: string | undefined;
    try {
      for await (const event of run(first(was))) {
        some = true;
        yield event;
      }
      return;
    } catch (err) {
      reason = why(err);
      if (some || reason === undefined || !this.mayRenew(again)) throw err;
    }
    await this.renew(was, again.signal);
    yield* run(second(this.id, reason));
  }

  /** tell has an answer say that the sandbox is a new one: all that were refused by the old one, and at least one. */
  tell<T extends { recreated: boolean }>(result: T, attempt: Attempt): T {
    if (this.untold || attempt.again) result.recreated = true;
    this.untold = false;
    return result;
  }

  private mayRenew(again: Again): boolean {
    const wanted = again.autoRetry ?? this.connection.platform.autoRetry;
    return wanted && this.spec !== undefined && again.repeatable();
  }

  /** renew opens a sandbox in the place of one that is gone, unless somebody else has. It is opened for all who wait: a signal ends only the waiting. */
  private async renew(was: string, signal?: AbortSignal): Promise<void> {
    if (this.id !== was) return;
    this.renewing ??= open(this.connection, this.spec!)
      .then((made) => {
        this.id = made.id;
        this.untold = true;
      })
      .finally(() => (this.renewing = undefined));
    await orAborted(this.renewing, signal);
  }
}

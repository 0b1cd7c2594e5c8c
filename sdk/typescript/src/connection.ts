import { setMaxListeners } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request as plainRequest } from "node:http";
import { Agent as TLSAgent, request as tlsRequest } from "node:https";
import type { Duplex } from "node:stream";

import { type Body, encoded, feed } from "./body.js";
import { ConnectionError, CoveError, InvalidError, NotFoundError, SessionNotFoundError, UnavailableError, VersionError, aborted, invalid, misfit, problem } from "./errors.js";
import { type ServerEvent, serverEvents, watched } from "./events.js";
import { LocalServer } from "./local.js";
import { type ConnectionOptions, type Platform, resolve } from "./options.js";
import { VERSION, fits, warnOnce } from "./version.js";

/** maxAnswer bounds an answer that is held in memory. Files and streams are not. */
const maxAnswer = 64 * 1024 * 1024;
/** connectTime bounds the making of a connection, in milliseconds. */
const connectTime = 30_000;

export const asJSON = "application/json";
export const asEvents = "text/event-stream";
export const asBytes = "application/octet-stream";
export const asTar = "application/x-tar";
const asProblem = "application/problem+json";

/** Ask is one request. */
export interface Ask {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | string[] | undefined>;
  headers?: Record<string, string>;
  /** Sent in JSON. */
  json?: unknown;
  /** Sent as it comes, in the place of json. */
  body?: Body;
  /** What the answer must be. Left out, anything. */
  accept?: string;
  signal?: AbortSignal | undefined;
  /** Nothing changes if it is done twice: it may be asked again where no whole answer came. */
  safe?: boolean;
}

/** at makes a path. What is put into it comes from callers and may hold anything but nothing. */
export function at(parts: TemplateStringsArray, ...names: Array<string | number>): string {
  let path = parts[0]!;
  names.forEach((name, i) => {
    const text = String(name);
    if (text === "") {
      const Class = parts[i]!.endsWith("/api/sandboxes/") ? SessionNotFoundError : NotFoundError;
      throw new Class("no name was given, and nothing is without one");
    }
    // A plain . or .. would mean another path.
    path += (text === "." || text === ".." ? text.replaceAll(".", "%2E") : encodeURIComponent(text)) + parts[i + 1]!;
  });
  return path;
}

/** Unsent marks the cause of an error before which nothing of the request was sent. */
class Unsent extends Error {}

/**
 * Connection is a server as one caller sees it. It keeps connections and uses them
 * again; idle ones do not keep a process from ending.
 */
export class Connection {
  readonly platform: Platform;
  /** The server, in messages. */
  name: string;
  private readonly remedy: string;
  // What is private by # is shown by nothing that prints or serializes: the key, and
  // the agent, whose connections know the requests that they carried.
  readonly #key: string;
  readonly #agent: Agent;
  private readonly base: URL | undefined;
  private readonly local: LocalServer | undefined;
  private socketPath: string | undefined;
  private greeting: Promise<void> | undefined;
  private met = false;
  private unlike: string | undefined; // how the versions differ, where they do not fit

  constructor(options: ConnectionOptions = {}) {
    const { key, ...platform } = resolve(options);
    this.#key = key;
    this.platform = platform;
    const idle = { keepAlive: true, maxFreeSockets: 64, timeout: 60_000 };
    if (this.platform.mode === "local") {
      this.local = new LocalServer(this.platform);
      this.name = "the local server";
      this.remedy = "run cove doctor to see what is the matter";
      this.#agent = new Agent(idle);
      return;
    }
    const url = address(this.platform.url);
    this.name = this.platform.url.replace(/\/+$/, "");
    if (url.protocol === "unix:") {
      this.socketPath = decodeURIComponent(url.pathname);
      this.remedy = "start it with cove serve, or check the path of the socket";
    } else {
      this.base = url;
      this.remedy = "check the URL, and that cove serve runs there";
    }
    const trust = this.platform.ca === undefined ? {} : { ca: this.platform.ca };
    this.#agent = url.protocol === "https:" ? new TLSAgent({ ...idle, ...trust }) : new Agent(idle);
  }

  /** close lets go of connections: of idle ones now, and of others when their calls are over. */
  close(): void {
    this.#agent.maxFreeSockets = 0;
    for (const idle of Object.values(this.#agent.freeSockets)) for (const socket of idle ?? []) socket.destroy();
  }

  /** json asks for a JSON answer. */
  async json<T>(ask: Ask): Promise<T> {
    return this.again(ask, async () => {
      const res = await this.send({ ...ask, accept: asJSON });
      return this.parse<T>(res, await this.text(res, ask.signal));
    });
  }

  /** tell asks for something that has no answer. */
  async tell(ask: Ask): Promise<void> {
    return this.again(ask, async () => {
      const res = await this.send(ask);
      if (res.statusCode === 204) return void res.resume();
      res.destroy(); // it may go on for ever
      throw this.foreign(res);
    });
  }

  /** read asks for bytes. Who gets them reads them by pieces, or destroys them. */
  async read(ask: Ask): Promise<IncomingMessage> {
    return this.again(ask, () => this.send(ask));
  }

  /**
   * follow yields the events of an answer, up to and with one that is named in last.
   * An error that the server tells of, and a stream that ends before that, are thrown.
   */
  async *follow(ask: Ask, ...last: string[]): AsyncGenerator<ServerEvent, void, undefined> {
    const res = await this.again(ask, () => this.send({ ...ask, accept: asEvents }));
    try {
      for await (const event of serverEvents(this.pieces(res, ask.signal))) {
        if (event.name === "error") throw problem(this.parse(res, event.data), { unlike: this.unlike }) ?? this.foreign(res);
        yield event;
        if (last.includes(event.name)) return;
      }
      throw this.broken(undefined, ask.signal);
    } catch (err) {
      throw err instanceof CoveError ? err : this.broken(err, ask.signal);
    } finally {
      res.destroy();
    }
  }

  /** pieces yields an answer as it comes. One that breaks off, or falls silent for too long, is an error. */
  async *pieces(res: IncomingMessage, signal?: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    let silent: ConnectionError | undefined;
    const alarm = () => {
      silent = new ConnectionError(`cove at ${this.name} has given no sign of life for ${this.platform.silenceMs / 1000} s`, { reason: "connection", remedy: this.remedy });
      res.destroy(silent);
    };
    try {
      yield* watched(res, this.platform.silenceMs, alarm);
    } catch (err) {
      throw silent ?? this.broken(err, signal);
    } finally {
      res.destroy();
    }
  }

  /** data reads the data of an event. */
  data<T>(event: ServerEvent): T {
    try {
      return JSON.parse(event.data) as T;
    } catch (cause) {
      throw new ConnectionError(`${this.name} sent an event ${JSON.stringify(event.name.slice(0, 40))} that Cove does not send`, {
        reason: "connection", remedy: "check the URL and the version of the server", cause,
      });
    }
  }

  /** pages yields the elements of a list, a page at a time: up to limit, and those after one. */
  async *pages<T>(ask: Ask, { limit, after }: { limit?: number | undefined; after?: string | undefined } = {}): AsyncGenerator<T, void, undefined> {
    const query: Ask["query"] & object = { ...ask.query, cursor: after };
    for (let left = limit ?? Infinity; ; ) {
      query["limit"] = Math.min(left, 500);
      const page = await this.json<{ items: T[]; next_cursor?: string }>({ ...ask, query, safe: true });
      if (!Array.isArray(page.items)) throw this.odd();
      yield* page.items;
      // A server that hands out a cursor with nothing before it would keep us here for ever.
      left -= page.items.length;
      if (!page.next_cursor || page.items.length === 0 || left <= 0) return;
      query["cursor"] = page.next_cursor;
    }
  }

  /** dial sends a request whose connection becomes a stream of bytes. */
  async dial(ask: Ask): Promise<Duplex> {
    await this.greet(ask.signal);
    const req = await this.request({ ...ask, headers: { ...ask.headers, Connection: "Upgrade", Upgrade: "tcp" } }, false);
    return new Promise((done, fail) => {
      req.once("upgrade", (_res, socket: Duplex, head: Buffer) => {
        if (head.length > 0) socket.unshift(head);
        done(socket);
      });
      req.once("response", (res: IncomingMessage) => void this.refusal(res, ask.signal).then(fail, fail));
      req.once("error", (err) => fail(this.unreachable(err, ask.signal)));
      req.end();
    });
  }

  /** greet finds out, before the first request, whether the server is one that this package was made for. */
  private greet(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(aborted(signal)); // nothing is started for it
    try {
      if (signal) setMaxListeners(0, signal); // many calls may have one, which is no leak to be warned of
    } catch {
      // One of another make warns of nothing.
    }
    if (this.met) return Promise.resolve();
    this.greeting ??= this.meet().finally(() => (this.greeting = undefined));
    return orAborted(this.greeting, signal);
  }

  private async meet(): Promise<void> {
    if (this.local) await this.start();
    if (this.platform.checkVersion) await this.compare();
    this.met = true;
  }

  private async compare(): Promise<void> {
    const slow = AbortSignal.timeout(connectTime);
    const res = await this.once({ method: "GET", path: "/health", accept: asJSON, signal: slow });
    const health = this.parse<{ version?: unknown }>(res, await this.text(res, slow));
    const version = typeof health.version === "string" ? health.version : "";
    if (fits(version)) return;
    this.unlike = `the server is Cove ${version} and this is cove-sandbox ${VERSION}`;
    const remedy = `install the version of cove-sandbox that goes with ${version}, or run a server of version ${VERSION}`;
    if (this.platform.checkVersion !== "refuse") {
      return warnOnce(`the server at ${this.name} is Cove ${version} and this is cove-sandbox ${VERSION}: what one of them does not know fails; ${remedy}`);
    }
    throw new VersionError(`the server at ${this.name} is Cove ${version} and this is cove-sandbox ${VERSION}, which was not made for it`, {
      reason: "version", remedy, details: { server: version, client: VERSION },
    });
  }

  private async start(signal?: AbortSignal): Promise<void> {
    this.socketPath = await this.local!.reach(signal);
    this.name = `unix://${this.socketPath}`;
  }

  /** send sends a request and returns an answer that is a success. */
  private async send(ask: Ask): Promise<IncomingMessage> {
    await this.greet(ask.signal);
    return this.once(ask);
  }

  /**
   * again does what is safe once more where no whole answer came, for as long as the
   * server is given to come back. What is not safe is done again only if nothing of it
   * was sent. A server that never answered is not waited for.
   */
  async again<T>(ask: Ask, once: () => Promise<T>): Promise<T> {
    const patience = this.platform.reconnectMs;
    let until: number | undefined;
    for (let wait = 50; ; wait = Math.min(wait * 2, 1000)) {
      const known = this.met;
      const began = Date.now();
      try {
        return await once();
      } catch (err) {
        // What was under way for long was answered for long: its time begins anew.
        if (until === undefined || Date.now() - began > patience) until = Date.now() + patience;
        const asked = err instanceof CoveError ? (err.retryAfter ?? 0) * 1000 : 0;
        const pause = Math.max(asked, wait * (0.5 + Math.random())); // also where it asks for none
        if (!known || !repeatable(ask, err) || Date.now() + pause > until) throw err;
        await rest(pause, ask.signal);
        if (this.local && unsent(err)) await this.start(ask.signal);
      }
    }
  }

  private async once(ask: Ask): Promise<IncomingMessage> {
    if (ask.signal?.aborted) throw aborted(ask.signal);
    const said = ask.json === undefined ? undefined : encoded(ask.json);
    const req = await this.request(ask, true);
    const res = await this.answer(req, ask, said);
    const status = res.statusCode ?? 0;
    if (status < 200 || status > 299) throw await this.refusal(res, ask.signal);
    if (ask.accept !== undefined && mediaType(res) !== ask.accept) {
      res.destroy();
      throw this.foreign(res);
    }
    return res;
  }

  private async request(ask: Ask, keep: boolean): Promise<ClientRequest> {
    const headers: Record<string, string> = { ...ask.headers };
    for (const [name, value] of Object.entries(headers)) {
      if (/[^\t -~\u0080-\u00ff]/.test(value)) throw invalid(name, "holds characters that a header cannot have");
    }
    if (ask.accept !== undefined) headers["Accept"] = ask.accept;
    if (ask.json !== undefined) headers["Content-Type"] = asJSON;
    if (ask.body?.length !== undefined) headers["Content-Length"] = String(ask.body.length);
    if (this.#key !== "") headers["Authorization"] = `Bearer ${this.#key}`;
    const options: RequestOptions = {
      method: ask.method, path: (this.base?.pathname.replace(/\/+$/, "") ?? "") + ask.path + queryOf(ask.query), headers,
      agent: keep ? this.#agent : false,
      // A server that is not ours must not fill our memory with headers.
      maxHeaderSize: 64 * 1024,
    };
    if (ask.signal) options.signal = ask.signal;
    if (this.socketPath !== undefined) return plainRequest({ ...options, socketPath: this.socketPath });
    const where = { host: this.base!.hostname.replace(/^\[|\]$/g, ""), port: this.base!.port };
    if (this.base!.protocol !== "https:") return plainRequest({ ...options, ...where });
    return tlsRequest({ ...options, ...where, ...(this.platform.ca === undefined ? {} : { ca: this.platform.ca }) });
  }

  /** answer sends what a request has to say and waits for the head of the answer. */
  private answer(req: ClientRequest, ask: Ask, said: string | undefined): Promise<IncomingMessage> {
    return new Promise((done, fail) => {
      let connected = false;
      const timer = setTimeout(() => req.destroy(new Error("no connection in time")), connectTime);
      req.once("socket", (socket) => {
        const on = () => {
          connected = true;
          clearTimeout(timer);
        };
        if (socket.connecting) socket.once("connect", on);
        else on();
        socket.setKeepAlive(true, 30_000);
      });
      req.once("close", () => clearTimeout(timer));
      req.once("response", done);
      // It stays: a connection may also break when the answer has begun.
      req.on("error", (err) => fail(this.unreachable(connected ? err : new Unsent(err.message, { cause: err }), ask.signal)));
      if (ask.body) feed(req, ask.body, fail);
      else req.end(said);
    });
  }

  /** text reads a whole answer. */
  private async text(res: IncomingMessage, signal?: AbortSignal): Promise<string> {
    const pieces: Buffer[] = [];
    let held = 0;
    try {
      for await (const piece of res as AsyncIterable<Buffer>) {
        held += piece.length;
        if (held > maxAnswer) throw this.foreign(res);
        pieces.push(piece);
      }
    } catch (err) {
      throw err instanceof CoveError ? err : this.broken(err, signal);
    }
    return Buffer.concat(pieces).toString("utf8");
  }

  private parse<T>(res: IncomingMessage, text: string): T {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw this.foreign(res);
    }
    if (typeof value !== "object" || value === null) throw this.foreign(res);
    return value as T;
  }

  /** refusal is the error that an answer tells of. */
  private async refusal(res: IncomingMessage, signal?: AbortSignal): Promise<CoveError> {
    if (res.statusCode === 431) {
      res.destroy();
      // Answered before anything of ours has seen the request.
      return new InvalidError("a name, a pattern or a header of the request is too long");
    }
    if (mediaType(res) !== asProblem) {
      res.destroy();
      return this.foreign(res);
    }
    const after = Number(res.headers["retry-after"]);
    const told = problem(this.parse(res, await this.text(res, signal)), { retryAfter: Number.isFinite(after) ? after : undefined, unlike: this.unlike });
    return told ?? this.foreign(res);
  }

  /** unreachable is the error of a request that got no answer. */
  private unreachable(cause: Error, signal?: AbortSignal): CoveError {
    if (signal?.aborted) return aborted(signal);
    if (distrusted(cause)) {
      return new ConnectionError(`cove at ${this.name} shows a certificate that is not trusted: ${cause.message}`, {
        reason: "connection", remedy: "give the certificate of its authority as ca, or check the name in the URL", cause,
      });
    }
    return new ConnectionError(`cove at ${this.name} cannot be reached`, { reason: "connection", remedy: this.remedy, cause });
  }

  /** broken is the error of an answer that ended before it was whole. */
  broken(cause: unknown, signal?: AbortSignal): CoveError {
    if (signal?.aborted) return aborted(signal);
    return new ConnectionError(`the connection to ${this.name} broke off before the answer was whole`, {
      reason: "connection", remedy: "look whether it was done before you ask again", cause,
    });
  }

  /** foreign is the error of an answer that Cove does not give. */
  private foreign(res: IncomingMessage): CoveError {
    const media = JSON.stringify((res.headers["content-type"] ?? "").slice(0, 60));
    return new ConnectionError(`${this.name} answered ${res.statusCode} with ${media}, which is not what Cove answers`, {
      reason: "connection", details: { foreign: true }, remedy: "check the URL: another server, a proxy or another version may answer there",
    });
  }

  /** odd is the error of an answer whose form is not Cove's. */
  odd(): CoveError {
    return new ConnectionError(`${this.name} answered with something that Cove does not give`, {
      reason: "connection", details: { foreign: true }, remedy: "check the URL and the version of the server",
    });
  }
}

function address(text: string): URL {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // It is told below.
  }
  const socket = url?.protocol === "unix:" && url.host === "" && url.pathname.length > 1;
  const web = (url?.protocol === "http:" || url?.protocol === "https:") && url.hostname !== "";
  if (!url || !(socket || web) || url.username || url.password || url.search || url.hash) {
    throw misfit("serverUrl", "must be http://host:port, https://host or unix:///path/to.sock, without a user or a query");
  }
  return url;
}

function queryOf(query: Ask["query"]): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) all.append(name, String(one));
  }
  const text = all.toString();
  return text === "" ? "" : "?" + text;
}

function mediaType(res: IncomingMessage): string {
  return (res.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
}

/** distrusted reports whether an error is about the certificate of a server. */
function distrusted(err: Error): boolean {
  const { code } = (err instanceof Unsent ? err.cause : err) as NodeJS.ErrnoException;
  return code !== undefined && /CERT|UNABLE_TO_(GET|VERIFY)/.test(code);
}

function unsent(err: unknown): boolean {
  return err instanceof ConnectionError && err.cause instanceof Unsent;
}

function repeatable(ask: Ask, err: unknown): boolean {
  if (!(err instanceof CoveError)) return false;
  if (err.reason === "rate_limited") return ask.body === undefined; // it was refused before it began
  if (unsent(err)) return ask.body === undefined || ask.body.untouched();
  return ask.safe === true && brokeOff(err);
}

/**
 * brokeOff reports whether an error says that the server is gone for now: the connection
 * broke off, or it is shutting down. An answer that is not Cove's is another thing.
 */
export function brokeOff(err: unknown): boolean {
  if (!(err instanceof UnavailableError) || err instanceof VersionError || err.details["foreign"] === true) return false;
  return err.reason === undefined || err.reason === "connection";
}

/** orAborted waits for something that several wait for, and that goes on also if the signal ends; how it ends is then nobody's error. */
export function orAborted<T>(wait: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return wait;
  return new Promise((done, fail) => {
    const end = () => fail(aborted(signal));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
    wait.then(done, fail).finally(() => signal.removeEventListener("abort", end));
  });
}

/** rest waits, unless the signal ends first. */
export function rest(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    if (signal?.aborted) return fail(aborted(signal));
    const end = () => {
      clearTimeout(timer);
      fail(aborted(signal!));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      done();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

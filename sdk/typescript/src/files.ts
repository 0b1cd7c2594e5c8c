import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { Body, type Content, bodyOf } from "./body.js";
import { type Ask, asBytes, asTar } from "./connection.js";
import { CanceledError, ExhaustedError, NotFoundError, aborted, invalid } from "./errors.js";
import { type FileChange, type FileForm, type FileInfo, type Link, fileInfoOf, linkOf, seconds } from "./forms.js";
import type { Handle } from "./handle.js";
import type { CallOptions } from "./options.js";

/** ReadOptions name a part of a file. */
export interface ReadOptions extends CallOptions {
  /** Bytes to leave out. */
  offset?: number;
  /** Bytes to read; left out, to the end. */
  length?: number;
}

/** WriteOptions go with what is written. */
export interface WriteOptions extends CallOptions {
  /** Permissions; left out, 0o644. */
  mode?: number;
  /** Told how many bytes were sent. */
  onProgress?: (sent: number) => void;
}

/** Progress is how far a file has come. */
export interface Progress {
  bytes: number;
  /** Left out where nobody knows it. */
  total: number | undefined;
}

/** TransferOptions go with a file that is copied between this machine and a sandbox. */
export interface TransferOptions extends CallOptions {
  /** Permissions in the sandbox; left out, those that the file has here. */
  mode?: number;
  onProgress?: (progress: Progress) => void;
}

/** maxHeld bounds a file that is held in memory, and maxListed the names of a list. */
const maxHeld = 1024 * 1024 * 1024;
const maxListed = 100_000;

/**
 * Files are those of a sandbox. Relative paths start in its workspace. A file that is
 * written is there whole or not at all, and is never sent twice.
 */
export class Files {
  constructor(private readonly handle: Handle) {}

  private get connection() {
    return this.handle.connection;
  }

  /** read returns a file as text. */
  async read(path: string, options: ReadOptions = {}): Promise<string> {
    return Buffer.from(await this.readBytes(path, options)).toString("utf8");
  }

  /** readBytes returns a file whole, in memory. Use readStream for what is large. */
  async readBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    let held = 0;
    for await (const piece of await this.readStream(path, options)) {
      held += piece.byteLength;
      if (held > maxHeld) throw new ExhaustedError(`${path} has more than 1 GiB, which is not held in memory`, { remedy: "use readStream, or download" });
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  /** readStream returns a file as it comes. It is open when this returns; who does not read it aborts the signal. */
  async readStream(path: string, options: ReadOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const { offset, length, signal } = options;
    // A length of 0 is refused where it travels.
    const query = { path, offset, length: length === 0 ? 1 : length };
    const res = await this.connection.read({ method: "GET", path: this.handle.path("/files"), query, accept: asBytes, signal, safe: true });
    if (length === 0) res.destroy();
    return length === 0 ? Readable.from([]) : this.connection.pieces(res, signal);
  }

  /** write replaces a file, and makes the directories above it. */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<void> {
    const headers: Record<string, string> = { "Content-Type": asBytes };
    if (options.mode !== undefined) headers["X-File-Mode"] = octal(options.mode);
    return this.send("/files", path, bodyOf(content, options.onProgress), headers, options.signal);
  }

  private async send(rest: string, path: string, body: Body, headers: Record<string, string>, signal?: AbortSignal): Promise<void> {
    return this.connection.tell({ method: "PUT", path: this.handle.path(rest), query: { path }, body, headers, signal });
  }

  /** upload copies a file of this machine into the sandbox, a piece at a time. */
  async upload(from: string, to: string, options: TransferOptions = {}): Promise<void> {
    const info = await stat(from);
    if (!info.isFile()) throw invalid("from", `${from} is not a file`);
    const total = info.size;
    const file = createReadStream(from, { highWaterMark: 256 * 1024 });
    try {
      await this.write(to, file, {
        signal: options.signal, mode: options.mode ?? info.mode & 0o777, onProgress: (bytes) => options.onProgress?.({ bytes, total }),
      });
    } finally {
      file.destroy();
    }
  }

  /** download copies a file of the sandbox to this machine, a piece at a time. It is there whole or not at all. */
  async download(from: string, to: string, options: TransferOptions = {}): Promise<void> {
    const { signal, onProgress } = options;
    const part = `${to}.${randomUUID()}.part`;
    const res = await this.connection.read({ method: "GET", path: this.handle.path("/files"), query: { path: from }, accept: asBytes, signal, safe: true });
    const size = res.headers["content-length"];
    const total = size === undefined ? undefined : Number(size);
    const pieces = this.connection.pieces(res, signal);
    async function* counted() {
      let bytes = 0;
      for await (const piece of pieces) {
        bytes += piece.byteLength;
        yield piece;
        onProgress?.({ bytes, total });
      }
    }
    try {
      await pipeline(counted, createWriteStream(part, { flags: "wx", mode: options.mode ?? 0o644 }));
      await rename(part, to);
    } catch (err) {
      res.destroy();
      await rm(part, { force: true });
      throw err;
    }
  }

  /** archive returns a directory as a tar, as it comes. */
  async archive(path = "", { signal }: CallOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const ask: Ask = { method: "GET", path: this.handle.path("/archive"), accept: asTar, signal, safe: true };
    if (path !== "") ask.query = { path };
    return this.connection.pieces(await this.connection.read(ask), signal);
  }

  /** unpack extracts a tar into a directory. Each file is whole or not there; those before one that is refused stay. */
  async unpack(path: string, tar: Content, { signal }: CallOptions = {}): Promise<void> {
    return this.send("/archive", path, bodyOf(tar), { "Content-Type": asTar }, signal);
  }

  /** walk yields what is below a directory, so many levels deep. */
  async *walk(path = ".", { depth = 1, signal }: { depth?: number } & CallOptions = {}): AsyncGenerator<FileInfo, void, undefined> {
    const ask: Ask = { method: "GET", path: this.handle.path("/files/list"), query: { path, depth }, signal, safe: true };
    for await (const event of this.connection.follow(ask, "end")) {
      if (event.name === "file") yield fileInfoOf(this.connection.data<FileForm>(event));
    }
  }

  /** list returns what is below a directory. */
  async list(path = ".", options: { depth?: number } & CallOptions = {}): Promise<FileInfo[]> {
    const all: FileInfo[] = [];
    for await (const file of this.walk(path, options)) {
      if (all.length >= maxListed) throw new ExhaustedError(`${path} has more than ${maxListed} files, which are not held in memory`, { remedy: "use walk" });
      all.push(file);
    }
    return all;
  }

  /** stat describes a file. */
  async stat(path: string, { signal }: CallOptions = {}): Promise<FileInfo> {
    return fileInfoOf(await this.connection.json<FileForm>({ method: "GET", path: this.handle.path("/files/stat"), query: { path }, signal, safe: true }));
  }

  /** exists reports whether there is a file of that name. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (err) {
      if (err instanceof NotFoundError && err.constructor === NotFoundError) return false;
      throw err;
    }
  }

  /** mkdir makes a directory and those above it. */
  async mkdir(path: string, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.handle.path("/files/mkdir"), json: { path }, signal });
  }

  /** move gives a file another name. */
  async move(from: string, to: string, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.handle.path("/files/move"), json: { from, to }, signal });
  }

  /** remove deletes a file or a whole directory. */
  async remove(path: string, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "DELETE", path: this.handle.path("/files"), query: { path }, signal });
  }

  /** tag gives a file attributes of its own; others that it has stay. */
  async tag(path: string, meta: Record<string, string>, { signal }: CallOptions = {}): Promise<void> {
    return this.connection.tell({ method: "POST", path: this.handle.path("/files/tag"), json: { path, meta }, signal });
  }

  /** downloadLink makes an address that reads a file without a key, for a while. */
  async downloadLink(path: string, options: { ttlMs?: number } & CallOptions = {}): Promise<Link> {
    return this.link("GET", path, options);
  }

  /** uploadLink makes an address that replaces a file without a key, for a while. */
  async uploadLink(path: string, options: { ttlMs?: number } & CallOptions = {}): Promise<Link> {
    return this.link("PUT", path, options);
  }

  private async link(method: string, path: string, { ttlMs, signal }: { ttlMs?: number } & CallOptions): Promise<Link> {
    return linkOf(await this.connection.json({ method: "POST", path: this.handle.path("/files/url"), json: { path, method, ttl_seconds: seconds(ttlMs) }, signal, safe: true }));
  }

  /** watch follows the changes below a directory. It returns when they are looked for. */
  async watch(path = ".", options: CallOptions = {}): Promise<Watch> {
    const stop = new AbortController();
    const forward = () => stop.abort(options.signal!.reason);
    if (options.signal?.aborted) throw aborted(options.signal);
    options.signal?.addEventListener("abort", forward, { once: true });
    const ask: Ask = { method: "GET", path: this.handle.path("/files/watch"), query: { path }, signal: stop.signal };
    const changes = changesOf(this.handle, ask);
    const watch = new Watch(changes, stop, () => options.signal?.removeEventListener("abort", forward));
    const first = await watch.next();
    if (first.done) throw this.connection.odd();
    return watch;
  }
}

/** changesOf yields first that it is looked for changes, and then them. */
async function* changesOf(handle: Handle, ask: Ask): AsyncGenerator<FileChange, void, undefined> {
  for await (const event of handle.connection.follow(ask, "end")) {
    if (event.name !== "change") continue;
    const form = handle.connection.data<{ kind: FileChange["kind"]; path?: string; path_base64?: string }>(event);
    yield { kind: form.kind, path: form.path ?? Buffer.from(form.path_base64 ?? "", "base64").toString("utf8") };
  }
}

/** Closed is the reason of a watch that its owner closed. */
class Closed extends CanceledError {}

/** Watch yields changes until it is closed, its signal ends or the connection breaks off. Who does not loop to the end closes it. */
export class Watch implements AsyncIterableIterator<FileChange>, AsyncDisposable {
  constructor(
    private readonly changes: AsyncGenerator<FileChange, void, undefined>,
    private readonly stop: AbortController,
    private readonly letGo: () => void,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<FileChange, void>> {
    try {
      const next = await this.changes.next();
      if (next.done) this.letGo();
      return next;
    } catch (err) {
      this.letGo();
      if (err instanceof Closed) return { done: true, value: undefined };
      throw err;
    }
  }

  async return(): Promise<IteratorResult<FileChange, void>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** close ends the watch, also while somebody waits for the next change. */
  close(): void {
    this.letGo();
    this.stop.abort(new Closed("the watch was closed"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

function octal(mode: number): string {
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) throw invalid("mode", "is not a file mode; use one such as 0o644");
  return "0" + mode.toString(8);
}


import type { ClientRequest } from "node:http";

import { invalid } from "./errors.js";

/** Content is what can be sent: a text, bytes, or a stream of either. */
export type Content = string | Uint8Array | ArrayBuffer | Blob | AsyncIterable<Uint8Array | string> | ReadableStream<Uint8Array>;

/** pieceSize bounds what is handed to the connection at a time. */
const pieceSize = 64 * 1024;

/** Body is what follows the head of a request. It can be sent once. */
export class Body {
  private begun = false;

  constructor(
    private readonly pieces: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>,
    /** In bytes, where that is known. */
    readonly length?: number,
  ) {}

  /** untouched reports whether nothing was taken from it. */
  untouched(): boolean {
    return !this.begun;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array | string, void, undefined> {
    this.begun = true;
    yield* this.pieces;
  }
}

/** bodyOf returns content as a body, and tells of each piece that was taken from it. */
export function bodyOf(content: Content, onProgress?: (sent: number) => void): Body {
  const whole = bytesOf(content);
  if (whole) return new Body(counted(slices(whole), onProgress), whole.byteLength);
  if (content instanceof Blob) return new Body(counted(content.stream() as AsyncIterable<Uint8Array>, onProgress), content.size);
  if (typeof content === "object" && content !== null && Symbol.asyncIterator in content) {
    return new Body(counted(content as AsyncIterable<Uint8Array | string>, onProgress));
  }
  throw invalid("content", "must be a text, bytes, or a stream of them");
}

/** bytesOf returns content that is in memory already, or undefined. */
export function bytesOf(content: unknown): Uint8Array | undefined {
  if (typeof content === "string") return Buffer.from(content, "utf8");
  if (content instanceof Uint8Array) return content;
  if (content instanceof ArrayBuffer) return new Uint8Array(content);
  return undefined;
}

function* slices(whole: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < whole.byteLength; from += pieceSize) yield whole.subarray(from, from + pieceSize);
}

async function* counted(
  pieces: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>, onProgress?: (sent: number) => void,
): AsyncGenerator<Uint8Array | string, void, undefined> {
  let sent = 0;
  for await (const piece of pieces) {
    const bytes = bytesOf(piece);
    if (!bytes) throw invalid("content", "is a stream of something that is neither a text nor bytes");
    yield bytes;
    sent += bytes.byteLength;
    onProgress?.(sent);
  }
}

/** encoded is a request in JSON, in which a number that is none would count as left out. */
export function encoded(json: unknown): string {
  return JSON.stringify(json, (name, value: unknown) => {
    if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))) throw invalid(name, `${value} is not a number that can be sent`);
    return value;
  });
}

/**
 * feed sends a body as fast as the connection takes it. It ends early, and lets go of
 * the body, when the request is over or was refused. An error of the body itself ends
 * the request and is told to fail as it is.
 */
export function feed(req: ClientRequest, body: Body, fail: (err: unknown) => void): void {
  let over = false;
  let wake: () => void = () => undefined;
  const end = () => {
    over = true;
    wake();
  };
  req.once("close", end);
  req.once("response", (res) => {
    // An answer that is a success may begin before all was sent: that of a program
    // whose input follows.
    if ((res.statusCode ?? 0) >= 300) end();
  });
  // A body may block for ever; it must not hold up the end.
  const orEnd = <T>(wait: Promise<T>) =>
    new Promise<T | undefined>((done, failed) => {
      wake = () => done(undefined);
      wait.then(done, failed);
    });
  const pour = async () => {
    const pieces = body[Symbol.asyncIterator]();
    try {
      while (!over) {
        const next = await orEnd(pieces.next());
        if (next === undefined || over) return;
        if (next.done) return void req.end();
        if (!req.write(next.value)) await orEnd(new Promise((drained) => req.once("drain", drained)));
      }
    } finally {
      // Not waited for: its turn comes when what it blocks on ends.
      void pieces.return().catch(() => undefined);
    }
  };
  pour().catch((err: unknown) => {
    fail(err);
    req.destroy(err instanceof Error ? err : undefined);
  });
}

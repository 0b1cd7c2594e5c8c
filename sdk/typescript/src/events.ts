import type { Readable } from "node:stream";

/** ServerEvent is one event of a text/event-stream. */
export interface ServerEvent {
  name: string;
  /** The last id that the stream has given, or "". */
  id: string;
  data: string;
}

/** maxEvent bounds an event, and so a line, in bytes. */
const maxEvent = 64 * 1024 * 1024;

/** TooLarge is the error of an event that is not held in memory. */
export class TooLarge extends Error {}

/**
 * serverEvents yields the events of a stream. Comments are left out, and so is an
 * event that the stream ends in the middle of.
 */
export async function* serverEvents(stream: AsyncIterable<Buffer>): AsyncGenerator<ServerEvent, void, undefined> {
  let name = "";
  let id = "";
  let data: string[] = [];
  let held = 0;
  for await (const line of lines(stream)) {
    if (line === "") {
      if (data.length > 0) yield { name, id, data: data.join("\n") };
      name = "";
      data = [];
      held = 0;
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") {
      held += value.length + 1;
      if (held > maxEvent) throw new TooLarge("an event is too large");
      data.push(value);
    }
  }
}

/** lines yields the lines of a stream, which end in LF or CR LF. Half a line is none. */
async function* lines(stream: AsyncIterable<Buffer>): AsyncGenerator<string, void, undefined> {
  let pieces: Buffer[] = [];
  let held = 0;
  for await (const piece of stream) {
    let from = 0;
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
      pieces.push(piece.subarray(from, at));
      const line = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      held = 0;
      from = at + 1;
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (from < piece.length) {
      pieces.push(piece.subarray(from));
      held += piece.length - from;
      if (held > maxEvent) throw new TooLarge("a line is too long");
    }
  }
}

/**
 * watched yields what a stream has, and calls alarm where the other side gives no
 * sign of life for so many milliseconds. Only the time in which it is waited for
 * counts: a slow consumer is not the server's fault.
 */
export async function* watched(stream: Readable, silence: number, alarm: () => void): AsyncGenerator<Buffer, void, undefined> {
  const pieces = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const timer = setTimeout(alarm, silence);
      const next = await pieces.next().finally(() => clearTimeout(timer));
      if (next.done) return;
      yield next.value;
    }
  } finally {
    stream.destroy();
  }
}

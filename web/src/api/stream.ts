// Event streams of the API, read as they come.

import { Problem, send, type Ask, type ProblemBody } from "./http";

export interface StreamEvent {
  name: string;
  id: string;
  data: unknown;
}

// One event is never larger than an answer; more than this is no stream of ours.
const maxPending = 64 << 20;

// events follows a stream. The event error is thrown as the problem that it is.
export async function* events(method: string, path: string, ask: Ask = {}): AsyncGenerator<StreamEvent> {
  const answer = await send(method, path, { ...ask, headers: { ...ask.headers, Accept: "text/event-stream" } });
  if (!answer.body) return;
  for await (const event of parsed(answer.body)) {
    if (event.name === "error") throw new Problem(event.data as ProblemBody);
    yield event;
  }
}

async function* parsed(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let pending = "";
  let atEnd = false; // of a line: an empty one after it ends an event
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const whole = value.includes("\n\n") || (atEnd && value.startsWith("\n"));
      atEnd = value.endsWith("\n");
      pending += value;
      if (pending.length > maxPending) throw new Problem({ status: 0, code: "unknown", error: "the server sends an event without an end" });
      if (!whole) continue; // a large event comes in many pieces, and is looked through once
      const blocks = pending.split("\n\n");
      pending = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined); // who leaves the loop leaves the stream
  }
}

function parseBlock(block: string): StreamEvent | undefined {
  const event: StreamEvent = { name: "message", id: "", data: undefined };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue; // a comment
    const value = line.slice(at + 1).replace(/^ /, "");
    switch (line.slice(0, at)) {
      case "event":
        event.name = value;
        break;
      case "id":
        event.id = value;
        break;
      case "data":
        data.push(value);
    }
  }
  if (data.length === 0) return undefined;
  event.data = JSON.parse(data.join("\n"));
  return event;
}

export interface Chunk {
  offset: number;
  data?: string;
  data_base64?: string;
}

// textOf returns what a program wrote, with a mark in the place of what is no text.
export function textOf(data: string | undefined, base64: string | undefined): string {
  if (data !== undefined) return data;
  if (base64 === undefined) return "";
  return new TextDecoder().decode(bytesOf(base64));
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

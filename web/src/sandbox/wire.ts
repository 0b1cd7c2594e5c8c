// The connection of one terminal: bytes both ways, and what became of it.

import { address, part, Problem } from "../api/http";
import type { Execution } from "../api/forms";
import { sandbox } from "../api/sandboxes";

export type State =
  | { is: "connecting" }
  | { is: "open" }
  | { is: "lost"; why: string }
  | { is: "ended"; how: string };

export interface Wire {
  type(data: string): void;
  resize(cols: number, rows: number): void;
  close(): void;
}

interface Note {
  type: "exit" | "error";
  result?: Execution;
  error?: { code: string; error: string; remedy?: string };
}

interface Ends {
  size: () => { cols: number; rows: number };
  show: (bytes: Uint8Array) => void;
  state: (s: State) => void;
}

const patience = [500, 1000, 2000, 4000, 8000];
const encoder = new TextEncoder();
const mostTyped = 64 << 10; // bytes in one message: a large paste in one piece would end the connection

// connect opens a terminal and opens another one when the connection is lost, until
// the shell ends, the sandbox does, or close is called.
export function connect(id: string, ends: Ends): Wire {
  let socket: WebSocket | undefined;
  let closed = false;
  let failures = 0;
  let reason: string | undefined; // that the server gave
  let due: ReturnType<typeof setTimeout> | undefined;

  const end = (how: string) => {
    closed = true;
    ends.state({ is: "ended", how });
  };

  const note = (text: string) => {
    const n = JSON.parse(text) as Note;
    if (n.type === "exit") end(howEnded(n.result));
    else if (n.error?.code === "unavailable" || n.error?.code === "unauthenticated") reason = n.error.error; // the server goes, or the sign-in is over: try again
    else end([n.error?.error, n.error?.remedy].filter(Boolean).join(" – "));
  };

  const lost = async () => {
    if (closed) return;
    let why = reason ?? "the connection was lost";
    reason = undefined;
    try {
      const s = await sandbox(id);
      if (s.status !== "running") return end(`the sandbox is ${s.status}`);
    } catch (problem) {
      if (problem instanceof Problem && problem.body.code === "not_found") return end("the sandbox was destroyed");
      if (problem instanceof Error) why = problem.message;
    }
    if (closed) return;
    ends.state({ is: "lost", why });
    due = setTimeout(dial, patience[Math.min(failures++, patience.length - 1)]);
  };

  const dial = () => {
    if (closed) return;
    ends.state({ is: "connecting" });
    const at = address(`api/sandboxes/${part(id)}/terminal`, ends.size());
    at.protocol = at.protocol.replace("http", "ws");
    const s = new WebSocket(at);
    socket = s;
    s.binaryType = "arraybuffer";
    s.onopen = () => {
      failures = 0;
      ends.state({ is: "open" });
    };
    s.onmessage = (m: MessageEvent<ArrayBuffer | string>) => (typeof m.data === "string" ? note(m.data) : ends.show(new Uint8Array(m.data)));
    s.onclose = () => void lost();
  };

  dial();
  const ready = () => socket?.readyState === WebSocket.OPEN;
  return {
    type: (data) => {
      const bytes = encoder.encode(data);
      for (let at = 0; at < bytes.length && ready(); at += mostTyped) socket?.send(bytes.subarray(at, at + mostTyped));
    },
    resize: (cols, rows) => {
      if (ready()) socket?.send(JSON.stringify({ type: "resize", cols, rows }));
    },
    close: () => {
      closed = true;
      clearTimeout(due);
      socket?.close();
    },
  };
}

function howEnded(r: Execution | undefined): string {
  if (!r) return "the shell ended";
  return r.outcome === "exited" ? `the shell ended with exit code ${r.exit_code}` : `the shell ended: ${r.outcome.replaceAll("_", " ")}`;
}

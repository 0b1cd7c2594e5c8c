// What happens on the server, as it happens: the journal is followed, and whoever
// shows something that changed asks again.

import { effect, signal, untracked } from "@preact/signals";
import { Problem } from "./api/http";
import { events } from "./api/stream";
import type { JournalEvent } from "./api/forms";
import { recall, who } from "./session";

// pulse counts up, at most a few times a second, when something was done.
export const pulse = signal(0);
// connected says whether the server can be heard.
export const connected = signal(true);

const hearers = new Set<(e: JournalEvent) => void>();

// hear calls back with each new line, until what it returns is called.
export function hear(back: (e: JournalEvent) => void): () => void {
  hearers.add(back);
  return () => hearers.delete(back);
}

const gather = 250; // milliseconds in which changes count as one
let due: ReturnType<typeof setTimeout> | undefined;

function beat(): void {
  due ??= setTimeout(() => {
    due = undefined;
    pulse.value++;
  }, gather);
}

let stop: AbortController | undefined;
let last = "";

// A browser has few connections to a server for all its tabs: one that nobody looks
// at holds none, and reads what it missed when somebody does.
const looked = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (looked.value = !document.hidden));

effect(() => {
  stop?.abort();
  stop = undefined;
  if (!who.value) last = "";
  if (!who.value || !looked.value) return;
  stop = new AbortController();
  void follow(stop.signal);
  void untracked(back); // it may have come back while nobody looked
  if (last) beat();
});

async function follow(signal: AbortSignal): Promise<void> {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    try {
      const headers: Record<string, string> = last ? { "Last-Event-ID": last } : {};
      for await (const event of events("GET", "api/events", { query: { follow: true, tail: last ? undefined : 1 }, headers, signal })) {
        if (!connected.value) await back();
        wait = 500;
        last = event.id || last;
        if (event.name !== "event") continue;
        for (const hearer of hearers) hearer(event.data as JournalEvent);
        beat();
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem && problem.body.code === "denied") {
        void polling(signal); // this key may not read the journal
        return;
      }
      if (problem instanceof Problem && problem.signedOut) {
        await recall();
        continue;
      }
    }
    if (signal.aborted) return;
    connected.value = false;
    await new Promise((resolve) => setTimeout(resolve, wait));
    await back();
  }
}

// back finds out whether the server is there again, and what it knows of us.
async function back(): Promise<void> {
  if (connected.value) return;
  try {
    const health = await fetch("health", { cache: "no-store" });
    if (!health.ok) return;
  } catch {
    return;
  }
  connected.value = true;
  if (!who.value) await recall();
  beat();
}

async function polling(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 3000));
    beat();
  }
}

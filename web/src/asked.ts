// What a component asks of the server: asked again when what it depends on changes,
// at the pulse of the server, or every so often.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { pulse } from "./live";
import { scrolling } from "./ui/scrolling";

export interface Asked<T> {
  value: T | undefined;
  problem: unknown;
  again: () => void;
}

export interface When {
  every?: number; // milliseconds
  live?: boolean; // with each pulse
  idle?: boolean; // not now
}

const least = 1000; // milliseconds between two questions that only the pulse asks for
const pause = 250; // milliseconds after which who scrolls is looked at again
const patience = 15000; // milliseconds that a question waits for them at most

export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, depends: unknown[], when: When = {}): Asked<T> {
  const [state, set] = useState<{ value: T | undefined; problem: unknown }>({ value: undefined, problem: undefined });
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  const about = useRef(depends);
  const now = useRef({ busy: false, missed: false, asked: 0 });
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  // soon asks once more after a while, and not while somebody scrolls; of several, the
  // earliest counts.
  const soon = (after: number, waited = 0) => {
    due.current ??= setTimeout(() => {
      due.current = undefined;
      if (scrolling() && waited < patience) soon(pause, waited + pause);
      else again();
    }, after);
  };

  useEffect(() => {
    if (when.idle) return;
    if (about.current.some((d, i) => d !== depends[i])) set({ value: undefined, problem: undefined }); // another thing
    about.current = depends;
    const stop = new AbortController();
    now.current = { busy: true, missed: false, asked: Date.now() };
    ask(stop.signal).then(
      (value) => !stop.signal.aborted && set({ value, problem: undefined }),
      (problem: unknown) => !stop.signal.aborted && set((old) => ({ value: old.value, problem })),
    ).finally(() => {
      if (stop.signal.aborted) return;
      now.current.busy = false;
      if (now.current.missed) soon(least);
      else if (when.every) soon(document.hidden ? when.every * 5 : when.every);
    });
    return () => {
      stop.abort();
      clearTimeout(due.current);
      due.current = undefined;
    };
  }, [...depends, turn, when.idle]);

  // A pulse never ends a question that is under way: with many, none would be answered.
  const beat = when.live ? pulse.value : 0;
  useEffect(() => {
    if (beat === 0 || when.idle) return;
    if (now.current.busy) {
      now.current.missed = true;
      return;
    }
    clearTimeout(due.current);
    due.current = undefined;
    soon(Math.max(0, now.current.asked + least - Date.now()));
  }, [beat]);

  return { ...state, again };
}

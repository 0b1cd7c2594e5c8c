// What a component asks of the server: asked again when what it depends on changes,
// at the pulse of the server, or every so often.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { pulse } from "./live";

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

export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, depends: unknown[], when: When = {}): Asked<T> {
  const [state, set] = useState<{ value: T | undefined; problem: unknown }>({ value: undefined, problem: undefined });
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  const beat = when.live ? pulse.value : 0;
  const about = useRef(depends);

  useEffect(() => {
    if (when.idle) return;
    if (about.current.some((d, i) => d !== depends[i])) set({ value: undefined, problem: undefined }); // another thing
    about.current = depends;
    const stop = new AbortController();
    let next: ReturnType<typeof setTimeout> | undefined;
    ask(stop.signal).then(
      (value) => !stop.signal.aborted && set({ value, problem: undefined }),
      (problem: unknown) => !stop.signal.aborted && set((old) => ({ value: old.value, problem })),
    ).finally(() => {
      if (when.every && !stop.signal.aborted) next = setTimeout(again, document.hidden ? when.every * 5 : when.every);
    });
    return () => {
      stop.abort();
      clearTimeout(next);
    };
  }, [...depends, turn, beat, when.idle]);

  return { ...state, again };
}

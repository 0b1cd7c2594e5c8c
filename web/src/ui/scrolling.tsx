// Whether somebody scrolls: what can wait does, so that no frame is late for it.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const rest = 200; // milliseconds without a step that end it
const few = 4; // that are shown in one frame
const waiting = new Set<() => void>();
let moving = false;
let due: ReturnType<typeof setTimeout> | undefined;

export const scrolling = (): boolean => moving;

export function scrolled(): void {
  moving = true;
  clearTimeout(due);
  due = setTimeout(() => {
    moving = false;
    show();
  }, rest);
}

function show(): void {
  if (moving) return;
  for (const one of [...waiting].slice(0, few)) {
    waiting.delete(one);
    one();
  }
  if (waiting.size > 0) requestAnimationFrame(show);
}

// Still shows what is in it when nobody scrolls, and from then on.
export function Still({ children }: { children: ComponentChildren }) {
  const [shown, setShown] = useState(!moving);
  useLayoutEffect(() => {
    if (shown) return;
    const one = () => setShown(true);
    waiting.add(one);
    return () => waiting.delete(one);
  }, [shown]);
  return shown ? <>{children}</> : null;
}

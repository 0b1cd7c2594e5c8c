// Short notes about what was done, or what could not be.

import { signal } from "@preact/signals";
import { Problem } from "../api/http";

interface Notice {
  id: number;
  text: string;
  bad: boolean;
}

const notices = signal<Notice[]>([]);
let last = 0;

export function say(text: string, bad = false): void {
  const id = ++last;
  notices.value = [...notices.value.slice(-3), { id, text, bad }];
  setTimeout(() => dismiss(id), bad ? 12000 : 5000);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((n) => n.id !== id);
}

// attempt does something and says what came of it.
export async function attempt<T>(act: () => Promise<T>, done?: string): Promise<T | undefined> {
  try {
    const value = await act();
    if (done) say(done);
    return value;
  } catch (problem) {
    const remedy = problem instanceof Problem && problem.body.remedy ? ` – ${problem.body.remedy}` : "";
    say((problem instanceof Error ? problem.message : String(problem)) + remedy, true);
    return undefined;
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((n) => (
        <p key={n.id} class={n.bad ? "bad" : undefined}>
          {n.text} <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(n.id)}>✕</button>
        </p>
      ))}
    </div>
  );
}

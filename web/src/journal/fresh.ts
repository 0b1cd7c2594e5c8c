// Lines of the journal that were read, and those that came since.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { JournalEvent } from "../api/forms";
import { hear } from "../live";

export const most = 5000;

// useFresh returns past with the new lines that are wanted, as long as live. wanted
// may change with what depends names.
export function useFresh(past: JournalEvent[] | undefined, live: boolean, wanted: (e: JournalEvent) => boolean, depends: unknown[]): JournalEvent[] {
  const [fresh, setFresh] = useState<JournalEvent[]>([]);
  useEffect(() => setFresh([]), depends);
  useEffect(() => (live ? hear((e) => wanted(e) && setFresh((old) => [...old.slice(1 - most), e])) : undefined), [live, ...depends]);
  return useMemo(() => {
    const last = past?.at(-1)?.seq ?? 0;
    return [...(past ?? []), ...fresh.filter((e) => e.seq > last)];
  }, [past, fresh]);
}

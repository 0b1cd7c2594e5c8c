// What was done to a sandbox, from the journal.

import { latest } from "../api/http";
import type { JournalEvent } from "../api/forms";
import { useAsked } from "../asked";
import { Events } from "../journal/events";
import { most, useFresh } from "../journal/fresh";
import { Empty, Shown } from "../ui/states";
import type { TabProps } from "./sandbox";

export function Timeline({ session }: TabProps) {
  const id = session.session_id;
  const asked = useAsked((s) => latest<JournalEvent>("api/events", { session_id: id }, most, s), [id]);
  const all = useFresh(asked.value, true, (e) => e.session_id === id, [id]);
  return (
    <Shown asked={asked} what="Reading the journal">
      {() => all.length === 0 ? <Empty title="The journal has nothing about it" /> : <Events rows={all} label="Timeline" />}
    </Shown>
  );
}

// What was done to a sandbox, from the journal.

import { list } from "../api/http";
import type { JournalEvent } from "../api/forms";
import { useAsked } from "../asked";
import { Events } from "../journal/events";
import { Empty, Shown } from "../ui/states";
import type { TabProps } from "./sandbox";

export function Timeline({ session }: TabProps) {
  const asked = useAsked((s) => list<JournalEvent>("api/events", { session_id: session.session_id }, 5000, s), [session.session_id], { live: true });
  return (
    <Shown asked={asked} what="Reading the journal">
      {(all) => all.length === 0 ? <Empty title="The journal has nothing about it" /> : <Events rows={all} label="Timeline" />}
    </Shown>
  );
}

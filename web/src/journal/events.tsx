// Lines of the journal, as a table; one of them opened.

import { useMemo, useState } from "preact/hooks";
import type { JournalEvent } from "../api/forms";
import { to } from "../route";
import { clock, milliseconds, moment } from "../text";
import { Facts } from "../ui/field";
import { Dialog } from "../ui/dialog";
import { Mark } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";

const columns = (open: (e: JournalEvent) => void): Column<JournalEvent>[] => [
  { title: "Line", width: 70, class: "number", cell: (e) => e.seq },
  { title: "Time", width: 90, cell: (e) => <time dateTime={e.time} title={moment(e.time)}>{clock(e.time)}</time> },
  { title: "What", class: "grow cut", cell: (e) => <button type="button" class="link" onClick={(x) => { x.stopPropagation(); open(e); }}><code>{e.kind}</code></button> },
  { title: "Phase", width: 90, class: "minor", cell: (e) => e.phase },
  { title: "How", width: 110, cell: (e) => <How event={e} /> },
  { title: "By", width: 200, class: "minor cut", cell: (e) => <bdi>{e.principal}</bdi> },
  { title: "Sandbox", width: 220, class: "cut minor", cell: (e) => e.session_id && <a href={to("sandboxes", e.session_id)} onClick={(x) => x.stopPropagation()}><code>{e.session_id}</code></a> },
  { title: "Took", width: 80, class: "number minor", cell: (e) => (e.wall_ms === undefined ? "" : milliseconds(e.wall_ms)) },
];

function How({ event: e }: { event: JournalEvent }) {
  if (e.effect === "deny" || e.effect === "ask") return <Mark word={e.effect} />;
  if (e.code) return <Mark word={e.code} tone="bad" />;
  if (e.outcome) return <Mark word={e.outcome} tone={e.outcome === "exited" || e.outcome === "ok" ? "good" : "warn"} />;
  return null;
}

export function Events({ rows, label }: { rows: JournalEvent[]; label: string }) {
  const [chosen, choose] = useState<JournalEvent>();
  const shown = useMemo(() => columns(choose), []);
  return (
    <>
      <Rows label={label} rows={rows} columns={shown} id={(e) => String(e.seq)} open={choose} chosen={chosen && String(chosen.seq)} end />
      {chosen && <Line event={chosen} close={() => choose(undefined)} />}
    </>
  );
}

function Line({ event: e, close }: { event: JournalEvent; close: () => void }) {
  return (
    <Dialog title={`Line ${e.seq}: ${e.kind}`} close={close} wide>
      <Facts of={[
        ["Time", moment(e.time)], ["Phase", e.intent ? `${e.phase} of line ${e.intent}` : e.phase], ["By", <bdi>{e.principal ?? "–"}</bdi>], ["Tenant", e.tenant ?? "–"],
        ["Sandbox", e.session_id ?? "–"], ["Provider", e.provider ?? "–"], ["Decision", e.effect ?? "–"], ["Rule", e.rule ?? "–"], ["Code", e.code ?? "–"], ["Outcome", e.outcome ?? "–"], ["Node", e.node_id ?? "–"],
      ]} />
      <pre class="out" tabIndex={0}>{JSON.stringify(e.data ?? {}, null, 2)}</pre>
      <p class="quiet">Commands, code and files stand in the journal as hashes and lengths only.</p>
    </Dialog>
  );
}

// The journal: what was done, by whom, and how it went.

import { useMemo, useState } from "preact/hooks";
import { get, list } from "../api/http";
import type { JournalEvent } from "../api/forms";
import { useAsked } from "../asked";
import { Events } from "../journal/events";
import { most, useFresh } from "../journal/fresh";
import { connected } from "../live";
import { may } from "../session";
import { count } from "../text";
import { Dialog } from "../ui/dialog";
import { Empty, Failure, Shown, Waiting } from "../ui/states";

const kinds = ["session.", "process.", "context.", "file.", "snapshot.", "trial.", "volume.", "run.", "link.", "template.", "admin.", "egress."];

export function Journal() {
  const [kind, setKind] = useState("");
  const [search, setSearch] = useState("");
  const [refused, setRefused] = useState(false);
  const [live, setLive] = useState(true);
  const asked = useAsked((s) => list<JournalEvent>("api/events", { kind, tail: most }, most, s), [kind]);

  const all = useFresh(asked.value, live, (e) => e.kind.startsWith(kind), [kind]);

  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter((e) => {
      if (refused && e.effect !== "deny" && !e.code) return false;
      if (words.length === 0) return true;
      const text = [e.kind, e.phase, e.principal, e.tenant, e.session_id, e.rule, e.code, e.outcome, e.seq].join(" ").toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }, [all, search, refused]);

  return (
    <section class="page tall" aria-labelledby="title">
      <header class="bar">
        <h1 id="title">Journal</h1>
        <span class="quiet">{rows.length} lines</span>
        <input type="search" class="search" placeholder="Search ( / )" aria-label="Search the journal" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        <select aria-label="Kind" value={kind} onChange={(e) => setKind(e.currentTarget.value)}>
          <option value="">Kind: all</option>
          {kinds.map((k) => <option key={k} value={k}>{k}*</option>)}
        </select>
        <label class="check"><input type="checkbox" checked={refused} onChange={(e) => setRefused(e.currentTarget.checked)} /> refused or failed</label>
        <label class="check"><input type="checkbox" checked={live} onChange={(e) => setLive(e.currentTarget.checked)} /> follow</label>
        {may("admin") && <Chain />}
        {live && <span class="quiet" role="status">{connected.value ? "live" : "not connected"}</span>}
      </header>
      <Shown asked={asked} what="Reading the journal">
        {() => rows.length === 0 ? <Empty title="No line is like that" /> : <Events rows={rows} label="Journal" />}
      </Shown>
    </section>
  );
}

interface Check {
  lines: number;
  problems: string[];
}

// Chain has the server check every line of the journal.
function Chain() {
  const [open, setOpen] = useState(false);
  const asked = useAsked((s) => get<Check>("api/events/verify", {}, s), [open], { idle: !open });
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>Verify the chain</button>
      {open && (
        <Dialog title="The chain of the journal" close={() => setOpen(false)}>
          {asked.problem !== undefined && <Failure problem={asked.problem} />}
          {!asked.value && asked.problem === undefined && <Waiting what="Checking every line" />}
          {asked.value?.problems.length === 0 && <p role="status">{count(asked.value.lines)} lines, all good: none was changed, lost or moved.</p>}
          {asked.value && asked.value.problems.length > 0 && <ul class="failure" role="alert">{asked.value.problems.map((p) => <li key={p}>{p}</li>)}</ul>}
        </Dialog>
      )}
    </>
  );
}

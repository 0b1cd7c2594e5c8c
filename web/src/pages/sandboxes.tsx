// The table of all sandboxes.

import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Session, Usage } from "../api/forms";
import { sandboxes, usage } from "../api/sandboxes";
import { useAsked } from "../asked";
import { may } from "../session";
import { go, to } from "../route";
import { ago, size } from "../text";
import { Status } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";
import { Still } from "../ui/scrolling";
import { Empty, Shown } from "../ui/states";
import { Actions } from "../sandbox/actions";
import { Create } from "./create";

type Filters = Record<"provider" | "status" | "user_id" | "thread_id" | "project_name", string>;
const none: Filters = { provider: "", status: "", user_id: "", thread_id: "", project_name: "" };
const titles: [keyof Filters, string][] = [["status", "Status"], ["provider", "Provider"], ["user_id", "User"], ["thread_id", "Thread"], ["project_name", "Project"]];

const valueOf = (s: Session, name: keyof Filters): string => s[name] ?? "";

function matches(s: Session, search: string, filters: Filters): boolean {
  for (const [name] of titles) if (filters[name] && valueOf(s, name) !== filters[name]) return false;
  if (!search) return true;
  const text = [s.session_id, s.provider, s.status, s.user_id, s.thread_id, s.project_name, s.template, s.flavor, s.owner, s.tenant].join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

const together = 4; // rows whose usage is asked for at once

type Known = Signal<ReadonlyMap<string, Usage>>;

// useUsage asks for the usage of the rows that can be seen. Only the cells that show it
// are drawn again.
function useUsage(seen: Session[]): Known {
  const known: Known = useSignal(new Map<string, Usage>());
  const ids = seen.filter((s) => s.status === "running").map((s) => s.session_id);
  useAsked(async (signal) => {
    const todo = [...ids];
    const found = new Map<string, Usage>();
    const worker = async () => {
      for (let id = todo.shift(); id !== undefined && !signal.aborted; id = todo.shift()) {
        try {
          found.set(id, await usage(id, signal));
        } catch {
          // it has ended meanwhile
        }
      }
    };
    await Promise.all(Array.from({ length: together }, worker));
    known.value = signal.aborted ? new Map([...known.value, ...found]) : found; // where rows come and go all the time, no round ends
    return Date.now();
  }, [ids.join(" ")], { every: 3000, idle: ids.length === 0 });
  return known;
}

function Used({ session, known, show }: { session: Session; known: Known; show: (u: Usage) => string }) {
  const u = session.status === "running" ? known.value.get(session.session_id) : undefined;
  return <>{u ? show(u) : "–"}</>;
}

const tick = 5000; // milliseconds between two looks at the clock
const now = signal(Date.now());

function Ago({ time }: { time: string | undefined }) {
  return <>{ago(time, now.value)}</>;
}

// useSame returns the list with what was the same before as it was, so that rows in
// which nothing changed are not drawn again.
function useSame(list: Session[] | undefined): Session[] {
  const before = useRef(new Map<string, { session: Session; text: string }>());
  return useMemo(() => {
    const known = new Map<string, { session: Session; text: string }>();
    for (const session of list ?? []) {
      const text = JSON.stringify(session);
      const old = before.current.get(session.session_id);
      known.set(session.session_id, old?.text === text ? old : { session, text });
    }
    before.current = known;
    return [...known.values()].map((k) => k.session).sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
  }, [list]);
}

const openPage = (s: Session) => go("sandboxes", s.session_id);

function columnsOf(used: Known, again: () => void): Column<Session>[] {
  return [
    { title: "Sandbox", width: 222, class: "grow short", cell: (s) => <a href={to("sandboxes", s.session_id)} onClick={(e) => e.stopPropagation()}><code>{s.session_id}</code></a> },
    { title: "Status", width: 96, class: "short", cell: (s) => <Status session={s} /> },
    { title: "Provider", width: 84, cell: (s) => s.provider },
    { title: "Template", width: 90, class: "minor roomy", cell: (s) => s.template ?? "base" },
    { title: "Project", class: "minor cut", cell: (s) => <bdi>{s.project_name}</bdi> },
    { title: "User", class: "minor cut", cell: (s) => <bdi>{s.user_id}</bdi> },
    { title: "Thread", class: "minor cut", cell: (s) => <bdi>{s.thread_id}</bdi> },
    { title: "Memory", width: 84, class: "number short", cell: (s) => <Used session={s} known={used} show={(u) => size(u.memory_bytes)} /> },
    { title: "CPU", width: 70, class: "number minor short", cell: (s) => <Used session={s} known={used} show={(u) => `${u.cpu_seconds.toFixed(1)} s`} /> },
    { title: "Used", width: 110, class: "minor roomy short", cell: (s) => <Ago time={s.last_activity} /> },
    { title: "Ends", width: 92, class: "minor roomy short", cell: (s) => (s.status === "running" ? <Ago time={s.expires_at} /> : "–") },
    { title: "Do", width: 290, class: "actions short", cell: (s) => <Still><Actions session={s} again={again} small /></Still> },
  ];
}

export function Sandboxes() {
  const asked = useAsked(async (s) => {
    const all = await sandboxes(s);
    now.value = Date.now();
    return all;
  }, [], { live: true, every: 15000 });
  const [search, setSearch] = useState("");
  const [filters, setFilters] = useState(none);
  const [making, setMaking] = useState(false);
  const [seen, setSeen] = useState<Session[]>([]);
  const used = useUsage(seen);

  const all = useSame(asked.value);
  const rows = useMemo(() => all.filter((s) => matches(s, search, filters)), [all, search, filters]);
  const choices = useMemo(() => titles.map(([name]) => [...new Set(all.map((s) => valueOf(s, name)).filter(Boolean))].sort().slice(0, 200)), [all]);
  const columns = useMemo(() => columnsOf(used, asked.again), [used, asked.again]);
  useEffect(() => {
    const timer = setInterval(() => (now.value = Date.now()), tick);
    return () => clearInterval(timer);
  }, []);
  const filtered = search !== "" || titles.some(([name]) => filters[name] !== "");
  return (
    <section class="page tall" aria-labelledby="title">
      <header class="bar">
        <h1 id="title">Sandboxes</h1>
        <span class="quiet">{asked.value && `${rows.length} of ${asked.value.length}`}</span>
        <input type="search" class="search" placeholder="Search ( / )" aria-label="Search sandboxes" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        {titles.map(([name, title], i) => (
          <select key={name} aria-label={title} value={filters[name]} class={name === "status" || name === "provider" ? undefined : "minor"} onChange={(e) => setFilters({ ...filters, [name]: e.currentTarget.value })}>
            <option value="">{title}</option>
            {choices[i]?.map((v) => <option key={v} value={v}>{v}</option>)}
          </select>
        ))}
        {may("sandbox:write") && <button type="button" class="primary" onClick={() => setMaking(true)}>New sandbox</button>}
      </header>
      <Shown asked={asked} what="Looking for sandboxes">
        {() => rows.length > 0
          ? <Rows label="Sandboxes" rows={rows} columns={columns} id={(s) => s.session_id} open={openPage} seen={setSeen} />
          : filtered
            ? <Empty title="No sandbox is like that"><button type="button" onClick={() => { setSearch(""); setFilters(none); }}>Show all</button></Empty>
            : <Empty title="No sandboxes yet"><p>A sandbox runs code that nobody has read. Open one here, or with <code>cove sandbox create</code>.</p></Empty>}
      </Shown>
      {making && <Create close={() => setMaking(false)} />}
    </section>
  );
}

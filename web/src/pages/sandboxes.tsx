// The table of all sandboxes.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Session, Usage } from "../api/forms";
import { sandboxes, usage } from "../api/sandboxes";
import { useAsked } from "../asked";
import { may } from "../session";
import { go, to } from "../route";
import { ago, size } from "../text";
import { Status } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";
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

// useUsage asks for the usage of the rows that can be seen.
function useUsage(seen: Session[]): Map<string, Usage> {
  const known = useRef(new Map<string, Usage>());
  const ids = seen.filter((s) => s.status === "running").map((s) => s.session_id);
  useAsked(async (signal) => {
    const todo = [...ids];
    const worker = async () => {
      for (let id = todo.shift(); id !== undefined && !signal.aborted; id = todo.shift()) {
        try {
          known.current.set(id, await usage(id, signal));
        } catch {
          known.current.delete(id); // it has ended meanwhile
        }
      }
    };
    await Promise.all(Array.from({ length: together }, worker));
    return Date.now();
  }, [ids.join(" ")], { every: 3000, idle: ids.length === 0 });
  return known.current;
}

export function Sandboxes() {
  const asked = useAsked(sandboxes, [], { live: true, every: 15000 });
  const [search, setSearch] = useState("");
  const [filters, setFilters] = useState(none);
  const [making, setMaking] = useState(false);
  const [seen, setSeen] = useState<Session[]>([]);
  const used = useUsage(seen);

  const rows = useMemo(
    () => (asked.value ?? []).filter((s) => matches(s, search, filters)).sort((a, b) => b.created_at.localeCompare(a.created_at)),
    [asked.value, search, filters],
  );
  const columns: Column<Session>[] = [
    { title: "Sandbox", width: 222, class: "grow", cell: (s) => <a href={to("sandboxes", s.session_id)} onClick={(e) => e.stopPropagation()}><code>{s.session_id}</code></a> },
    { title: "Status", width: 96, cell: (s) => <Status session={s} /> },
    { title: "Provider", width: 84, cell: (s) => s.provider },
    { title: "Template", width: 90, class: "minor roomy", cell: (s) => s.template ?? "base" },
    { title: "Project", class: "minor cut", cell: (s) => <bdi>{s.project_name}</bdi> },
    { title: "User", class: "minor cut", cell: (s) => <bdi>{s.user_id}</bdi> },
    { title: "Thread", class: "minor cut", cell: (s) => <bdi>{s.thread_id}</bdi> },
    { title: "Memory", width: 84, class: "number", cell: (s) => { const u = used.get(s.session_id); return u && s.status === "running" ? size(u.memory_bytes) : "–"; } },
    { title: "CPU", width: 70, class: "number minor", cell: (s) => { const u = used.get(s.session_id); return u && s.status === "running" ? `${u.cpu_seconds.toFixed(1)} s` : "–"; } },
    { title: "Used", width: 110, class: "minor roomy", cell: (s) => ago(s.last_activity) },
    { title: "Ends", width: 92, class: "minor roomy", cell: (s) => (s.status === "running" ? ago(s.expires_at) : "–") },
    { title: "Do", width: 290, class: "actions", cell: (s) => <Actions session={s} again={asked.again} small /> },
  ];
  const filtered = search !== "" || titles.some(([name]) => filters[name] !== "");
  return (
    <section class="page tall" aria-labelledby="title">
      <header class="bar">
        <h1 id="title">Sandboxes</h1>
        <span class="quiet">{asked.value && `${rows.length} of ${asked.value.length}`}</span>
        <input type="search" class="search" placeholder="Search ( / )" aria-label="Search sandboxes" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        {titles.map(([name, title]) => {
          const all = [...new Set((asked.value ?? []).map((s) => valueOf(s, name)).filter(Boolean))].sort();
          return (
            <select key={name} aria-label={title} value={filters[name]} class={name === "status" || name === "provider" ? undefined : "minor"} onChange={(e) => setFilters({ ...filters, [name]: e.currentTarget.value })}>
              <option value="">{title}</option>
              {all.slice(0, 200).map((v) => <option key={v} value={v}>{v}</option>)}
            </select>
          );
        })}
        {may("sandbox:write") && <button type="button" class="primary" onClick={() => setMaking(true)}>New sandbox</button>}
      </header>
      <Shown asked={asked} what="Looking for sandboxes">
        {() => rows.length > 0
          ? <Rows label="Sandboxes" rows={rows} columns={columns} id={(s) => s.session_id} open={(s) => go("sandboxes", s.session_id)} seen={setSeen} />
          : filtered
            ? <Empty title="No sandbox is like that"><button type="button" onClick={() => { setSearch(""); setFilters(none); }}>Show all</button></Empty>
            : <Empty title="No sandboxes yet"><p>A sandbox runs code that nobody has read. Open one here, or with <code>cove sandbox create</code>.</p></Empty>}
      </Shown>
      {making && <Create close={() => setMaking(false)} />}
    </section>
  );
}

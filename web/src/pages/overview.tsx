// How the platform is, at a glance.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api/http";
import type { Share, Stats } from "../api/platform";
import { useAsked } from "../asked";
import { may } from "../session";
import { to } from "../route";
import { ago, count, size, span } from "../text";
import { Chart } from "../ui/charts";
import { Scroll } from "../ui/scroll";
import { Shown } from "../ui/states";
import { Tasks } from "./tasks";

const most = 900;
const mega = 1 << 20;

interface Point {
  at: number;
  stats: Stats;
}

const colors = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];

// The charts go on while another page is shown, as long as somebody comes back.
let points: Point[] = [];

export function Overview() {
  if (may("sandbox:read")) return <Numbered />;
  return <section class="page" aria-labelledby="title"><header class="bar"><h1 id="title">Overview</h1></header><Tasks /></section>;
}

function Numbered() {
  const asked = useAsked((s) => get<Stats>("api/stats", {}, s), [], { live: true, every: 2000 });
  const [, draw] = useState(0);
  useEffect(() => {
    if (!asked.value) return;
    points = [...points.slice(1 - most), { at: Date.now() / 1000, stats: asked.value }];
    draw((n) => n + 1);
  }, [asked.value]);
  return (
    <section class="page" aria-labelledby="title">
      <header class="bar"><h1 id="title">Overview</h1></header>
      <Shown asked={asked} what="Asking for the numbers">
        {(s) => (
          <>
            <div class="tiles">
              <Tile title="Sandboxes" value={count(s.active_sessions)} note={s.max_sessions > 0 ? `of ${count(s.max_sessions)} at most` : "live"} href={to("sandboxes")} />
              <Tile title="Prepared" value={`${s.pool_available}`} note={`of ${s.pool_size} in the pool`} />
              <Tile title="Found again" value={`${(s.session_reuse_rate * 100).toFixed(0)} %`} note={`${count(s.sessions_reused)} of ${count(s.sessions_opened)} opened`} />
              <Tile title="Memory" value={size(s.total_memory_mb * (1 << 20))} note={s.max_memory_mb > 0 ? `promised, of ${size(s.max_memory_mb * (1 << 20))}` : "promised"} />
              <Tile title="Processors" value={s.total_cpus.toFixed(1)} note="promised" />
              <Tile title="Programs run" value={count(s.executions)} note={`${count(s.active_runs)} questions to data now`} />
              <Tile title="Waiting" value={count(s.queued)} note="for room" />
              <Tile title="Up for" value={span(s.uptime_seconds)} note={`${s.provider} on ${s.node_id}`} />
            </div>
            <div class="charts">
              <Numbers title="Memory used by provider" of={lines(used((s) => s.used_memory_mb * mega), (s) => `of ${size(s.total_memory_mb * mega)} promised`)} format={size} bytes least={1 << 24} />
              <Numbers title="Processors used by provider" of={lines(used((s) => s.used_cpus), (s) => `of ${s.total_cpus.toFixed(1)} promised`)} format={(n) => n.toFixed(2)} least={0.1} />
              <Numbers title="Memory promised by provider" of={lines((s) => s.total_memory_mb * mega)} format={size} bytes least={1 << 28} />
              <Numbers title="Processors promised by provider" of={lines((s) => s.total_cpus)} format={(n) => n.toFixed(1)} least={2} />
              <Numbers title="Sandboxes by provider" of={lines((s) => s.active_sessions)} format={whole} least={5} />
              <Numbers title="Pool" of={[["prepared", "--chart-2", (p) => p.stats.pool_available], ["waiting for room", "--chart-4", (p) => p.stats.queued]]} format={whole} least={5} />
              <Numbers title="Found again" of={[["of those opened", "--chart-1", (p) => p.stats.session_reuse_rate * 100]]} format={(n) => `${n.toFixed(0)} %`} least={100} />
              <Numbers title="Programs run" of={[["in all", "--chart-3", (p) => p.stats.executions]]} format={whole} least={5} />
            </div>
            <div class="two">
              <section aria-labelledby="by"><h2 id="by">By provider and status</h2><Grouped shares={s.by_provider} /></section>
              {may("admin") && <Tasks />}
            </div>
          </>
        )}
      </Shown>
    </section>
  );
}

function Tile({ title, value, note, href }: { title: string; value: string; note: string; href?: string }) {
  const inner = <><span class="tile-title">{title}</span><strong>{value}</strong><span class="quiet">{note}</span></>;
  return href ? <a class="tile" href={href}>{inner}</a> : <div class="tile">{inner}</div>;
}

const whole = (n: number): string => n.toFixed(0);

// providers are those that had a sandbox while somebody looked, or the usual one.
function providers(): string[] {
  const names = new Set(points.flatMap((p) => Object.keys(p.stats.by_provider)));
  const usual = points.at(-1)?.stats.provider;
  return names.size > 0 ? [...names].sort() : usual ? [usual] : [];
}

// used is a number that there is as far as it was measured. Of a provider without a
// sandbox all is known.
const used = (of: (s: Share) => number) => (s: Share): number | null => (s.measured_sessions > 0 || s.active_sessions === 0 ? of(s) : null);

// lines draws one number of each provider, with a note on what it is now.
function lines(of: (s: Share) => number | null, note?: (s: Share) => string): Line[] {
  const now = points.at(-1)?.stats.by_provider ?? {};
  return providers().map((name, i): Line => {
    const share = now[name];
    return [name, colors[i % colors.length] ?? "--chart-1", (p) => { const s = p.stats.by_provider[name]; return s ? of(s) : 0; }, share && note?.(share)];
  });
}

type Line = [label: string, color: string, value: (p: Point) => number | null, note?: string | undefined];

function Numbers({ title, of, format, least, bytes = false }: { title: string; of: Line[]; format: (n: number) => string; least: number; bytes?: boolean }) {
  return <Chart title={title} bytes={bytes} times={points.map((p) => p.at)} format={format} least={least} series={of.map(([label, color, value, note]) => ({ label, color, note, values: points.map(value) }))} />;
}

function Grouped({ shares }: { shares: Record<string, Share> }) {
  const all = Object.entries(shares).sort(([a], [b]) => a.localeCompare(b));
  const states = [...new Set(all.flatMap(([, s]) => Object.keys(s.sessions_by_status)))].sort();
  if (all.length === 0) return <p class="quiet">No sandbox is open.</p>;
  const head = (title: string) => <th key={title} scope="col" class="number">{title}</th>;
  return (
    <Scroll label="Sandboxes by provider"><table class="plain">
      <thead><tr><th scope="col">Provider</th>{states.map(head)}{["memory used", "memory promised", "processors used", "processors promised"].map(head)}<th scope="col">measured</th></tr></thead>
      <tbody>
        {all.map(([name, s]) => (
          <tr key={name}><th scope="row">{name}</th>{states.map((st) => <td key={st} class="number">{count(s.sessions_by_status[st] ?? 0)}</td>)}
            <td class="number">{s.measured_sessions > 0 ? size(s.used_memory_mb * mega) : "–"}</td>
            <td class="number">{size(s.total_memory_mb * mega)}</td>
            <td class="number">{s.measured_sessions > 0 ? s.used_cpus.toFixed(2) : "–"}</td>
            <td class="number">{s.total_cpus.toFixed(1)}</td>
            <td>{s.measured_at ? `${count(s.measured_sessions)} of ${count(s.active_sessions)}, ${ago(s.measured_at)}` : "–"}</td>
          </tr>
        ))}
      </tbody>
    </table></Scroll>
  );
}

// How the platform is, at a glance.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api/http";
import type { Session } from "../api/forms";
import { sandboxes } from "../api/sandboxes";
import type { Stats } from "../api/platform";
import { useAsked } from "../asked";
import { may } from "../session";
import { to } from "../route";
import { bytesIn, count, size, span } from "../text";
import { Chart } from "../ui/charts";
import { Scroll } from "../ui/scroll";
import { Shown } from "../ui/states";
import { Tasks } from "./tasks";

const most = 900;

// Share is what the sandboxes of one provider hold.
interface Share {
  sandboxes: number; // that are not over
  memory: number; // bytes that are promised
  cpus: number;
}

interface Point {
  at: number;
  stats: Stats;
  providers: Record<string, Share>;
}

const colors = ["--chart-1", "--chart-2", "--chart-3", "--chart-4"];

const holds = (s: Session): boolean => s.status === "running" || s.status === "paused";

function perProvider(sessions: Session[]): Record<string, Share> {
  const shares: Record<string, Share> = {};
  for (const s of sessions) {
    if (s.status === "ended") continue;
    const share = (shares[s.provider] ??= { sandboxes: 0, memory: 0, cpus: 0 });
    share.sandboxes++;
    if (!holds(s)) continue;
    share.memory += bytesIn(s.resource_limits.memory_limit);
    share.cpus += Number(s.resource_limits.cpu_limit ?? 0);
  }
  return shares;
}

// The charts go on while another page is shown, as long as somebody comes back.
let points: Point[] = [];

export function Overview() {
  if (may("sandbox:read")) return <Numbered />;
  return <section class="page" aria-labelledby="title"><header class="bar"><h1 id="title">Overview</h1></header><Tasks /></section>;
}

function Numbered() {
  const asked = useAsked((s) => get<Stats>("api/stats", {}, s), [], { live: true, every: 2000 });
  const sessions = useAsked(sandboxes, [], { live: true });
  const [, draw] = useState(0);
  useEffect(() => {
    if (!asked.value || !sessions.value) return;
    points = [...points.slice(1 - most), { at: Date.now() / 1000, stats: asked.value, providers: perProvider(sessions.value) }];
    draw((n) => n + 1);
  }, [asked.value, sessions.value]);
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
              <Numbers title="Sandboxes by provider" of={lines((s) => s.sandboxes)} format={whole} least={5} />
              <Numbers title="Memory promised by provider" of={lines((s) => s.memory)} format={size} bytes least={1 << 28} />
              <Numbers title="Processors promised by provider" of={lines((s) => s.cpus)} format={(n) => n.toFixed(1)} least={2} />
              <Numbers title="Pool" of={[["prepared", "--chart-2", (p) => p.stats.pool_available], ["waiting for room", "--chart-4", (p) => p.stats.queued]]} format={whole} least={5} />
              <Numbers title="Found again" of={[["of those opened", "--chart-1", (p) => p.stats.session_reuse_rate * 100]]} format={(n) => `${n.toFixed(0)} %`} least={100} />
              <Numbers title="Programs run" of={[["in all", "--chart-3", (p) => p.stats.executions]]} format={whole} least={5} />
            </div>
            <div class="two">
              <section aria-labelledby="by"><h2 id="by">By provider and status</h2><Grouped sessions={sessions.value ?? []} /></section>
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
  const names = new Set(points.flatMap((p) => Object.keys(p.providers)));
  const usual = points.at(-1)?.stats.provider;
  return names.size > 0 ? [...names].sort() : usual ? [usual] : [];
}

// lines draws one number of each provider.
const lines = (of: (s: Share) => number): Line[] =>
  providers().map((name, i): Line => [name, colors[i % colors.length] ?? "--chart-1", (p) => { const share = p.providers[name]; return share ? of(share) : 0; }]);

type Line = [label: string, color: string, value: (p: Point) => number];

function Numbers({ title, of, format, least, bytes = false }: { title: string; of: Line[]; format: (n: number) => string; least: number; bytes?: boolean }) {
  return <Chart title={title} bytes={bytes} times={points.map((p) => p.at)} format={format} least={least} series={of.map(([label, color, value]) => ({ label, color, values: points.map(value) }))} />;
}

function Grouped({ sessions }: { sessions: Session[] }) {
  const live = sessions.filter((s) => s.status !== "ended");
  const shares = perProvider(live);
  const providers = Object.keys(shares).sort();
  const states = [...new Set(live.map((s) => s.status))].sort();
  if (live.length === 0) return <p class="quiet">No sandbox is open.</p>;
  return (
    <Scroll label="Sandboxes by provider"><table class="plain">
      <thead><tr><th scope="col">Provider</th>{states.map((s) => <th key={s} scope="col" class="number">{s}</th>)}<th scope="col" class="number">memory</th><th scope="col" class="number">processors</th></tr></thead>
      <tbody>
        {providers.map((p) => (
          <tr key={p}><th scope="row">{p}</th>{states.map((st) => <td key={st} class="number">{live.filter((s) => s.provider === p && s.status === st).length}</td>)}
            <td class="number">{size(shares[p]?.memory ?? 0)}</td>
            <td class="number">{(shares[p]?.cpus ?? 0).toFixed(1)}</td>
          </tr>
        ))}
      </tbody>
    </table></Scroll>
  );
}

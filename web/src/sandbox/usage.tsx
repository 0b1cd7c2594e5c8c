// What a sandbox uses, while it is looked at.

import { useEffect, useState } from "preact/hooks";
import type { Usage } from "../api/forms";
import { usage } from "../api/sandboxes";
import { count, size } from "../text";
import { Chart } from "../ui/charts";
import { Facts } from "../ui/field";
import { Failure } from "../ui/states";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

const most = 600; // of a second each

interface Point {
  at: number;
  used: Usage;
  cpus: number | null;
}

export function UsageTab({ session, again }: TabProps) {
  return <Awake session={session} again={again}><Charts id={session.session_id} /></Awake>;
}

function Charts({ id }: { id: string }) {
  const [points, setPoints] = useState<Point[]>([]);
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    const stop = new AbortController();
    let due: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      try {
        const used = await usage(id, stop.signal);
        const at = Date.now() / 1000;
        setPoints((old) => {
          const last = old.at(-1);
          const cpus = last ? Math.max(0, (used.cpu_seconds - last.used.cpu_seconds) / (at - last.at)) : null;
          return [...old.slice(1 - most), { at, used, cpus }];
        });
        setProblem(undefined);
      } catch (p) {
        if (!stop.signal.aborted) setProblem(p);
      }
      if (!stop.signal.aborted) due = setTimeout(() => void look(), 1000);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(due);
    };
  }, [id]);
  const times = points.map((p) => p.at);
  const now = points.at(-1)?.used;
  return (
    <div class="stack">
      {problem !== undefined && <Failure problem={problem} />}
      <div class="charts">
        <Chart title="Memory" times={times} least={1 << 20} format={size} bytes series={[{ label: "now", color: "--chart-1", values: points.map((p) => p.used.memory_bytes) }]} />
        <Chart title="Processors" times={times} least={0.1} format={(n) => n.toFixed(2)} series={[{ label: "now", color: "--chart-2", values: points.map((p) => p.cpus) }]} />
        <Chart title="Programs" times={times} least={4} format={(n) => n.toFixed(0)} series={[{ label: "now", color: "--chart-3", values: points.map((p) => p.used.pids) }]} />
        <Chart title="Files on disk" times={times} least={1 << 20} format={size} bytes series={[{ label: "now", color: "--chart-4", values: points.map((p) => p.used.disk_bytes) }]} />
      </div>
      {now && <Facts of={[["Most memory", size(now.peak_memory_bytes)], ["CPU time in all", `${now.cpu_seconds.toFixed(2)} s`], ["Files", count(now.files)]]} />}
    </div>
  );
}

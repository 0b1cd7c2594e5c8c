// A chart of numbers over time, that grows while it is looked at.

import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../theme";

export interface Series {
  label: string;
  color: string; // a token of style.css
  values: (number | null)[];
  note?: string | undefined; // said behind the last of them
}

interface Props {
  title: string;
  times: number[]; // seconds
  series: Series[];
  format: (value: number) => string;
  least?: number; // the top of the axis is at least this
  bytes?: boolean; // ticks at powers of two
}

const shortest = 60; // seconds that a chart shows at least

const powers = Array.from({ length: 48 }, (_, i) => 2 ** i);

const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export default function Chart({ title, times, series, format, least = 1, bytes }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const dark = isDark();

  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const line = token("--line");
    const axis = { stroke: token("--quiet"), grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui, sans-serif" };
    plot.current = new uPlot(
      {
        width: b.clientWidth, height: 150, cursor: { y: false }, legend: { show: false }, padding: [8, 8, 0, 0],
        scales: { x: { range: (_, from, to) => [Math.min(from, to - shortest), to] }, y: { range: (_, __, most) => [0, Math.max(least, (most || 0) * 1.1)] } },
        axes: [{ ...axis, size: 26 }, { ...axis, size: 64, values: (_, ticks) => ticks.map(format), ...(bytes && { incrs: powers }) }],
        series: [{}, ...series.map((s) => ({ label: s.label, stroke: token(s.color), width: 1.5, fill: token(s.color) + "22", points: { show: false } }))],
      },
      [times, ...series.map((s) => s.values)], b,
    );
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: b.clientWidth, height: 150 }));
    watch.observe(b);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [dark, series.length]);

  useEffect(() => plot.current?.setData([times, ...series.map((s) => s.values)]), [times]);

  const now = series.map((s) => {
    const last = s.values.at(-1);
    return `${s.label} ${last == null ? "–" : format(last)}${s.note ? ` ${s.note}` : ""}`;
  }).join(", ");
  return (
    <figure class="chart">
      <figcaption><span>{title}</span> <output>{now}</output></figcaption>
      <div ref={box} role="img" aria-label={`${title}: ${now}`} data-points={times.length} />
    </figure>
  );
}

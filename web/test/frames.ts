// What a page does for each frame while it scrolls, as the browser tells it. Times are
// those of the processor: what else runs on the machine makes a frame late, but
// hardly longer.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";

export const budget = 1000 / 60; // milliseconds that a frame has

export interface Frames {
  all: number;
  late: number; // those for which the page worked longer than a frame has
  median: number; // milliseconds of work
  p99: number;
  longest: number;
  interval: number; // the median between two frames, by the clock
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number; // microseconds, as the others
  tdur?: number; // that a processor worked on it
}

// scroll scrolls what a selector names from its beginning to its end, 120 pixels for
// each frame, and waits until all that was put off is done.
const scroll = (selector: string): string => `(async () => {
  const box = document.querySelector(${JSON.stringify(selector)});
  const end = box.scrollHeight - box.clientHeight;
  for (let y = 0; y < end + 120; y += 120) {
    await new Promise((next) => requestAnimationFrame(next));
    box.scrollTop = y;
  }
  await new Promise((resolve) => setTimeout(resolve, 400));
  await new Promise((next) => requestAnimationFrame(next));
})()`;

export async function framesOf(page: Page, selector: string): Promise<Frames> {
  await page.bringToFront();
  await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).scrollTop = 0`);
  await page.waitForTimeout(1000);
  const talk = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  talk.on("Tracing.dataCollected", (e) => events.push(...(e.value as unknown as TraceEvent[])));
  const over = new Promise((resolve) => talk.once("Tracing.tracingComplete", resolve));
  await talk.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] } });
  await page.evaluate(scroll(selector));
  await talk.send("Tracing.end");
  await over;
  await talk.detach();
  return counted(events);
}

// counted gives each task of the page's thread to the frame that was finished next.
function counted(events: TraceEvent[]): Frames {
  const first = events.find((e) => e.name === "FireAnimationFrame");
  assert.ok(first, "no frame was traced");
  const ours = events.filter((e) => e.ph === "X" && e.pid === first.pid && e.tid === first.tid);
  const ends = ours.filter((e) => e.name === "Commit").map((e) => e.ts).sort((a, b) => a - b);
  const work = ends.map(() => 0);
  for (const task of ours) {
    if (task.name !== "RunTask") continue;
    assert.ok(task.tdur !== undefined, "the browser does not tell the time of the processor");
    const at = ends.findIndex((end) => task.ts <= end);
    if (at >= 0) work[at] = (work[at] ?? 0) + task.tdur / 1000;
  }
  const sorted = (list: number[]) => list.toSorted((a, b) => a - b);
  const part = (list: number[], p: number): number => Math.round(10 * (list[Math.min(list.length - 1, Math.floor(list.length * p))] ?? 0)) / 10;
  const times = sorted(work);
  const gaps = sorted(ends.slice(1).map((end, i) => (end - (ends[i] ?? 0)) / 1000));
  return { all: work.length, late: work.filter((w) => w > budget).length, median: part(times, 0.5), p99: part(times, 0.99), longest: part(times, 1), interval: part(gaps, 0.5) };
}

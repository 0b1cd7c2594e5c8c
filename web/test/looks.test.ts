// Everybody can use it: what axe finds, on a phone, and with many rows.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { framesOf, type Frames } from "./frames";
import { browse, openTab, Server, signIn, until } from "./rig";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const sandboxes = 1000;

let server: Server;
let browser: Browser;
let id: string;

before(async () => {
  // Pretend sandboxes: there are many.
  server = await new Server({ SANDBOX_PROVIDER: "fake", MSB_MAX_SESSIONS: String(sandboxes), MSB_MAX_TOTAL_MEMORY_MB: "67108864" }).start();
  browser = await browse();
  let left = sandboxes;
  const open = async () => {
    while (left-- > 0) id = await server.sandbox({ user_id: `user-${left % 7}`, thread_id: `thread-${left}`, project_name: `project-${left % 3}` });
  };
  await Promise.all(Array.from({ length: 8 }, open));
});

after(async () => {
  await browser?.close();
  await server?.close();
});

interface Found {
  violations: { id: string; impact: string; help: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

async function accessible(page: Page, where: string): Promise<void> {
  const found = (await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`)) as Found;
  const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${where}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary).join("; ")}`), []);
}

const places = (one: string): [string, string | RegExp][] => [
  ["overview", "Overview"], ["sandboxes", "Sandboxes"], ["data", "Runs and data"], ["journal", "Journal"], ["keys", "Keys and tenants"], ["doctor", "Doctor"],
  ...["about", "code", "files", "processes", "usage", "ports", "network", "trial", "timeline", "terminal"].map((t): [string, RegExp] => [`sandboxes/${one}/${t}`, new RegExp(one)]),
];

for (const theme of ["light", "dark"] as const) {
  test(`axe finds nothing serious, ${theme}`, async () => {
    const { page, faults } = await openTab(browser, { theme });
    await page.goto(server.url);
    await page.getByLabel("Key").waitFor();
    await accessible(page, "sign in");
    await signIn(page, server);
    for (const [place, title] of places(id)) {
      await page.goto(`${server.url}/#/${place}`);
      await page.getByRole("heading", { name: title, level: 1 }).waitFor();
      await page.locator(".waiting").first().waitFor({ state: "detached" });
      await accessible(page, place);
    }
    await page.goto(`${server.url}/#/sandboxes`);
    await page.getByRole("button", { name: "New sandbox" }).click();
    await page.getByRole("dialog").waitFor();
    await accessible(page, "the form");
    assert.deepEqual(faults, []);
    await page.context().close();
  });
}

test("a phone shows each page without scrolling sideways", async () => {
  const { page } = await openTab(browser, { width: 390, height: 780 });
  await signIn(page, server);
  for (const [place, title] of places(id)) {
    await page.goto(`${server.url}/#/${place}`);
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    const over = await page.evaluate("Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth) - innerWidth");
    assert.ok(Number(over) <= 0, `${place} is ${String(over)} pixels wider than the window`);
  }
  await page.context().close();
});

test("first content comes within a second", async () => {
  const { page } = await openTab(browser);
  await signIn(page, server);
  const paints: number[] = [];
  for (let i = 0; i < 3; i++) {
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    paints.push(Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")));
  }
  console.log("first content after", paints.map((p) => Math.round(p)).join(", "), "ms");
  assert.ok(Math.min(...paints) < 1000, `it took ${paints.join(", ")} ms`);
  await page.context().close();
});

test("1,000 rows scroll without dropped frames", async () => {
  const { page, context } = await openTab(browser);
  await signIn(page, server, "#/sandboxes");
  await page.getByText(`${sandboxes} of ${sandboxes}`).waitFor();
  await until("the rows", async () => (await page.locator("[data-row]").count()) > 10);
  const empty = await context.newPage();
  await empty.setContent(`<div id="box" style="height: 700px; overflow: auto"><div style="height: ${sandboxes * 34}px">nothing</div></div>`);
  const nothing = await framesOf(empty, "#box");
  console.log("frames of an empty page:", JSON.stringify(nothing));
  assert.ok((await page.locator("[data-row]").count()) < 60, "rows that nobody sees are in the document");
  // What disturbs the machine only adds to the work, so of three times the best counts.
  let best: Frames | undefined;
  for (let turn = 0; turn < 3 && !(best && smooth(best, nothing)); turn++) {
    const change = setInterval(() => void server.api("POST", `/api/sandboxes/${id}/renew`), 300); // the table lives
    const frames = await framesOf(page, ".rows").finally(() => clearInterval(change));
    console.log("frames of the table:", JSON.stringify(frames));
    if (!best || frames.p99 < best.p99) best = frames;
  }
  assert.ok(best && best.all > 200 && best.all < 600, `${best?.all} frames to the end of the table`);
  assert.ok(smooth(best, nothing), `of ${best.all} frames ${best.late} take too long, and the longest ${best.longest} ms of work`);
  await until("the buttons of the last row", async () => (await page.locator("[data-row]").last().getByRole("button").count()) > 1);
  await page.getByLabel("Search sandboxes").fill("thread-999");
  await page.getByText(`1 of ${sandboxes}`).waitFor();
  await context.close();
});

// smooth: no more than one frame of a hundred is late for what the page does, beyond
// those of a page that does nothing, and none so much that somebody sees it.
const smooth = (f: Frames, nothing: Frames): boolean => f.late - nothing.late <= f.all / 100 && f.longest < 50 + nothing.longest;

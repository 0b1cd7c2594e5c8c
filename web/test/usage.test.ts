// What the sandboxes of each provider use, beside what they were promised.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, Server, signIn, until } from "./rig";

let server: Server;
let browser: Browser;
let busy: string;

before(async () => {
  // Pretend sandboxes are there only where they are the usual ones.
  server = await new Server({ SANDBOX_PROVIDER: "fake" }).start();
  browser = await browse();
  busy = await server.sandbox({ provider: "local", memory_limit: "300m", cpu_limit: "0.5" });
  await server.sandbox();
});

after(async () => {
  await browser?.close();
  if (busy) await server.api("DELETE", `/api/sandboxes/${busy}`);
  await server?.close();
});

test("a busy sandbox moves the charts of its provider, and of no other", async () => {
  const { page, faults } = await openTab(browser);
  await signIn(page, server);
  const text = async (what: string) => (await page.getByRole("img", { name: new RegExp(`^${what} used by provider`) }).getAttribute("aria-label")) ?? "";
  const used = async (what: string, provider: string): Promise<number> => {
    const [, n, unit] = new RegExp(`[:,] ${provider} ([\\d.]+)(?: ([KMG]?B))?`).exec(await text(what)) ?? [];
    return n === undefined ? NaN : Number(n) * (unit ? 1024 ** ["B", "KB", "MB", "GB"].indexOf(unit) : 1);
  };
  await until("the use of both, at rest", async () => (await used("Processors", "local")) < 0.03 && (await used("Processors", "fake")) === 0);
  assert.match(await text("Processors"), /local [\d.]+ of 0\.5 promised/);
  assert.match(await text("Memory"), /local [\d.]+ [KM]B of 300 MB promised/);
  const before = await used("Memory", "local");
  await server.api("POST", `/api/sandboxes/${busy}/processes`, { command: ["python3", "-c", "x = bytearray(100 << 20)\nwhile True: pass"] });
  await until("busy processors", async () => (await used("Processors", "local")) > 0.06); // a loaded machine gives it less than it may have
  await until("full memory", async () => (await used("Memory", "local")) > before + (90 << 20));
  assert.equal(await used("Processors", "fake"), 0);
  assert.equal(await used("Memory", "fake"), 0);
  await page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "local" }) }).getByText(/^1 of 1, /).waitFor();
  await server.api("POST", `/api/sandboxes/${busy}/stop`);
  await until("nothing", async () => (await used("Processors", "local")) === 0 && (await used("Memory", "local")) === 0);
  assert.deepEqual(faults, []);
});

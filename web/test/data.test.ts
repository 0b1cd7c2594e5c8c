// Questions to data, where there is an engine for them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, Server, signIn, write, type Tab } from "./rig";

const skip = process.env["COVE_DUCKDB"] ? false : "COVE_DUCKDB names no engine";

let server: Server;
let browser: Browser;
let tab: Tab;
let dir: string;

before(async () => {
  if (skip) return;
  dir = mkdtempSync(join(tmpdir(), "d"));
  execFileSync(process.env["COVE_BIN"] ?? "cove", ["dataset", "generate", join(dir, "sets")]);
  server = await new Server({ COVE_DATASETS: join(dir, "sets") }).start();
  browser = await browse();
  tab = await openTab(browser);
  await signIn(tab.page, server, "#/data");
});

after(async () => {
  await browser?.close();
  await server?.close();
  if (dir) rmSync(dir, { recursive: true, force: true });
});

test("a table is looked into and asked", { skip }, async () => {
  const { page } = tab;
  await page.getByLabel("Dataset", { exact: true }).selectOption("ecommerce");
  await page.getByText("reorder_level").waitFor();
  await write(page, "Question", "SELECT count(*) AS pieces FROM inventory");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("columnheader", { name: "pieces" }).waitFor();
  await page.getByRole("region", { name: "Rows" }).getByText("120").waitFor();
});

test("a question that policy refuses says which rule, and where", { skip }, async () => {
  const { page } = tab;
  await write(page, "Question", "SELECT * FROM read_csv('/etc/passwd')");
  await page.keyboard.press("Control+Enter");
  const blocked = page.locator(".answer .blocked");
  await blocked.waitFor();
  const text = await blocked.innerText();
  assert.match(text, /read_csv/);
  assert.match(text, /line 1, column 15/);
  await page.getByText("Asked before").waitFor();
  assert.deepEqual(tab.faults, []);
});

test("an error of the engine is an answer", { skip }, async () => {
  const { page } = tab;
  await write(page, "Question", "SELECT no_such_column FROM inventory");
  await page.keyboard.press("Control+Enter");
  await page.locator(".answer .raised, .answer .blocked").getByText(/no_such_column/).first().waitFor();
});

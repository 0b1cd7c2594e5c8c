// Questions to data, where there is an engine for them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
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

test("a question in Python is answered", { skip }, async () => {
  const { page } = tab;
  await page.getByLabel("Kind of question").selectOption("python");
  await write(page, "Question", "result_rows = [[len(inventory), '<b>bold</b>']]\nresult_columns = ['pieces', 'word']");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("columnheader", { name: "word" }).waitFor();
  await page.getByRole("region", { name: "Rows" }).getByText("<b>bold</b>").waitFor();
  await write(page, "Question", "import socket");
  await page.keyboard.press("Control+Enter");
  await page.locator(".answer .blocked").getByText(/socket/).first().waitFor();
});

test("a capsule is read, and saved", { skip }, async () => {
  const { page, faults } = tab;
  const sql = "SELECT count(*) AS pieces FROM inventory";
  await page.getByRole("button", { name: sql }).first().click();
  await page.getByRole("columnheader", { name: "pieces" }).waitFor();
  await page.getByText("Capsule", { exact: true }).click();
  const part = (name: string) => page.locator(".capsule").getByRole("region", { name });
  await part("Inputs").getByText("ecommerce.inventory", { exact: true }).waitFor();
  await part("Inputs").getByText(createHash("sha256").update(sql).digest("hex")).waitFor();
  await part("Question").getByText(sql).waitFor();
  await part("Policy").getByText("Nothing in it was refused.").waitFor();
  await part("Result").getByText(createHash("sha256").update("[[120]]").digest("hex")).waitFor();
  await part("Environment").getByText("local").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save" }).click()]);
  const saved = JSON.parse(readFileSync(await download.path(), "utf8")) as { run_id: string; rows: unknown };
  assert.equal(download.suggestedFilename(), `run-${saved.run_id}.json`);
  assert.deepEqual(saved.rows, [[120]]);
  assert.deepEqual(faults, []);
});

test("what was asked is read a page at a time, the newest first", { skip }, async () => {
  const { page } = tab;
  for (let i = 0; i < 25; i++) await server.api("POST", "/api/runs", { query_type: "sql", sql: `SELECT ${i} AS n` });
  const asked: string[] = [];
  page.on("request", (r) => r.url().includes("/api/runs?") && asked.push(r.url()));
  await page.reload();
  const past = page.getByRole("region", { name: "Asked before" });
  await past.getByText("SELECT 24 AS n").waitFor();
  assert.equal(await past.getByRole("listitem").count(), 20);
  assert.equal(asked.length, 1, `it asked ${asked.join(" ")}`);
  await past.getByRole("button", { name: "Older" }).click();
  await past.getByText("SELECT 0 AS n").waitFor();
  await past.getByText("page 2").waitFor();
  assert.equal(await past.getByText("SELECT 24 AS n").count(), 0);
  await past.getByRole("button", { name: "Newer" }).click();
  await past.getByText("SELECT 24 AS n").waitFor();
});

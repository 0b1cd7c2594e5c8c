// Whatever the size of what is in a sandbox, the page answers and changes nothing by itself.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, screen, Server, signIn, until, write, type Tab } from "./rig";

let server: Server;
let browser: Browser;
let tab: Tab;
let id: string;

before(async () => {
  server = await new Server().start();
  browser = await browse();
  tab = await openTab(browser);
  id = await server.sandbox();
  await signIn(tab.page, server);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

const at = (path: string): string => `${server.url}/api/sandboxes/${id}/files?path=${path}`;
const key = () => ({ Authorization: `Bearer ${server.key}` });

async function put(path: string, body: string): Promise<void> {
  assert.equal((await fetch(at(path), { method: "PUT", headers: key(), body })).status, 204);
}

async function choose(name: string): Promise<void> {
  await tab.page.getByRole("treeitem").filter({ hasText: name }).last().getByRole("button").click();
}

test("lines keep their ends", async () => {
  const { page } = tab;
  await put("dos.txt", "one\r\ntwo\r\n");
  await put("mixed.txt", "one\r\ntwo\n");
  await page.goto(`${server.url}/#/sandboxes/${id}/files`);
  await choose("dos.txt");
  const content = page.getByRole("textbox", { name: /^Content of dos/ });
  await content.getByText("one").waitFor();
  assert.equal(await page.getByText("changed, not saved").count(), 0, "a file is changed by looking at it");
  await content.click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.insertText("number ");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved").waitFor();
  assert.equal(await (await fetch(at("dos.txt"), { headers: key() })).text(), "number one\r\ntwo\r\n");
  await choose("mixed.txt");
  await page.getByText("This is not shown here").waitFor();
});

test("of a file that grows no more is read than can be shown", async () => {
  const { page } = tab;
  await put("grows", "small");
  await page.getByRole("button", { name: "Read the files again" }).click();
  await page.getByRole("treeitem").filter({ hasText: "grows" }).last().waitFor();
  await server.api("POST", `/api/sandboxes/${id}/execute`, { command: "truncate -s 100M grows" });
  const answer = page.waitForResponse((r) => r.url().includes("path=%2Fworkspace%2Fgrows"));
  await choose("grows");
  const { responseBodySize } = await (await answer).request().sizes();
  assert.ok(responseBodySize < 20e6, `${responseBodySize} bytes were read`);
  await page.getByText("This is not shown here").waitFor();
});

test("a folder of very many files says that there are more", async () => {
  const { page } = tab;
  await server.api("POST", `/api/sandboxes/${id}/execute`, { command: "mkdir many && cd many && seq 2100 | xargs touch" });
  await page.getByRole("button", { name: "Read the files again" }).click();
  await choose("many");
  await page.getByText("There may be more than these 2000").waitFor();
});

// answering asks the page for something until an end, and returns the longest wait.
async function answering(what: string, ended: () => Promise<boolean>): Promise<number> {
  let slowest = 0;
  await until(what, async () => {
    const asked = Date.now();
    const over = await ended();
    slowest = Math.max(slowest, Date.now() - asked);
    return over;
  }, 120_000);
  return slowest;
}

const much = "yes 0123456789012345678901234567890123456789 | head -c 100000000";

test("100 MB from code, and from a program in the background", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/code`);
  await page.getByLabel("Language").selectOption("command");
  await write(page, "Code", much);
  await page.keyboard.press("Control+Enter");
  let slowest = await answering("the end of code", async () => (await page.locator(".cell[data-running=false]").count()) > 0);
  assert.ok(slowest < 3000, `with code the page did not answer for ${slowest} ms`);
  await page.goto(`${server.url}/#/sandboxes/${id}/processes`);
  await page.getByLabel("Command to start in the background").fill(`${much}; echo; echo the end`);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  slowest = await answering("the end of a program", async () => (await page.locator("pre.follow").innerText()).endsWith("the end\n"));
  assert.ok(slowest < 3000, `with a program the page did not answer for ${slowest} ms`);
});

test("a large paste reaches the terminal whole", async () => {
  const { page, faults } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/terminal`);
  await page.locator("[data-state=open]").waitFor();
  await until("a prompt", async () => (await screen(page)).includes("$"));
  await page.locator(".terminal-box").click();
  await page.keyboard.type("stty -echo; wc -c\n");
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "0123456789\n".repeat(150_000));
    document.querySelector(".xterm-helper-textarea")?.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
  });
  await page.keyboard.press("Control+d");
  await until("the count", async () => (await screen(page)).includes("1650000"));
  assert.deepEqual(faults, []);
});

test("what runs can be stopped after another part was looked at", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/code`);
  await page.getByLabel("Language").selectOption("command");
  await write(page, "Code", "echo begun; sleep 600");
  await page.keyboard.press("Control+Enter");
  await page.locator(".cell").last().getByText("begun", { exact: true }).waitFor();
  await page.getByRole("link", { name: "About", exact: true }).click();
  await page.getByRole("heading", { name: "What is enforced" }).waitFor();
  await page.getByRole("link", { name: "Code", exact: true }).click();
  await page.getByRole("button", { name: "Stop", exact: true }).last().click();
  await page.getByText("it was stopped").waitFor();
});

test("many tabs leave connections for one more", async () => {
  const { page, context } = tab;
  const others = [];
  for (let i = 0; i < 8; i++) {
    const other = await context.newPage();
    others.push(other);
    await other.goto(`${server.url}/#/journal`);
    await other.getByText("live", { exact: true }).waitFor();
    await other.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
  }
  await page.reload();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  for (const other of others) await other.close();
});

// The walk of somebody who looks at the console for the first time.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, screen, Server, signIn, until, write, type Tab } from "./rig";

let server: Server;
let browser: Browser;
let tab: Tab;

before(async () => {
  server = await new Server({ SANDBOX_COMMAND_POLICY: "" }).start();
  browser = await browse();
  tab = await openTab(browser);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

const plot = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()";

test("from the link to a plot and a terminal in eight steps", async () => {
  const { page } = tab;
  let steps = 0;
  const step = async (act: Promise<unknown>) => {
    steps++;
    await act;
  };
  await page.goto(server.loginURL);
  await step(page.getByRole("button", { name: "Sign in" }).click());
  await step(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Sandboxes" }).click());
  await step(page.getByRole("button", { name: "New sandbox" }).click());
  await step(page.getByRole("button", { name: "Open sandbox" }).click());
  await step(page.getByRole("link", { name: "Code", exact: true }).click());
  await step(write(page, "Code", plot));
  await step(page.getByRole("button", { name: "Run", exact: true }).click());
  const picture = page.locator("article img.value");
  await picture.waitFor();
  await until("the picture to be drawn", () => picture.evaluate((i) => (i as HTMLImageElement).naturalWidth > 100));
  await step(page.getByRole("link", { name: "Terminal", exact: true }).click());
  await page.locator("[data-state=open]").waitFor();
  assert.ok(steps <= 8, `it took ${steps} steps`);
});

test("what is typed into the terminal is answered", async () => {
  const { page } = tab;
  await until("a prompt", async () => (await screen(page)).includes("$"));
  await page.keyboard.type("echo the answer is $((6*7))\n");
  await until("the answer", async () => (await screen(page)).includes("the answer is 42"));
});

test("errors and tables of code are shown", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Code", exact: true }).click();
  await write(page, "Code", "import pandas as pd\npd.DataFrame({'city': ['Rome'], 'people': [2]})");
  await page.keyboard.press("Control+Enter");
  await page.frameLocator("iframe.value").getByText("Rome").waitFor();
  await write(page, "Code", "1/0");
  await page.keyboard.press("Control+Enter");
  await page.getByText("ZeroDivisionError").first().waitFor();
});

const hostile = `<img src=x onerror="window.ran=1"> & 'a' "b" ;#?%.txt`;

test("a file with a hostile name is uploaded, changed and downloaded", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Files", exact: true }).click();
  await page.getByLabel("Files to upload").setInputFiles({ name: hostile, mimeType: "text/plain", buffer: Buffer.from("first\n") });
  const row = page.getByRole("treeitem").filter({ hasText: "onerror" }).last();
  await row.getByRole("button").click();
  await page.getByRole("textbox", { name: /^Content of/ }).getByText("first").waitFor();
  await write(page, /^Content of/, "second\n");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
  assert.equal(readFileSync(await download.path(), "utf8"), "second\n");
  assert.equal(await page.evaluate("window.ran"), undefined);
});

test("files are dropped into a folder", async () => {
  const { page } = tab;
  const dropped = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["a picture that is none"], "dropped.png"));
    return data;
  });
  await page.locator(".files").dispatchEvent("drop", { dataTransfer: dropped });
  const row = page.getByRole("treeitem").filter({ hasText: "dropped.png" }).last();
  await row.getByRole("button").click();
  await page.getByRole("textbox", { name: /^Content of/ }).getByText("none").waitFor();
});

test("the usage chart moves", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  const chart = page.getByRole("img", { name: /^Memory/ });
  const points = async () => Number(await chart.getAttribute("data-points"));
  await until("a first point", async () => (await points()) >= 2);
  const seen = await points();
  await until("more points", async () => (await points()) > seen);
  assert.match((await chart.getAttribute("aria-label")) ?? "", /^Memory: now [\d.]+ [KM]B$/);
});

test("it stops and starts, and keeps its files", async () => {
  const { page } = tab;
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText("The sandbox is stopped").waitFor();
  await page.getByRole("button", { name: "Start it" }).click();
  await page.getByRole("img", { name: /^Memory/ }).waitFor();
  await page.getByRole("link", { name: "Files", exact: true }).click();
  await page.getByRole("treeitem").filter({ hasText: "onerror" }).first().waitFor();
});

test("a trial shows what would change", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Trial", exact: true }).click();
  await page.getByLabel("Command to try").fill("echo 1 > tried; rm -f *.txt; echo more >> dropped.png");
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.getByText("/workspace/tried").waitFor();
  await page.getByText("1 file created, 1 modified, 1 removed").waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByText("Nothing is on trial").waitFor();
});

test("programs, ports, network and timeline", async () => {
  const { page } = tab;
  await page.getByRole("link", { name: "Processes", exact: true }).click();
  await page.getByLabel("Command to start in the background").fill("echo begun; sleep 600");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.locator("pre.follow").getByText("begun").waitFor();
  await page.getByRole("button", { name: /^Send KILL/ }).click();
  await page.getByText("KILL was sent").waitFor();
  await page.getByRole("link", { name: "Ports", exact: true }).click();
  await page.getByLabel("Port inside").fill("3000");
  await page.getByRole("button", { name: "Make a link" }).click();
  await page.getByRole("link", { name: "Open port 3000" }).waitFor();
  await page.getByRole("link", { name: "Network", exact: true }).click();
  await page.getByText("It has tried nothing yet").waitFor();
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.getByText("process.signal").first().waitFor();
});

test("what a sandbox tried to reach is listed, with the reason", async () => {
  const { page } = tab;
  const id = await server.sandbox({ network: { mode: "allow", allow: ["allowed.example"] } });
  await server.api("POST", `/api/sandboxes/${id}/execute`, { command: "python3 -c 'import socket; socket.create_connection((\"denied.example\", 80), 3)'", timeout: 10 });
  await page.goto(`${server.url}/#/sandboxes/${id}/network`);
  const log = page.getByRole("region", { name: "Connections" });
  await log.getByText("denied.example").first().waitFor();
  await log.getByText("deny", { exact: true }).first().waitFor();
});

test("a blocked command says why", async () => {
  const { page } = tab;
  const id = await server.sandbox({ policy: "agent-bash" });
  await page.goto(`${server.url}/#/sandboxes/${id}/code`);
  await page.getByLabel("Language").selectOption("command");
  await write(page, "Code", "echo a; sudo reboot");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const blocked = page.locator(".blocked");
  await blocked.waitFor();
  const text = await blocked.innerText();
  assert.match(text, /sudo/);
  assert.match(text, /line 1, column 9/);
});

test("it is destroyed after a question", async () => {
  const { page } = tab;
  await page.getByRole("button", { name: "Destroy" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  await page.getByText(/was destroyed|is over/).waitFor();
  assert.deepEqual(tab.faults, []);
});

test("the other pages", async () => {
  const { page } = tab;
  const go = (name: string) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
  await go("Overview");
  await page.getByRole("img", { name: /^Sandboxes by provider/ }).waitFor();
  await page.getByRole("button", { name: "Pause expiry" }).click();
  await page.getByRole("button", { name: "Resume expiry" }).click();
  await go("Journal");
  await page.getByText("session.close").first().click();
  await page.getByRole("dialog").getByText("hashes and lengths only").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Verify the chain" }).click();
  await page.getByText(/lines, all good/).waitFor();
  await page.keyboard.press("Escape");
  await go("Keys and tenants");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("a second one");
  await page.getByRole("button", { name: "Make it" }).click();
  assert.match(await page.getByLabel("Secret").inputValue(), /^cove_/);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Revoke a second one" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke a second one" }).waitFor({ state: "detached" });
  await go("Doctor");
  await page.getByRole("rowheader", { name: /^local/ }).waitFor();
  await page.getByLabel("Provider to attack").selectOption("local");
  await page.getByRole("button", { name: "Verify" }).click();
  await page.getByRole("region", { name: "Attacks" }).getByText("held").first().waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  assert.deepEqual(tab.faults, []);
});

test("keys: / searches, ? helps", async () => {
  const { page } = tab;
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.type"), "search");
  await page.keyboard.press("Tab");
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("who signs out is out, in every tab", async () => {
  const { page, context } = tab;
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByRole("navigation", { name: "Pages" }).waitFor();
  await other.evaluate((key) => sessionStorage.setItem("cove.key", key), server.key); // as if it was typed there
  await page.getByRole("button", { name: "Sign out" }).click();
  for (const one of [page, other]) {
    await one.getByLabel("Key").waitFor();
    await one.reload();
    await one.getByLabel("Key").waitFor();
    assert.equal(await one.evaluate("sessionStorage.length"), 0, "a tab keeps the key");
  }
  await signIn(page, server);
  await other.close();
});

test("who signs in as somebody else is that in every tab, and finds nothing of the one before", async () => {
  const { page, context } = tab;
  const { secret } = await server.api<{ secret: string }>("POST", "/api/keys", { name: "another", scopes: ["sandbox:read"] });
  const headers = { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" };
  const link = await fetch(`${server.url}/api/login-links`, { method: "POST", body: "{}", headers });
  await page.evaluate("window.before = true");
  const other = await context.newPage();
  await other.goto(((await link.json()) as { url: string }).url);
  await other.getByRole("button", { name: "Sign in" }).click();
  for (const one of [other, page]) await one.getByText("another of default").waitFor();
  assert.equal(await page.evaluate("window.before"), undefined, "the page of the one before is still there");
  assert.equal(await page.evaluate("sessionStorage.length"), 0, "the key of the one before is still there");
  await other.close();
});

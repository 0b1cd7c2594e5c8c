// Every button does what it says, by the mouse or by the keyboard.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, Server, signIn, until, type Tab } from "./rig";

let server: Server;
let browser: Browser;
let tab: Tab;
let id: string;

before(async () => {
  server = await new Server().start();
  browser = await browse();
  tab = await openTab(browser);
  id = await server.sandbox({ user_id: "ann", project_name: "one" });
  await signIn(tab.page, server);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

interface Told {
  session_id: string;
  status: string;
  expires_at: string;
  user_id?: string;
  spec: { network?: { mode?: string; allow?: string[] }; memory_limit?: string };
  resource_limits: { memory_limit?: string; cpu_limit?: string; pids_limit?: number };
}

const told = (one = id): Promise<Told> => server.api("GET", `/api/sandboxes/${one}`);
const all = async (): Promise<Told[]> => (await server.api<{ items: Told[] }>("GET", "/api/sandboxes?limit=1000")).items;
const shell = async (command: string): Promise<string> => (await server.api<{ stdout: string }>("POST", `/api/sandboxes/${id}/execute`, { command })).stdout;
const reached = (status: string) => until(`the status ${status}`, async () => (await told()).status === status);

test("a trial shows how each file differs, and is committed", async () => {
  const { page, faults } = tab;
  await shell(`seq 40 > lines; printf 'a\\0b' > bytes; echo '<img src=x onerror="top.ran=1">' > html; printf gone > gone; mkdir -p d; printf 'odd\\n' > "$(printf 'd/\\377')"`);
  await page.goto(`${server.url}/#/sandboxes/${id}/trial`);
  await page.getByLabel("Command to try").fill(`sed -i 's/^20$/twenty/; 40d' lines; printf 'a\\0c' > bytes; echo '<script>top.ran=1</script>' >> html; rm gone; echo new > new; echo odder > "$(printf 'd/\\377')"`);
  await page.getByRole("button", { name: "Try", exact: true }).click();
  const shown = page.getByRole("region", { name: "Differences" });
  const open = (name: string) => page.locator(".changes").getByRole("button", { name }).click();
  await open("/workspace/lines");
  await shown.getByText("@@ -17,7 +17,7 @@").waitFor();
  const text = (await shown.innerText()).replaceAll(/\n+/g, "\n");
  for (const line of ["-20", "+twenty", " 19", " 21", "-40"]) assert.ok(text.split("\n").includes(line), `${line} is not in ${text}`);
  assert.ok(!text.includes("\n 30\n"), "lines far from a difference are shown");
  await page.getByText("1 line more, 2 less").waitFor();
  await open("/workspace/html");
  await shown.getByText("<script>top.ran=1</script>").waitFor();
  await open("/workspace/bytes");
  await page.getByText("It is no text. Its content is not compared.").waitFor();
  await open("/workspace/gone");
  await shown.getByText("gone ⊣ no end of line").waitFor();
  await open("/workspace/new");
  await shown.getByText("+new").waitFor();
  await open("/workspace/d/\\xff");
  await shown.getByText("+odder").waitFor();
  assert.equal(await page.evaluate("window.ran"), undefined);
  await page.getByRole("button", { name: "Commit" }).click();
  await page.getByText("The changes are kept").waitFor();
  await page.getByText("Nothing is on trial").waitFor();
  assert.equal(await shell("cat new; wc -l < lines; ls gone 2>/dev/null"), "new\n39\n");
  assert.deepEqual(faults, []);
});

test("a trial is discarded", async () => {
  const { page } = tab;
  await page.getByLabel("Command to try").fill("rm -r d; head -c 2000000 /dev/zero > new");
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.locator(".changes").getByRole("button", { name: "/workspace/new" }).click();
  await page.getByText("It is larger than 1 MB.").waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByText("The changes are taken back").waitFor();
  assert.equal(await shell("cat new; ls d | wc -l"), "new\n1\n");
});

test("names that are no UTF-8 are opened, downloaded, renamed and removed", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/files`);
  const row = (name: string) => page.getByRole("treeitem").filter({ hasText: name }).last().getByRole("button").first();
  await shell(`mkdir "$(printf 'sub\\376')"; printf inside > "$(printf 'sub\\376/caf\\351')"`);
  await page.getByRole("button", { name: "Read the files again" }).click();
  await row("sub\\xfe").click();
  await row("caf\\xe9").click();
  await page.getByRole("textbox", { name: "Content of caf\\xe9" }).getByText("inside").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
  assert.equal(readFileSync(await download.path(), "utf8"), "inside");
  page.once("dialog", (d) => void d.accept("cafe"));
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByText("It has its new name").waitFor();
  assert.equal(await shell(`cat "$(printf 'sub\\376/cafe')"`), "inside");
  await row("d").first().click();
  await row("\\xff").click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No file is chosen").waitFor();
  assert.equal(await shell("ls d | wc -l"), "0\n");
});

test("pause, resume, renew, snapshot and fork of one sandbox", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}`);
  const button = (name: string) => page.locator("header .buttons").getByRole("button", { name, exact: true });
  await button("Pause").click();
  await page.getByText("It is paused").waitFor();
  await reached("paused");
  await button("Resume").click();
  await reached("running");
  const before = (await told()).expires_at;
  await button("Renew").click();
  await page.getByText("Its end was moved").waitFor();
  assert.ok((await told()).expires_at > before, "it ends as early as before");
  await button("Snapshot").click();
  await page.getByText("Its files are saved").waitFor();
  assert.equal((await server.api<{ items: unknown[] }>("GET", "/api/snapshots")).items.length, 1);
  await button("Fork").click();
  await until("the copy", async () => !page.url().includes(id));
  const copy = page.url().split("/").at(-1) ?? "";
  assert.equal((await server.api<{ stdout: string }>("POST", `/api/sandboxes/${copy}/execute`, { command: "cat new" })).stdout, "new\n");
  await server.api("DELETE", `/api/sandboxes/${copy}`);
});

test("the same in the rows, with the keyboard", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes`);
  const press = async (what: string) => {
    await page.getByRole("button", { name: `${what} ${id}`, exact: true }).focus();
    await page.keyboard.press("Enter");
  };
  const destroy = await page.getByRole("button", { name: `destroy ${id}`, exact: true }).boundingBox();
  const table = await page.locator(".rows").boundingBox();
  assert.ok(destroy && table && destroy.x + destroy.width < table.x + table.width, "the last of them is out of sight");
  await press("pause");
  await reached("paused");
  await press("resume");
  await reached("running");
  const before = (await told()).expires_at;
  await press("renew");
  await until("another end", async () => (await told()).expires_at > before);
  await press("fork");
  await until("the copy", async () => (await all()).some((s) => s.session_id !== id && s.status === "running"));
  const copy = (await all()).find((s) => s.session_id !== id);
  assert.ok(copy);
  await page.locator(`[data-row="${copy.session_id}"]`).waitFor();
  assert.ok(page.url().endsWith("#/sandboxes"), "the table is left");
  await press("stop");
  await reached("stopped");
  await press("start");
  await reached("running");
  await page.getByRole("button", { name: `destroy ${copy.session_id}`, exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  await page.locator(`[data-row="${copy.session_id}"]`).waitFor({ state: "detached" });
});

test("the form's limits, and the filters of the table", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes`);
  await page.getByRole("button", { name: "New sandbox" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Flavor").fill("gigantic");
  await form.getByRole("button", { name: "Open sandbox" }).click();
  await form.getByRole("alert").getByText(/gigantic/).waitFor();
  await form.getByLabel("Flavor").fill("small");
  await form.getByLabel("Provider").selectOption("local");
  await form.getByLabel("Network").selectOption("allow");
  await form.getByRole("textbox", { name: /^Names/ }).fill("pypi.org, *.example.com");
  await form.getByLabel("Memory").fill("256m");
  await form.getByLabel("Processors").fill("0.5");
  await form.getByLabel("Programs at once").fill("50");
  await form.getByLabel("Stopped after minutes").fill("7");
  await form.getByLabel("Project").fill("two");
  await form.getByRole("textbox", { name: /^User/ }).fill("bob");
  await form.getByLabel("Thread", { exact: true }).fill("t1");
  await form.getByRole("button", { name: "Open sandbox" }).click();
  await page.getByRole("heading", { name: "What is enforced" }).waitFor();
  const made = (await all()).find((s) => s.user_id === "bob");
  assert.ok(made);
  assert.deepEqual(made.spec.network, { mode: "allow", allow: ["pypi.org", "*.example.com"] });
  assert.equal(made.resource_limits.pids_limit, 50);
  assert.match(String(made.resource_limits.memory_limit), /256/);
  assert.equal(Number(made.resource_limits.cpu_limit), 0.5);
  const left = Date.parse(made.expires_at) - Date.now();
  assert.ok(left > 5 * 60_000 && left <= 7 * 60_000, `it ends in ${left} ms`);

  await page.goto(`${server.url}/#/sandboxes`);
  const row = (one: string) => page.locator(`[data-row="${one}"]`);
  for (const [label, value] of [["User", "bob"], ["Thread", "t1"], ["Project", "two"]] as const) {
    await row(id).waitFor();
    await page.getByLabel(label, { exact: true }).selectOption(value);
    await row(id).waitFor({ state: "detached" });
    await row(made.session_id).waitFor();
    await page.getByLabel(label, { exact: true }).selectOption("");
  }
  await page.getByLabel("Status", { exact: true }).selectOption("running");
  await page.getByLabel("Provider", { exact: true }).selectOption("local");
  await row(id).waitFor();
  await page.getByLabel("Search sandboxes").fill("bob two");
  await row(id).waitFor({ state: "detached" });
  await page.getByText("1 of 2").waitFor();
  await page.getByLabel("Search sandboxes").fill("nobody");
  await page.getByRole("button", { name: "Show all" }).click();
  await row(id).waitFor();
  await page.goto(`${server.url}/#/sandboxes/${made.session_id}/network`);
  await page.getByRole("textbox", { name: "Names" }).fill("one.example");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByText("The rules hold from now on").waitFor();
  assert.deepEqual((await told(made.session_id)).spec.network?.allow, ["one.example"]);
  await page.getByLabel("It may reach").selectOption("none");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByText(/was made with "allow" and keeps it/).waitFor();
});

test("charts of memory and processors by provider follow what happens", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/overview`);
  const memory = page.getByRole("img", { name: /^Memory promised by provider: local/ });
  const processors = page.getByRole("img", { name: /^Processors promised by provider: local/ });
  const now = async () => (await memory.getAttribute("aria-label")) + " " + (await processors.getAttribute("aria-label"));
  await memory.waitFor();
  await until("the numbers", async () => !/local 0/.test(await now()));
  const before = await now();
  const more = await server.sandbox({ memory_limit: "300m", cpu_limit: "0.5" });
  await until("another number", async () => (await now()) !== before);
  await server.api("DELETE", `/api/sandboxes/${more}`);
  await until("the number of before", async () => (await now()) === before);
});

test("clean-up, and the bounds of a tenant", async () => {
  const { page, faults } = tab;
  await page.getByRole("button", { name: "Clean up now" }).click();
  await page.getByText(/^Done; \d+ orphans were removed/).waitFor();
  await page.getByRole("button", { name: "Pause all" }).click();
  await page.getByRole("button", { name: "Resume expiry" }).waitFor();
  await page.getByRole("button", { name: "Resume all" }).click();
  await page.getByRole("button", { name: "Pause expiry" }).waitFor();
  const runs = async () => (await server.api<{ tasks: Record<string, { runs: number }> }>("GET", "/api/maintenance")).tasks["expiry"]?.runs ?? 0;
  const ran = await runs();
  await page.getByRole("button", { name: "Run expiry now" }).click();
  await until("one more run", async () => (await runs()) > ran);
  await page.goto(`${server.url}/#/keys`);
  await page.getByLabel("Tenant", { exact: true }).selectOption("default");
  const form = page.getByRole("dialog");
  await form.getByLabel("Sandboxes at once").fill("17");
  await form.getByLabel("Memory in MB").fill("9000");
  await form.getByRole("button", { name: "Set bounds" }).click();
  await page.getByText("The bounds hold from now on").waitFor();
  const { quota } = await server.api<{ quota: { sessions: number; memory_mb: number } }>("GET", "/api/tenants/default");
  assert.equal(quota.sessions, 17);
  assert.equal(quota.memory_mb, 9000);
  assert.deepEqual(faults, []);
});

test("a key that may little signs in, and sees that", async () => {
  const want: Record<string, string[]> = { runs: ["Runs and data"], admin: ["Overview", "Journal", "Keys and tenants"] };
  for (const [scope, pages] of Object.entries(want)) {
    const { secret } = await server.api<{ secret: string }>("POST", "/api/keys", { name: `<i>only ${scope}</i>`, scopes: [scope] });
    const { page, faults, context } = await openTab(browser);
    await page.goto(server.url);
    await page.getByLabel("Key").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(`<i>only ${scope}</i> of default`).waitFor();
    assert.deepEqual(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts(), pages);
    await page.getByRole("heading", { name: pages[0] ?? "", level: 1 }).waitFor();
    for (const title of pages) {
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title }).click();
      await page.getByRole("heading", { name: title, level: 1 }).waitFor();
      await page.locator(".waiting").first().waitFor({ state: "detached" });
      assert.equal(await page.locator(".failure").count(), 0, `${title} asks for more than ${scope} may`);
    }
    assert.deepEqual(faults, []);
    await context.close();
  }
});

// Pictures of each page in both themes, in the folder that is named: for people to
// look at, and for the documentation.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { browse, openTab, screen, Server, signIn, until, write } from "./rig";

const to = process.argv[2] ?? "screenshots";
mkdirSync(to, { recursive: true });

const plot = `import numpy as np, matplotlib.pyplot as plt
x = np.linspace(0, 10, 200)
plt.figure(figsize=(6, 2.6)); plt.plot(x, np.sin(x)); plt.plot(x, np.cos(x)); plt.show()`;
const table = `import pandas as pd
pd.DataFrame({"city": ["Oslo", "Rome", "Lima"], "people": [709000, 2873000, 10092000]})`;

async function shoot(page: Page, name: string): Promise<void> {
  await page.locator(".waiting").first().waitFor({ state: "detached" });
  await page.screenshot({ path: join(to, `${name}.png`) });
}

async function tour(page: Page, server: Server, id: string, strict: string, still: string, theme: string): Promise<void> {
  const go = (place: string) => page.goto(`${server.url}/#/${place}`);
  const shot = (name: string) => shoot(page, `${name}-${theme}`);
  await page.goto(server.url);
  await page.getByLabel("Key").waitFor();
  await shot("signin");
  await signIn(page, server);
  await page.getByRole("img", { name: /^Sandboxes by provider/ }).waitFor();
  await page.waitForTimeout(4500);
  await shot("overview");
  await go("sandboxes");
  await page.locator("[data-row]").first().waitFor();
  await page.waitForTimeout(1000);
  await shot("sandboxes");
  await page.getByRole("button", { name: "New sandbox" }).click();
  await shot("create");
  await page.keyboard.press("Escape");
  await go(`sandboxes/${id}/about`);
  await shot("about");
  await go(`sandboxes/${id}/terminal`);
  await until("a prompt", async () => (await screen(page)).includes("$"));
  await page.keyboard.type("ls -la; python3 --version\n");
  await page.waitForTimeout(500);
  await shot("terminal");
  await go(`sandboxes/${id}/code`);
  for (const code of [plot, table]) {
    await write(page, "Code", code);
    await page.keyboard.press("Control+Enter");
    await page.locator("article[data-running=true]").waitFor({ state: "detached" });
    await page.waitForTimeout(500);
  }
  await page.locator("article").first().scrollIntoViewIfNeeded();
  await shot("code");
  await go(`sandboxes/${strict}/code`);
  await page.getByLabel("Language").selectOption("command");
  await write(page, "Code", "echo fine; sudo cat /etc/shadow");
  await page.keyboard.press("Control+Enter");
  await page.locator(".blocked").scrollIntoViewIfNeeded();
  await shot("blocked");
  await go(`sandboxes/${id}/files`);
  await page.getByRole("treeitem").filter({ hasText: "report.py" }).last().getByRole("button").click();
  await page.getByRole("textbox", { name: /^Content of/ }).waitFor();
  await shot("files");
  await go(`sandboxes/${id}/usage`);
  await page.waitForTimeout(5000);
  await shot("usage");
  for (const tab of ["processes", "ports", "network"]) {
    await go(`sandboxes/${id}/${tab}`);
    await shot(tab);
  }
  await go(`sandboxes/${still}/trial`);
  await page.getByLabel("Command to try").fill("echo one > new; mkdir -p out; echo two > out/when");
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.getByRole("button", { name: "Commit" }).waitFor();
  await shot("trial");
  await page.getByRole("button", { name: "Discard" }).click();
  await go(`sandboxes/${id}/timeline`);
  await shot("timeline");
  await go("data");
  await page.getByRole("button", { name: "Look at rows" }).first().click();
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("region", { name: "Rows" }).waitFor();
  await shot("data");
  for (const place of ["journal", "keys", "doctor"]) {
    await go(place);
    await shot(place);
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await shot("help");
}

const server = await new Server({ POOL_SIZE: "2" }).start();
const browser = await browse();
try {
  const id = await server.sandbox({ user_id: "ada", thread_id: "analysis", project_name: "sales" });
  const strict = await server.sandbox({ user_id: "ada", thread_id: "shell", policy: "agent-bash" });
  const still = await server.sandbox({ user_id: "grace", project_name: "sales" });
  for (const [user, project] of [["linus", "forecast"], ["ada", "forecast"]]) await server.sandbox({ user_id: user, project_name: project, flavor: "small" });
  await server.api("POST", `/api/sandboxes/${id}/execute`, { command: "mkdir -p data; printf 'a,b\\n1,2\\n' > data/in.csv; printf 'import csv\\n\\nwith open(\"data/in.csv\") as f:\\n    for row in csv.reader(f):\\n        print(row)\\n' > report.py" });
  await server.api("POST", `/api/sandboxes/${id}/processes`, { command: "while true; do echo tick; sleep 1; done" });
  for (const theme of ["light", "dark"] as const) {
    const { page } = await openTab(browser, { theme });
    await tour(page, server, id, strict, still, theme);
    await page.context().close();
  }
  const { page } = await openTab(browser, { width: 390, height: 780 });
  await signIn(page, server);
  await page.waitForTimeout(3000);
  await shoot(page, "phone");
} finally {
  await browser.close();
  await server.close();
}

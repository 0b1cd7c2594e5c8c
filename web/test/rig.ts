// A server of its own and a browser for tests: the program cove as COVE_BIN names it,
// with the console in COVE_CONSOLE, and the browser in COVE_TEST_CHROMIUM.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

export const patience = 30_000; // what is slow is a loaded machine

function named(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; go test ./web sets it`);
  return value;
}

interface Ready {
  url: string;
  key_file: string;
  login_url: string;
}

export class Server {
  private child: ChildProcess | undefined;
  private at: Ready | undefined;
  private readonly home: string;
  private readonly settings: Record<string, string>;

  constructor(settings: Record<string, string> = {}) {
    this.home = mkdtempSync(join(tmpdir(), "c"));
    this.settings = settings;
  }

  get url(): string {
    assert.ok(this.at);
    return this.at.url;
  }

  get loginURL(): string {
    assert.ok(this.at);
    return this.at.login_url;
  }

  get key(): string {
    assert.ok(this.at);
    return readFileSync(this.at.key_file, "utf8").trim();
  }

  async start(address = "127.0.0.1:0"): Promise<this> {
    const env = { ...process.env, POOL_SIZE: "0", COVE_LOG_LEVEL: "error", COVE_PREVIEW_ADDR: "127.0.0.1:0", COVE_CONSOLE: named("COVE_CONSOLE"), ...this.settings };
    const child = spawn(named("COVE_BIN"), ["--json", "--home", this.home, "serve", "--addr", address], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.child = child;
    const line = await new Promise<string>((resolve, reject) => {
      let text = "";
      child.stdout?.on("data", (more: Buffer) => {
        text += more.toString();
        if (text.includes("\n")) resolve(text);
      });
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${text}`)));
    });
    this.at = JSON.parse(line) as Ready;
    return this;
  }

  async stop(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  // restart ends the server and starts it again at the same address.
  async restart(): Promise<void> {
    const { host } = new URL(this.url);
    await this.stop();
    await this.start(host);
  }

  // close leaves nothing behind: what is in a sandbox would outlive the server.
  async close(): Promise<void> {
    if (this.child?.exitCode === null && this.settings["SANDBOX_PROVIDER"] !== "fake") {
      const { items } = await this.api<{ items: { session_id: string; status: string }[] }>("GET", "/api/sandboxes?limit=1000");
      for (const s of items) if (s.status !== "ended") await this.api("DELETE", `/api/sandboxes/${s.session_id}`);
    }
    await this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  // api asks the server with the key for everything.
  async api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.url + path, {
      method, headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/json" }, ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  async sandbox(spec: object = {}): Promise<string> {
    return (await this.api<{ session_id: string }>("POST", "/api/sandboxes", spec)).session_id;
  }
}

export async function browse(): Promise<Browser> {
  return chromium.launch({ executablePath: named("COVE_TEST_CHROMIUM"), args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"] });
}

// eager is a browser of a profile that may connect before anything is asked for.
export async function eager(profile: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile, {
    executablePath: named("COVE_TEST_CHROMIUM"), ignoreDefaultArgs: ["--disable-background-networking", "--disable-field-trial-config"], args: ["--no-sandbox", "--disable-dev-shm-usage", "--headless=new"],
  });
}

// Tab is a page, and what went wrong in it.
export interface Tab {
  page: Page;
  context: BrowserContext;
  faults: string[];
}

interface View {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
}

export async function openTab(browser: Browser, view: View = {}): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: view.width ?? 1280, height: view.height ?? 800 }, colorScheme: view.theme ?? "light", acceptDownloads: true });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (e) => faults.push(e.message));
  page.on("console", (m) => {
    const text = m.text();
    if (text.includes("Content Security Policy") || (m.type() === "error" && !text.startsWith("Failed to load resource") && !text.startsWith("WebSocket connection"))) faults.push(text);
  });
  return { page, context, faults };
}

export async function signIn(page: Page, server: Server, place = ""): Promise<void> {
  await page.goto(server.url + "/" + place);
  await page.getByLabel("Key").fill(server.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

// write puts text into an editor in the place of what is there.
export async function write(page: Page, label: string | RegExp, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: label });
  await editor.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

// screen returns what a terminal shows.
export async function screen(page: Page): Promise<string> {
  return page.locator(".xterm-rows").innerText();
}

// until waits for something to become true in the page.
export async function until(what: string, holds: () => Promise<boolean>, limit = patience): Promise<void> {
  const end = Date.now() + limit;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `waited ${limit} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

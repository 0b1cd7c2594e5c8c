// What code made, and a page shows, connects to nobody: not by what is fetched, and
// not by what a browser does ahead of that.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createPages } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { BrowserContext } from "playwright-core";
import { eager, patience, Server, signIn, until, write } from "./rig";

const ways = ["preconnect", "preconnect crossorigin", "dns-prefetch", "prefetch", "preload as=image", "modulepreload", "stylesheet", "icon", "manifest", "prerender"];
const others = ["base", "refresh", "image", "srcset", "video", "object", "frame", "use", "background", "import", "ping", "hidden", "shadow", "frameset", "names"];

const open: { close: () => void }[] = [];
let server: Server;
let context: BrowserContext;
let profile: string;

// Ears are listeners, one for each way, and who was connected to. Each test has its own:
// what a browser still does for the page before counts for nobody else.
interface Ears {
  at: Record<string, string>;
  reached: Set<string>;
}

async function listen(): Promise<Ears> {
  const { at, reached }: Ears = { at: {}, reached: new Set() };
  for (const name of [...ways, ...others]) {
    const ear = createServer((c) => {
      reached.add(name);
      c.on("error", () => undefined);
      c.end();
    });
    await new Promise<void>((resolve) => ear.listen(0, "127.0.0.1", resolve));
    open.push(ear);
    at[name] = `http://127.0.0.1:${(ear.address() as AddressInfo).port}/${encodeURIComponent(name)}`;
  }
  return { at, reached };
}

// html connects to somebody of its own by each way there is.
const html = ({ at }: Ears): string => [
  ...ways.map((w) => `<link rel=${w} href="${at[w]}">`),
  `<base href="${at["base"]}"><img src="relative"><meta http-equiv=refresh content="0;url=${at["refresh"]}"><img src="${at["image"]}"><img srcset="${at["srcset"]} 2x">`,
  `<video src="${at["video"]}" autoplay></video><object data="${at["object"]}"></object><iframe src="${at["frame"]}"></iframe><svg><use href="${at["use"]}#a"/></svg>`,
  `<p style="background:url(${at["background"]})">shown</p><style>@import "${at["import"]}";</style>`,
].join("");

before(async () => {
  server = await new Server().start();
  profile = mkdtempSync(join(tmpdir(), "p"));
  mkdirSync(join(profile, "Default"));
  // As most people have it, and Debian does not: a browser may connect ahead.
  writeFileSync(join(profile, "Default", "Preferences"), JSON.stringify({ net: { network_prediction_options: 0 } }));
  context = await eager(profile);
  context.setDefaultTimeout(patience);
});

after(async () => {
  await context?.close();
  for (const one of open) one.close();
  await server?.close();
  rmSync(profile, { recursive: true, force: true });
});

test("a page without a fence connects, so that this test can see it", async () => {
  const ears = await listen();
  const pages = createPages((_, answer) => answer.setHeader("Content-Type", "text/html").end(`<!doctype html>${html(ears)}`));
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  open.push(pages);
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`).catch(() => undefined); // it goes elsewhere by itself
  await until("connections", async () => ["preconnect", "stylesheet", "image", "base", "refresh"].every((w) => ears.reached.has(w)));
  await page.close();
});

test("HTML of a value connects to nobody", async () => {
  const ears = await listen();
  const { at } = ears;
  const page = await context.newPage();
  const id = await server.sandbox();
  await signIn(page, server, `#/sandboxes/${id}/code`);
  const without = html(ears).replace(/<link[^>]*>|<(iframe|object) .*?<\/\1>/g, "");
  const frames = [`<iframe src="${at["frame"]}"></iframe>`, `<object data="${at["object"]}"></object>`];
  const values = [html(ears), without, ...frames, `<p>four</p><div><template shadowrootmode=open><link rel=preconnect href="${at["shadow"]}"></template></div>`, `<p>five</p><noscript><link rel=preconnect href="${at["hidden"]}"></noscript>`,
    `<frameset><link rel=preconnect href="${at["frameset"]}"></frameset>`, `<p>six</p><meta http-equiv=X-DNS-Prefetch-Control content=on><a href="${at["names"]}">go</a>`];
  await write(page, "Code", `
class Page:
    def __init__(self, html): self.html = html
    def _repr_html_(self): return self.html
for one in ${JSON.stringify(values)}: display(Page(one))
print("shown")`);
  await page.keyboard.press("Control+Enter");
  await page.locator(".cell[data-running=false]").waitFor();
  for (const word of ["link", "iframe", "object", "template", "frameset", "meta"]) await page.getByText(`This HTML has the element ${word},`).first().waitFor();
  assert.equal(await page.getByText("This HTML has the element").count(), 7);
  assert.equal(await page.locator("iframe.value").count(), 1);
  await page.frameLocator("iframe.value").getByText("shown").waitFor();
  await new Promise((resolve) => setTimeout(resolve, 1500)); // what a browser does ahead, it does at once
  assert.deepEqual([...ears.reached], [], "somebody was connected to");
  assert.deepEqual(page.frames().slice(1).map((f) => f.url()).filter((u) => !/^about:(srcdoc|blank)$|^chrome-error:|^$/.test(u)), []);
});

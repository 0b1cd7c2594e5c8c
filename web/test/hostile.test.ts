// What comes out of a sandbox is hostile: no script in it runs, wherever it stands.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { browse, openTab, Server, signIn, until, write, type Tab } from "./rig";

let server: Server;
let browser: Browser;
let tab: Tab;
let id: string;

// Each of these runs where a text is taken for HTML.
const scripts = [`<img src=x onerror="top.ran=1">`, `<script>top.ran=1</script>`, `<svg onload="top.ran=1">`, `"><script>top.ran=1</script>`, `javascript:top.ran=1`];
const script = scripts.join("");

before(async () => {
  server = await new Server().start();
  browser = await browse();
  tab = await openTab(browser);
  id = await server.sandbox({ project_name: scripts[0], user_id: scripts[1], thread_id: scripts[3], metadata: { label: scripts[2] } });
  await signIn(tab.page, server, `#/sandboxes/${id}`);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

// quiet waits until what was drawn had its chance, and looks whether it ran.
async function quiet(what: string): Promise<void> {
  await tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))");
  assert.equal(await tab.page.evaluate("window.ran"), undefined, `script in ${what} ran`);
}

test("in words that a caller gave", async () => {
  const { page } = tab;
  await page.getByText(scripts[1] ?? "").first().waitFor();
  await quiet("the facts of a sandbox");
  await page.goto(`${server.url}/#/sandboxes`);
  await page.getByRole("cell").filter({ hasText: scripts[0] ?? "" }).first().waitFor();
  await quiet("the table");
});

test("in names and content of files", async () => {
  const { page } = tab;
  const names = scripts.map((s) => s.replaceAll("/", "∕"));
  for (const [i, name] of names.entries()) {
    const at = new URL(`${server.url}/api/sandboxes/${id}/files`);
    at.searchParams.set("path", name + (i % 2 ? ".html" : ".svg"));
    const answer = await fetch(at, { method: "PUT", headers: { Authorization: `Bearer ${server.key}` }, body: `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>` });
    assert.equal(answer.status, 204);
  }
  await page.goto(`${server.url}/#/sandboxes/${id}/files`);
  for (const name of names) {
    await page.getByRole("treeitem").filter({ hasText: name }).last().getByRole("button").click();
    await page.getByRole("textbox", { name: /^Content of/ }).waitFor();
    await quiet(`the file ${name}`);
  }
});

test("in output, errors and every form of a value", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/code`);
  const code = `
import sys
bad = ${JSON.stringify(script)}
print(bad); print(bad, file=sys.stderr)
class Shown:
    def __init__(self, forms): self.forms = forms
    def _repr_mimebundle_(self, include=None, exclude=None): return self.forms
for kind in ("text/html", "image/svg+xml", "text/markdown", "text/latex", "application/json", "application/javascript", "text/plain"):
    display(Shown({kind: bad}))
raise ValueError(bad)
`;
  await write(page, "Code", code);
  await page.keyboard.press("Control+Enter");
  await page.locator(".raised").waitFor();
  await quiet("a result");
});

test("HTML of a value has no way out of its frame", async () => {
  const { page } = tab;
  const code = `
class Page:
    def _repr_html_(self):
        return """<p id=here>shown</p><a id=link href="${server.url}/" target=_top>go</a>
        <form action="${server.url}/logout" method=post><button id=send>send</button></form><img src="${server.url}/api/stats">
        <meta http-equiv=refresh content="0;url=${server.url}/health"><base href="https://example.com/">${script}"""
Page()
`;
  await write(page, "Code", code);
  await page.keyboard.press("Control+Enter");
  const frame = page.locator("iframe.value").last();
  await frame.waitFor();
  await page.frameLocator("iframe.value").last().getByText("shown").waitFor();
  assert.equal(await frame.getAttribute("sandbox"), "");
  const inner = page.frameLocator("iframe.value").last();
  for (const name of ["#link", "#send"]) {
    // By the mouse: no script runs in there, not even one of the tests.
    await frame.scrollIntoViewIfNeeded();
    const at = await inner.locator(name).boundingBox();
    assert.ok(at, `${name} is not shown`);
    await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
  }
  await quiet("a frame");
  assert.ok(page.url().startsWith(`${server.url}/#/sandboxes/`), `the page went to ${page.url()}`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor(); // still signed in
  for (const f of page.frames().slice(1)) assert.ok(/^about:srcdoc$|^chrome-error:/.test(f.url()) || f.url() === "" || f.url() === "about:blank", `a frame went to ${f.url()}`);
});

// Pictures that are small files and large when they are drawn.
const large = `
import base64, struct, zlib
def png(w, h):
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", struct.pack(">IIBBBBB", w, h, 1, 0, 0, 0, 0)) + part(b"IDAT", zlib.compress(bytes((w // 8 + 1) * min(h, 9)))) + part(b"IEND", b"")
gif = lambda w, h: b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + b"," + struct.pack("<HHHHB", 0, 0, w, h, 0) + b"\\x02\\x02L\\x01\\x00;"
jpeg = lambda w, h: b"\\xff\\xd8\\xff\\xe0\\x00\\x04ab" + b"\\xff\\xc0" + struct.pack(">HBHHB", 11, 8, h, w, 1) + b"\\x01\\x11\\x00" + bytes(20)
webp = lambda w, h: b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + struct.pack("<I", w - 1)[:3] + struct.pack("<I", h - 1)[:3]
data = lambda b: "data:image/png;base64," + base64.b64encode(b).decode()
`;

test("pictures that would fill the memory are not drawn", async () => {
  const { page } = tab;
  await server.api("POST", `/api/sandboxes/${id}/code`, { language: "python", code: `${large}
for name, make in (("png", png), ("gif", gif), ("jpeg", jpeg), ("webp", webp)):
    open("large." + name, "wb").write(make(30000, 30000) if name != "webp" else make(16000, 16000))
open("small.png", "wb").write(png(8, 8))` });
  await page.goto(`${server.url}/#/sandboxes/${id}/files`);
  await page.getByRole("button", { name: "Read the files again" }).click();
  const choose = (name: string) => page.getByRole("treeitem").filter({ hasText: name }).last().getByRole("button").click();
  for (const kind of ["png", "gif", "jpeg", "webp"]) {
    await choose(`large.${kind}`);
    await page.getByRole("article", { name: `File /workspace/large.${kind}` }).getByText(/It is a picture of \d+000 × \d+000, too large to be drawn/).waitFor();
    assert.equal(await page.locator(".file img").count(), 0);
  }
  await choose("small.png");
  await page.locator(".file img").waitFor();
});

test("nor those inside of others", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/code`);
  const before = await page.locator(".cell").count();
  await write(page, "Code", `${large}
class Shown:
    def __init__(self, forms): self.forms = forms
    def _repr_mimebundle_(self, include=None, exclude=None): return self.forms
svg = lambda inner: '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10" height="10">' + inner + "</svg>"
big, small = data(png(30000, 30000)), data(png(8, 8))
display(Shown({"image/png": base64.b64encode(png(30000, 30000)).decode(), "text/plain": "in its place"}))
display(Shown({"image/svg+xml": svg('<image width="9" height="9" xlink:href="' + big + '"/>')}))
display(Shown({"image/svg+xml": svg("<style>rect{fill:url(&#100;ata:image/png)}</style>")}))
display(Shown({"image/svg+xml": svg('<image width="9" height="9" href="' + big.replace("data", "da&#9;ta") + '"/>')}))
display(Shown({"image/svg+xml": svg('<style>rect{mask:url("' + big.replace("data", "da\\tta") + '")}</style>')}))
display(Shown({"image/svg+xml": svg('<rect mask="url(' + big.replace("data", "d\\\\61ta") + ')"/>')}))
display(Shown({"image/svg+xml": '<?xml-stylesheet href="data:text/css,svg{background:url(' + big + ')}"?>' + svg("")}))
display(Shown({"image/svg+xml": svg('<rect id="u0"/>' + "".join('<g id="u%d">' % i + '<use href="#u%d"/>' % (i - 1) * 10 + "</g>" for i in range(1, 9)))}))
display(Shown({"image/svg+xml": svg('<rect id="u0"/>' + "".join('<pattern id="u%d">' % i + '<rect style="fill:url(#u%d)"/>' % (i - 1) * 10 + "</pattern>" for i in range(1, 9)))}))
display(Shown({"image/svg+xml": svg('<image id="ok" width="9" height="9" xlink:href="' + small + '"/>')}))
display(Shown({"text/html": '<p>one</p><img src="' + big + '">'}))
display(Shown({"text/html": '<p>two</p><img src="&#100;ata:image/bmp;base64,AAAA">'}))
display(Shown({"text/html": '<p>three</p><img src="' + small + '">'}))
display(Shown({"text/html": '<p>four</p><img src="' + big.replace("data", "da&#10;ta") + '">'}))
print("shown")`);
  await page.keyboard.press("Control+Enter");
  await until("the cell", async () => (await page.locator(".cell[data-running=false]").count()) > before);
  const cell = page.locator(".cell").last();
  await cell.getByText("in its place", { exact: true }).waitFor();
  assert.equal(await cell.getByText("30000 × 30000, too large to be drawn").count(), 1);
  assert.equal(await cell.getByText("It is an SVG that is too large").count(), 8);
  assert.equal(await cell.locator("img").count(), 1);
  const frames = await cell.locator("iframe").evaluateAll((all) => all.map((f) => (f as HTMLIFrameElement).srcdoc.includes("img-src data:")));
  assert.deepEqual(frames, [false, false, true, false]);
});

test("in what a terminal is told", async () => {
  const { page } = tab;
  await page.goto(`${server.url}/#/sandboxes/${id}/terminal`);
  await page.locator("[data-state=open]").waitFor();
  await page.locator(".terminal-box").click();
  await page.keyboard.type(`printf '\\033]0;%s\\007%s\\033]8;;javascript:top.ran=1\\007link\\033]8;;\\007\\n' '<b>' '${scripts[0]?.replaceAll("'", "")}'\n`);
  await until("the text", async () => (await page.locator(".xterm-rows").innerText()).includes("onerror"));
  await quiet("the terminal");
});

test("a preview cannot reach the console", async () => {
  const { page, context } = tab;
  const html = `<body><script>
    const url = ${JSON.stringify(server.url)};
    Promise.allSettled([fetch(url + "/api/stats", { credentials: "include" }).then((r) => r.text()), fetch(url + "/api/whoami", { credentials: "include", mode: "no-cors" }).then((r) => r.type + r.status)])
      .then((all) => { document.body.textContent = JSON.stringify({ all, cookie: document.cookie, opener: window.opener === null, storage: Object.keys(sessionStorage) }); document.title = "done"; });
  </script>`;
  await server.api("POST", `/api/sandboxes/${id}/processes`, { command: ["python3", "-c", `
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.end_headers(); self.wfile.write(${JSON.stringify(html)}.encode())
http.server.HTTPServer(("127.0.0.1", 3000), H).serve_forever()`] });
  await page.goto(`${server.url}/#/sandboxes/${id}/ports`);
  await page.getByLabel("Port inside").fill("3000");
  await page.getByRole("button", { name: "Make a link" }).click();
  const link = page.getByRole("link", { name: "Open port 3000" });
  await link.waitFor();
  const [other] = await Promise.all([context.waitForEvent("page"), link.click()]);
  await until("the preview", async () => {
    if ((await other.title()) === "done") return true;
    if (!(await other.content()).includes("<script>")) await other.reload(); // nobody listened yet
    return false;
  });
  const found = JSON.parse(await other.locator("body").innerText()) as { all: { status: string; value?: string }[]; cookie: string; opener: boolean; storage: string[] };
  assert.equal(found.all[0]?.status, "rejected", "a preview read the API");
  assert.ok(found.all[1]?.status === "rejected" || found.all[1]?.value === "opaque0");
  assert.equal(found.opener, true, "a preview has its opener");
  assert.deepEqual(found.storage, []);
  assert.ok(!found.cookie.includes("cove_console"), found.cookie);
  assert.equal(await page.evaluate("document.cookie"), "", "a script can read the cookie");
});

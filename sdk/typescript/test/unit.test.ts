import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { CoveError, InvalidError, Sandbox, SandboxClient, VERSION } from "cove-sandbox";

test("the version is that of the package", async () => {
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as { version: string };
  assert.equal(VERSION, version);
});

test("variables that are empty are none", async () => {
  const program = 'import { Client } from "cove-sandbox"; console.log(new Client(JSON.parse(process.argv[1])).connection.name);';
  const env = { PATH: process.env["PATH"], COVE_URL: "", SANDBOX_MODE: "", SANDBOX_URL: "http://here:1" };
  for (const [options, name] of [["{}", "the local server"], ['{"mode":"remote"}', "http://here:1"]] as const) {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, options], { env, cwd: fileURLToPath(new URL(".", import.meta.url)) });
    assert.equal(stdout.trim(), name);
  }
});

test("arguments that are none are refused before anything is asked", async () => {
  for (const serverUrl of ["nonsense", "ftp://host", "http://user:secret@host", "http://host?key=1", "unix://relative", "http://"]) {
    await assert.rejects(Sandbox.create({ serverUrl }), (err: CoveError) => err instanceof InvalidError && err.details["field"] === "serverUrl", serverUrl);
  }
  await assert.rejects(Sandbox.create({ serverUrl: "http://host", apiKey: "a key\r\nX: y" }), /apiKey: is not a key/);
  assert.throws(() => new SandboxClient({ mode: "elsewhere" as "local" }), /mode: "elsewhere" is unknown/);
  assert.throws(() => new SandboxClient({ checkVersion: "maybe" as "refuse" }), /checkVersion: "maybe" is unknown/);
  assert.throws(() => new SandboxClient({ reconnectMs: -1 }), /reconnectMs: must be milliseconds/);
});

/** A server that speaks TLS, with a certificate that only those trust who are told to: COVE_TEST_TLS names its folder. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";

import { ConnectionError, CoveError, Sandbox } from "cove-sandbox";

import { type Served, collect, serve, where } from "./rig.js";

describe("a server with TLS", () => {
  let served: Served;
  before(async () => {
    const dir = process.env["COVE_TEST_TLS"];
    assert.ok(dir, "COVE_TEST_TLS names a folder with cert.pem and key.pem");
    served = await serve({ COVE_TLS_CERT: join(dir, "cert.pem"), COVE_TLS_KEY: join(dir, "key.pem") });
    assert.match(served.serverUrl, /^https:/);
  });

  test("does all that another does", async () => {
    await using sandbox = await Sandbox.create(where(served));
    assert.equal((await sandbox.commands.run("echo safe")).stdout, "safe\n");
    const large = Buffer.alloc(16 * 1024 * 1024, "0123456789abcdef");
    await sandbox.files.write("large", large);
    assert.ok(large.equals(await sandbox.files.readBytes("large")));
    // Input is sent while output comes, in one stream of TLS.
    async function* pieces() {
      for (let i = 0; i < 64; i++) yield large.subarray(0, 64 * 1024);
    }
    let heard = 0;
    await sandbox.commands.run("cat", { stdin: pieces(), maxOutput: "64m", onStdout: (text) => void (heard += text.length) });
    assert.equal(heard, 64 * 64 * 1024);
  });

  test("has connections to ports", async () => {
    await using sandbox = await Sandbox.create(where(served));
    const echo = "import socket\ns = socket.create_server(('127.0.0.1', 8125))\nprint('ready', flush=True)\nc, _ = s.accept()\nc.sendall(c.recv(100))\nc.close()";
    const p = await sandbox.commands.start(["python3", "-c", echo]);
    for await (const piece of p) if (piece.text.includes("ready")) break;
    const port = await sandbox.ports.dial(8125);
    port.write("through TLS");
    assert.equal(Buffer.concat(await collect(port as AsyncIterable<Buffer>)).toString(), "through TLS");
  });

  test("is not trusted by those who were not told to, and they are told what to do", async () => {
    const { ca: _, ...others } = where(served);
    const untold = (err: CoveError) => err instanceof ConnectionError && /is not trusted/.test(err.message) && /as ca/.test(err.remedy!);
    await assert.rejects(Sandbox.create(others), untold);
    const serverUrl = served.serverUrl.replace("127.0.0.1", "localhost"); // a name that is not in the certificate
    await assert.rejects(Sandbox.create({ ...where(served), serverUrl }), untold);
  });

  test("is not talked to without TLS", async () => {
    await assert.rejects(Sandbox.create({ ...where(served), serverUrl: served.serverUrl.replace("https", "http") }), ConnectionError);
  });
});

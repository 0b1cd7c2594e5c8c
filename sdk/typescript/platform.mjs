/**
 * Builds the package that has the cove executable inside, for local mode on machines
 * without one: npm installs it on the machines that the executable runs on, and the SDK
 * finds it there.
 *
 * usage: platform.mjs EXECUTABLE DIRECTORY    builds a tarball there and prints its name
 */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const machines = { 62: "x64", 183: "arm64" }; // e_machine of an ELF file
const interpreter = 3; // p_type of a segment that names who loads the file

/** stop ends with a sentence. */
function stop(why) {
  console.error(why);
  process.exit(2);
}

/** machine says what an executable runs on, from its own head: it need not be this machine. */
function machine(program) {
  let file;
  try {
    file = readFileSync(program);
  } catch (err) {
    stop(`${program} cannot be read: ${err.message}`);
  }
  if (file.length < 64 || file.toString("latin1", 0, 6) !== "\x7fELF\x02\x01") stop(`${program} is no executable for Linux on 64 bits`);
  const [at, size, count] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  if (size < 4 || at + size * count > file.length) stop(`${program} is no whole executable`);
  for (let i = 0; i < count; i++) {
    if (file.readUInt32LE(at + i * size) === interpreter) stop(`${program} needs a libc, and a package does not know which; build it with CGO_ENABLED=0`);
  }
  return machines[file.readUInt16LE(18)] ?? stop(`${program} is for another machine than ${Object.values(machines).join(" or ")}`);
}

const [program, directory] = process.argv.slice(2);
if (!program || !directory) stop("usage: platform.mjs EXECUTABLE DIRECTORY");
const cpu = machine(program);
const { version, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const work = mkdtempSync(join(tmpdir(), "cove-platform-"));
try {
  mkdirSync(join(work, "bin"));
  copyFileSync(program, join(work, "bin", "cove"));
  chmodSync(join(work, "bin", "cove"), 0o755);
  copyFileSync(join(root, "LICENSE"), join(work, "LICENSE"));
  writeFileSync(join(work, "package.json"), JSON.stringify({
    name: `cove-sandbox-linux-${cpu}`, version, license, description: "The cove executable for cove-sandbox, for local mode", os: ["linux"], cpu: [cpu],
    bin: { cove: "bin/cove" }, files: ["bin", "LICENSE"],
  }, null, 2));
  mkdirSync(directory, { recursive: true });
  const said = execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", resolve(directory)], { cwd: work, encoding: "utf8" });
  console.log(said.trim().split("\n").at(-1));
} finally {
  rmSync(work, { recursive: true, force: true });
}

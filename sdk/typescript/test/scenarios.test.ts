/**
 * Runs the table of scenarios that every SDK must run alike: COVE_TEST_SCENARIOS names
 * the folder. What is asked and what must come of it stand there as they travel.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { CoveError } from "cove-sandbox";

import { Player, type Step, lacks } from "./player.js";
import { type Served, serve, where } from "./rig.js";

interface Scenario {
  name: string;
  providers?: string[];
  settings?: Record<string, string>;
  key?: string;
  auto_retry?: boolean;
  steps: Step[];
}

const folder = process.env["COVE_TEST_SCENARIOS"];
if (!folder) throw new Error("COVE_TEST_SCENARIOS names no folder");
const table = readdirSync(folder).filter((name) => name.endsWith(".json"))
  .flatMap((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Scenario[]);
if (table.length === 0) throw new Error(`there are no scenarios in ${folder}`);

for (const provider of ["fake", "local"]) {
  describe(`scenarios with ${provider}`, () => {
    const servers = new Map<string, Promise<Served>>();
    const serverFor = (settings: Record<string, string> = {}) => {
      const key = JSON.stringify(settings);
      if (!servers.has(key)) servers.set(key, serve({ ...settings, SANDBOX_PROVIDER: provider }));
      return servers.get(key)!;
    };
    for (const scenario of table.filter((s) => s.providers === undefined || s.providers.includes(provider))) {
      test(scenario.name, async () => {
        const at = where(await serverFor(scenario.settings));
        const player = new Player({ ...at, ...(scenario.key ? { apiKey: scenario.key } : {}), autoRetry: scenario.auto_retry ?? true });
        try {
          for (const [i, step] of scenario.steps.entries()) assert.equal(await judged(player, step), "", `step ${i + 1}, ${step.do}`);
        } finally {
          await player.close();
        }
      });
    }
  });
}

/** judged is what is wrong with what came of a step, or "". */
async function judged(player: Player, step: Step): Promise<string> {
  try {
    const got = await player.do(step);
    if (step.fail) return `did not fail: ${JSON.stringify(got)}`;
    return step.want === undefined ? "" : lacks(step.want, got);
  } catch (err) {
    if (!(err instanceof CoveError) || !step.fail) throw err;
    return lacks(step.fail, { code: err.code, reason: err.reason });
  }
}

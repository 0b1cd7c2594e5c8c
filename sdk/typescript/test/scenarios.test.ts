/**
 * Runs the table of scenarios that every SDK must run alike: COVE_TEST_SCENARIOS names
 * the folder. What is asked and what must come of it stand there as they travel.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { Player, type Step } from "./player.js";
import { type Served, serve } from "./rig.js";

interface Scenario {
  name: string;
  providers?: string[];
  needs?: string[];
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
    const serverFor = ({ name, settings = {}, steps }: Scenario) => {
      const key = steps.some((step) => step.do === "restart") ? name : JSON.stringify(settings); // who restarts one has it alone
      if (!servers.has(key)) servers.set(key, serve({ ...settings, SANDBOX_PROVIDER: provider }));
      return servers.get(key)!;
    };
    for (const scenario of table.filter((s) => s.providers === undefined || s.providers.includes(provider))) {
      test(scenario.name, async (t) => {
        const served = await serverFor(scenario);
        const lacking = scenario.needs && !(await powers(served, provider, scenario.needs));
        if (lacking) return t.skip(`the provider ${provider} lacks a power of ${scenario.needs} here`);
        const player = new Player(served, { ...(scenario.key ? { apiKey: scenario.key } : {}), autoRetry: scenario.auto_retry ?? true });
        try {
          for (const [i, step] of scenario.steps.entries()) assert.equal(await player.judged(step), "", `step ${i + 1}, ${step.do}`);
        } finally {
          await player.close();
        }
      });
    }
  });
}

/** powers reports whether a provider has them all on this machine. */
async function powers(served: Served, provider: string, wanted: string[]): Promise<boolean> {
  const res = await fetch(`${served.serverUrl}/api/doctor`, { headers: { Authorization: `Bearer ${served.apiKey}` } });
  const { items } = (await res.json()) as { items: Array<{ name: string; capabilities: { powers: string[] } }> };
  const has = items.find((one) => one.name === provider)!.capabilities.powers;
  return wanted.every((power) => has.includes(power));
}

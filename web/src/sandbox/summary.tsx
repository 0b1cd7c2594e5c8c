// What a sandbox is, and what is enforced around it.

import type { Isolation, Level } from "../api/forms";
import { moment } from "../text";
import { Facts } from "../ui/field";
import { LevelMark } from "../ui/marks";
import { Scroll } from "../ui/scroll";
import type { TabProps } from "./sandbox";

const enforced: [Exclude<keyof Isolation, "boundary">, string][] = [
  ["network", "What it may reach"], ["memory", "Memory"], ["cpu", "Processors"], ["pids", "Programs at once"], ["disk", "Bytes on disk"], ["files", "Number of files"],
  ["policy", "Programs of the command policy"],
];

const plainly: Record<Level, string> = {
  hard: "The kernel holds it; code inside cannot go over.",
  soft: "It is watched, and ended when it goes over.",
  none: "Nothing holds it here.",
};

export function Summary({ session: s }: TabProps) {
  const limits = s.resource_limits;
  const bound: Partial<Record<string, string>> = {
    network: s.spec.network?.mode === "allow" ? (s.spec.network.allow ?? []).join(", ") : s.spec.network?.mode === "open" ? "everything public" : "nothing",
    memory: limits.memory_limit === undefined ? "" : String(limits.memory_limit), cpu: limits.cpu_limit === undefined ? "" : String(limits.cpu_limit),
    pids: limits.pids_limit === undefined ? "" : String(limits.pids_limit),
    disk: limits.workspace?.size_mb === undefined ? "" : `${limits.workspace.size_mb} MB`, files: limits.workspace?.files === undefined ? "" : String(limits.workspace.files), policy: s.spec.policy,
  };
  return (
    <div class="two">
      <section aria-labelledby="enforced">
        <h2 id="enforced">What is enforced</h2>
        <p>The boundary is <strong>{s.isolation.boundary}</strong>.</p>
        <Scroll label="What is enforced">
          <table class="plain">
            <thead><tr><th scope="col">Limit</th><th scope="col">Bound</th><th scope="col">Held</th><th scope="col">That means</th></tr></thead>
            <tbody>
              {enforced.map(([name, title]) => (
                <tr key={name}>
                  <th scope="row">{title}</th>
                  <td><bdi>{bound[name] || "–"}</bdi></td>
                  <td><LevelMark level={s.isolation[name]} /></td>
                  <td class="quiet">{plainly[s.isolation[name]]}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </section>
      <section aria-labelledby="facts">
        <h2 id="facts">Facts</h2>
        <Facts of={[
          ["Template", s.template ?? "base"], ["Flavor", s.flavor ?? "–"], ["Policy", s.spec.policy ?? "none"],
          ["Workspace", s.resource_limits.workspace?.kind ?? "memory"], ["Project", <bdi>{s.project_name ?? "–"}</bdi>],
          ["User", <bdi>{s.user_id ?? "–"}</bdi>], ["Thread", <bdi>{s.thread_id ?? "–"}</bdi>], ["Owner", <bdi>{s.owner}</bdi>], ["Tenant", s.tenant],
          ["Opened", moment(s.created_at)], ["Last used", moment(s.last_activity)], ["Ends", moment(s.expires_at)], ["Node", s.node_id],
          ...Object.entries(s.spec.metadata ?? {}).map(([k, v]): [string, string] => [k, v]),
        ]} />
      </section>
    </div>
  );
}

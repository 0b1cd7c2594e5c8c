// The work that goes on in the background, and what an operator can do to it.

import { get, post } from "../api/http";
import type { Maintenance } from "../api/platform";
import { useAsked } from "../asked";
import { ago, count } from "../text";
import { Mark } from "../ui/marks";
import { attempt } from "../ui/notices";
import { Scroll } from "../ui/scroll";
import { Shown } from "../ui/states";

export function Tasks() {
  const asked = useAsked((s) => get<Maintenance>("api/maintenance", {}, s), [], { live: true, every: 5000 });
  const control = (verb: "pause" | "resume" | "cleanup" | "restart", task?: string) => async () => {
    const after = await attempt(() => post<Maintenance>(`api/maintenance/${verb}`, {}, { task }));
    if (after && verb === "cleanup") await attempt(async () => undefined, `Done; ${after.orphans_removed ?? 0} orphans were removed`);
    asked.again();
  };
  return (
    <section aria-labelledby="tasks">
      <header class="bar">
        <h2 id="tasks">Background tasks</h2>
        {asked.value && <Mark word={asked.value.overall_status} tone={asked.value.overall_status === "running" ? "good" : "warn"} />}
        <span class="buttons">
          <button type="button" class="small" onClick={() => void control("cleanup")()}>Clean up now</button>
          <button type="button" class="small" onClick={() => void control("pause")()}>Pause all</button>
          <button type="button" class="small" onClick={() => void control("resume")()}>Resume all</button>
        </span>
      </header>
      <Shown asked={asked} what="Asking for the tasks">
        {(m) => (
          <Scroll label="Background tasks">
            <table class="plain">
              <thead><tr><th scope="col">Task</th><th scope="col">State</th><th scope="col" class="number">Runs</th><th scope="col" class="number">Dealt with</th><th scope="col">Last</th><th scope="col">Do</th></tr></thead>
              <tbody>
                {Object.entries(m.tasks).sort().map(([name, t]) => (
                  <tr key={name}>
                    <th scope="row">{name}{t.last_error && <p class="bad-text">{t.last_error}</p>}</th>
                    <td><Mark word={t.state} tone={t.state === "paused" || t.state === "stopped" ? "warn" : "good"} /></td>
                    <td class="number">{count(t.runs)}</td>
                    <td class="number">{count(t.done)}</td>
                    <td>{ago(t.last_run)}</td>
                    <td class="buttons">
                      <button type="button" class="small" aria-label={`Run ${name} now`} onClick={() => void control("cleanup", name)()}>Run</button>
                      {t.state === "paused"
                        ? <button type="button" class="small" aria-label={`Resume ${name}`} onClick={() => void control("resume", name)()}>Resume</button>
                        : <button type="button" class="small" aria-label={`Pause ${name}`} onClick={() => void control("pause", name)()}>Pause</button>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </Shown>
    </section>
  );
}

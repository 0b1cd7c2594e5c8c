// A tenant: its bounds, what it uses, and what that came to.

import { get, part, put } from "../api/http";
import type { Amounts, Tenant } from "../api/platform";
import { useAsked } from "../asked";
import { count, size, span } from "../text";
import { Dialog } from "../ui/dialog";
import { Facts, Field } from "../ui/field";
import { attempt } from "../ui/notices";
import { Shown } from "../ui/states";

const bounds: [keyof Amounts, string][] = [["sessions", "Sandboxes at once"], ["memory_mb", "Memory in MB"], ["cpu_seconds", "CPU seconds in all"], ["disk_mb", "Disk in MB"]];

export function TenantView({ name, close }: { name: string; close: () => void }) {
  const asked = useAsked((s) => get<Tenant>(`api/tenants/${part(name)}`, {}, s), [name], { every: 5000 });
  const set = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const quota = Object.fromEntries(bounds.map(([b]) => [b, Number(form.get(b) || 0)]));
    await attempt(() => put(`api/tenants/${part(name)}`, { quota }), "The bounds hold from now on");
    asked.again();
  };
  return (
    <Dialog title={`Tenant ${name}`} close={close} wide>
      <Shown asked={asked} what="Asking for the tenant">
        {(t) => (
          <>
            <Facts of={[
              ["Sandboxes now", count(t.usage.sessions)], ["Memory promised now", `${count(Math.round(t.usage.memory_mb))} MB`],
              ["Held for", span(t.consumed.session_seconds)], ["Memory over time", `${count(Math.round(t.consumed.memory_gb_seconds))} GB s`], ["CPU time", span(t.consumed.cpu_seconds)],
              ["Programs run", count(t.consumed.executions)], ["Sent in", size(t.consumed.uploaded_bytes)], ["Came out", size(t.consumed.downloaded_bytes)],
              ["On the disk now", `${size(t.disk.snapshots_bytes)} snapshots, ${size(t.disk.archives_bytes)} archives, ${size(t.disk.output_bytes)} output, ${size(t.disk.artifacts_bytes)} artifacts, ${size(t.disk.workspaces_bytes)} workspaces`],
              ["Disk bound", t.disk.bound_bytes ? size(t.disk.bound_bytes) : "none"],
              ["Cost", t.cost ? `${t.cost.amount.toFixed(4)} ${t.cost.currency}` : "the settings name no prices"],
            ]} />
            <form onSubmit={(e) => void set(e)}>
              <h3>Bounds</h3>
              <div class="fields">
                {bounds.map(([b, title]) => <Field key={b} label={title} hint={b === "disk_mb" ? "0: the server's setting" : "0: none"}><input name={b} type="number" min="0" step="any" defaultValue={String(t.quota[b] ?? 0)} /></Field>)}
              </div>
              <footer><button type="submit" class="primary">Set bounds</button></footer>
            </form>
          </>
        )}
      </Shown>
    </Dialog>
  );
}

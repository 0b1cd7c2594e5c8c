// The form for a new sandbox.

import { useState } from "preact/hooks";
import { get, list } from "../api/http";
import type { Spec, Template } from "../api/forms";
import type { ProviderReport } from "../api/platform";
import { open } from "../api/sandboxes";
import { useAsked } from "../asked";
import { go } from "../route";
import { Dialog } from "../ui/dialog";
import { Field } from "../ui/field";
import { Failure } from "../ui/states";

const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

// specOf makes a request of a form; what is empty is left to the server.
function specOf(form: FormData): Spec {
  const text = (name: string): string | undefined => String(form.get(name) ?? "").trim() || undefined;
  const number = (name: string): number | undefined => (text(name) ? Number(text(name)) : undefined);
  const allow = words(text("allow") ?? "");
  const mode = (text("network") ?? "none") as "none" | "allow" | "open";
  const spec: Spec = {};
  const set = <K extends keyof Spec>(name: K, value: Spec[K] | undefined) => {
    if (value !== undefined) spec[name] = value;
  };
  for (const name of ["provider", "template", "flavor", "project_name", "user_id", "thread_id", "memory_limit", "cpu_limit", "policy"] as const) set(name, text(name));
  set("pids_limit", number("pids_limit"));
  set("timeout_minutes", number("timeout_minutes"));
  if (mode !== "none") set("network", mode === "allow" ? { mode, allow } : { mode });
  return spec;
}

export function Create({ close }: { close: () => void }) {
  const doctor = useAsked((s) => get<{ items: ProviderReport[] }>("api/doctor", {}, s), []);
  const templates = useAsked((s) => list<Template>("api/templates", {}, 1000, s), []);
  const [network, setNetwork] = useState("none");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const make = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const made = await open(specOf(new FormData(e.currentTarget as HTMLFormElement)));
      close();
      go("sandboxes", made.session_id);
    } catch (p) {
      setProblem(p);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title="New sandbox" close={close} wide>
      <form onSubmit={(e) => void make(e)}>
        <div class="fields">
          <Field label="Template" hint="what is installed inside">
            <select name="template">
              <option value="">the server's own choice</option>
              {templates.value?.map((t) => <option key={t.name} value={t.name} disabled={!t.ready}>{t.name}{t.ready ? "" : " – not ready"}</option>)}
            </select>
          </Field>
          <Field label="Flavor" hint="a size: small, medium, large, or one of the settings">
            <input name="flavor" list="flavors" placeholder="small" />
            <datalist id="flavors"><option value="small" /><option value="medium" /><option value="large" /></datalist>
          </Field>
          <Field label="Provider" hint="what isolates it">
            <select name="provider">
              <option value="">the server's own choice</option>
              {doctor.value?.items.map((p) => <option key={p.name} value={p.name} disabled={!p.capabilities.ready}>{p.name}{p.capabilities.ready ? "" : " – not ready"}</option>)}
            </select>
          </Field>
          <Field label="Network" hint="what it may reach">
            <select name="network" value={network} onChange={(e) => setNetwork(e.currentTarget.value)}>
              <option value="none">nothing</option>
              <option value="allow">names that are listed</option>
              <option value="open">everything public</option>
            </select>
          </Field>
          {network === "allow" && (
            <Field label="Names" hint="such as pypi.org *.example.com">
              <input name="allow" required />
            </Field>
          )}
          <Field label="Memory" hint="enforced or refused, such as 512m"><input name="memory_limit" placeholder="the flavor's" /></Field>
          <Field label="Processors" hint="enforced or refused, such as 1.5"><input name="cpu_limit" placeholder="the flavor's" inputMode="decimal" /></Field>
          <Field label="Programs at once"><input name="pids_limit" type="number" min="1" placeholder="the flavor's" /></Field>
          <Field label="Stopped after minutes without use"><input name="timeout_minutes" type="number" min="1" placeholder="30" /></Field>
          <Field label="Command policy" hint="such as agent-bash"><input name="policy" placeholder="the server's own" /></Field>
          <Field label="Project"><input name="project_name" /></Field>
          <Field label="User" hint="user and thread together find it again"><input name="user_id" /></Field>
          <Field label="Thread"><input name="thread_id" /></Field>
        </div>
        {problem !== undefined && <Failure problem={problem} />}
        <footer>
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={busy}>{busy ? "Opening…" : "Open sandbox"}</button>
        </footer>
      </form>
    </Dialog>
  );
}

// A run as it is kept: what was asked of what, what policy found, what came of it.

import { useEffect, useState } from "preact/hooks";
import type { Run } from "../api/platform";
import { count, milliseconds, moment, size } from "../text";
import { Facts } from "../ui/field";
import { Blocked, Mark } from "../ui/marks";

const mostShown = 256 << 10; // letters of JSON

const nothing = <span class="quiet">none</span>;
const words = (list: string[] | undefined) => (list && list.length > 0 ? <bdi>{list.join(", ")}</bdi> : nothing);

export function Capsule({ run }: { run: Run }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Capsule</summary>
      {open && <Parts run={run} />}
    </details>
  );
}

function Parts({ run }: { run: Run }) {
  const { request: r, decision: d } = run;
  const asked = r.sql ?? r.python_code ?? "";
  const json = JSON.stringify(run, null, 2);
  return (
    <div class="capsule stack">
      <p class="quiet">All that is kept of this run. <button type="button" class="small" onClick={() => save(run.run_id, json)}>Save</button></p>
      <section aria-label="Inputs">
        <h3>Inputs</h3>
        <Facts of={[
          ["Dataset", <bdi>{r.dataset_id ?? "–"}</bdi>], ["Files", words(r.files?.map((f) => `${f.name} (${f.path})`))],
          ["Tables", words(d?.tables)], ["Columns", words(d?.columns)], ["SHA-256 of the question", <Hash of={asked} />],
        ]} />
      </section>
      <section aria-label="Question"><h3>Question</h3><pre class="out" tabIndex={0}>{asked}</pre></section>
      <section aria-label="Policy">
        <h3>Policy</h3>
        {d?.refusal ? <Blocked refusal={d.refusal} text={asked} /> : d ? <p><Mark word={d.allowed ? "allow" : "deny"} /> {d.allowed && "Nothing in it was refused."}</p> : <p class="quiet">Nobody had to decide.</p>}
        {r.query_type === "python" && <Facts of={[["Imports", words(d?.imports)]]} />}
      </section>
      <section aria-label="Result">
        <h3>Result</h3>
        <Facts of={[
          ["Status", <Mark word={run.status} />], ["Rows", `${count(run.row_count)}${run.truncated ? ", cut" : ""}`],
          ["Columns", words(run.columns?.map((c, i) => (run.types?.[i] ? `${c} ${run.types[i]}` : c)))], ["Error", run.error ? <bdi>{run.error.type}: {run.error.message}</bdi> : nothing],
          ["SHA-256 of the rows", <Hash of={JSON.stringify(run.rows ?? [])} />],
        ]} />
      </section>
      <section aria-label="Environment">
        <h3>Environment</h3>
        <Facts of={[
          ["Provider", run.instead_of ? `${run.provider}, instead of ${run.instead_of}` : run.provider || "–"], ["Node", run.node_id ?? "–"], ["Asked by", <bdi>{run.owner}</bdi>],
          ["Asked", moment(run.created_at)], ["Ended", moment(run.ended_at)], ["Took", milliseconds(run.exec_time_ms)],
          ["Bounds", `${r.timeout_seconds ?? 10} s, ${count(r.max_rows ?? 200)} rows, ${size(r.max_output_bytes ?? 65536)}`],
          ...Object.entries(run.timings ?? {}).map(([name, ms]): [string, string] => [name.replace(/_ms$/, ""), milliseconds(ms)]),
        ]} />
      </section>
      <section aria-label="JSON"><h3>JSON</h3><pre class="out follow" tabIndex={0}>{json.length > mostShown ? `${json.slice(0, mostShown)}\n… Save has all of it.` : json}</pre></section>
    </div>
  );
}

// Hash is of a text. Browsers know how over https and on this machine only.
function Hash({ of }: { of: string }) {
  const [hash, set] = useState("");
  useEffect(() => {
    void globalThis.crypto.subtle?.digest("SHA-256", new TextEncoder().encode(of)).then((sum) => set(Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("")));
  }, [of]);
  return hash ? <code class="hash">{hash}</code> : <span class="quiet">not known without https</span>;
}

function save(id: string, json: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  link.download = `run-${id}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

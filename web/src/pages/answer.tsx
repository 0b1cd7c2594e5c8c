// The answer to a question: rows, or why there are none.

import type { Run } from "../api/platform";
import { count, milliseconds, plain } from "../text";
import { Blocked, Mark } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";
import { Capsule } from "./capsule";

const shown = (v: unknown): string => (v === null ? "" : typeof v === "object" ? JSON.stringify(v) : String(v));

export function Answer({ run }: { run: Run }) {
  const asked = run.request.sql ?? run.request.python_code ?? "";
  const refusal = run.error?.refusal ?? run.decision?.refusal;
  const rows = run.rows ?? [];
  const columns: Column<{ at: number; row: unknown[] }>[] = (run.columns ?? []).map((name, i) => ({
    title: name, width: 130, class: typeof rows[0]?.[i] === "number" ? "number" : "cut",
    cell: ({ row }) => (row[i] === null ? <span class="quiet">null</span> : <bdi>{shown(row[i])}</bdi>),
  }));
  const took = Object.entries(run.timings ?? {}).map(([name, ms]) => `${name.replace(/_ms$/, "")} ${milliseconds(ms)}`).join(" · ");
  return (
    <section class="answer" aria-label="Answer">
      <p role="status">
        <Mark word={refusal ? "blocked" : run.status} /> {count(run.row_count)} rows · {milliseconds(run.exec_time_ms)} · {run.provider}{run.truncated && " · cut"}
        {took && <span class="quiet"> · {took}</span>}
      </p>
      {refusal ? <Blocked refusal={refusal} text={asked} /> : run.error && <div class="raised" role="alert"><strong>{run.error.type}</strong>: {plain(run.error.message)}</div>}
      {run.stdout_trunc && <pre class="out">{plain(run.stdout_trunc)}</pre>}
      {run.stderr_trunc && <pre class="out err">{plain(run.stderr_trunc)}</pre>}
      {rows.length > 0 && <Rows label="Rows" rows={rows.map((row, at) => ({ at, row }))} columns={columns} id={(r) => String(r.at)} />}
      {run.decision?.tables && run.decision.tables.length > 0 && <p class="quiet">It named {run.decision.tables.join(", ")}.</p>}
      <Capsule key={run.run_id} run={run} />
    </section>
  );
}

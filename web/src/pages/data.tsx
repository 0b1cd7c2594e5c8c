// Datasets, and questions to them.

import { useState } from "preact/hooks";
import { get, list, page, part, post, type Page } from "../api/http";
import type { Dataset, Run, Table } from "../api/platform";
import { useAsked } from "../asked";
import { ago, count, milliseconds, size } from "../text";
import { Editor } from "../ui/editors";
import { Mark } from "../ui/marks";
import { attempt } from "../ui/notices";
import { Empty, Failure, Shown } from "../ui/states";
import { Answer } from "./answer";

const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/i.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export function Data() {
  const sets = useAsked((s) => list<Dataset>("api/datasets", {}, 1000, s), []);
  const [asked, setAsked] = useState(0);
  const [dataset, setDataset] = useState("");
  const [kind, setKind] = useState<"sql" | "python">("sql");
  const [text, setText] = useState("");
  const [run, setRun] = useState<Run>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const chosen = dataset || sets.value?.[0]?.id || "";

  const ask = async () => {
    if (busy || text.trim() === "") return;
    setBusy(true);
    setProblem(undefined);
    try {
      setRun(await post<Run>("api/runs", { query_type: kind, [kind === "sql" ? "sql" : "python_code"]: text, ...(chosen && { dataset_id: chosen }) }));
    } catch (p) {
      setRun(undefined);
      setProblem(p);
    } finally {
      setBusy(false);
      setAsked((n) => n + 1);
    }
  };
  const recall = async (r: Run) => {
    setKind(r.request.query_type === "python" ? "python" : "sql");
    setText(r.request.sql ?? r.request.python_code ?? "");
    if (r.request.dataset_id) setDataset(r.request.dataset_id);
    const whole = await attempt(() => get<Run>(`api/runs/${part(r.run_id)}`));
    if (whole) setRun(whole);
  };
  return (
    <section class="page data" aria-labelledby="title">
      <header class="bar"><h1 id="title">Runs and data</h1></header>
      <Shown asked={sets} what="Looking for datasets">
        {(all) => all.length === 0
          ? <Empty title="There are no datasets"><p>COVE_DATASETS names the folder that has them; <code>cove dataset generate</code> makes some to try.</p></Empty>
          : (
            <div class="data-parts">
              <aside aria-label="Datasets">
                <select aria-label="Dataset" value={chosen} onChange={(e) => setDataset(e.currentTarget.value)}>
                  {all.map((d) => <option key={d.id} value={d.id}>{d.id}</option>)}
                </select>
                <Schema key={chosen} id={chosen} ask={(t) => { setKind("sql"); setText(`SELECT * FROM ${quoted(t.name)} LIMIT 20`); }} />
              </aside>
              <div class="stack">
                <form class="composer" onSubmit={(e) => { e.preventDefault(); void ask(); }}>
                  <div class="bar">
                    <select aria-label="Kind of question" value={kind} onChange={(e) => setKind(e.currentTarget.value as "sql" | "python")}><option value="sql">SQL</option><option value="python">Python</option></select>
                    <button type="submit" class="primary" disabled={busy || text.trim() === ""}>{busy ? "Asking…" : "Ask"}</button>
                    <span class="quiet">Ctrl-Enter asks</span>
                  </div>
                  <Editor label="Question" language={kind} value={text} change={setText} run={() => void ask()} />
                </form>
                {problem !== undefined && <Failure problem={problem} />}
                {run && <Answer run={run} />}
                <Past version={asked} recall={(r) => void recall(r)} />
              </div>
            </div>
          )}
      </Shown>
    </section>
  );
}

function Schema({ id, ask }: { id: string; ask: (t: Table) => void }) {
  const asked = useAsked((s) => get<Dataset>(`api/datasets/${part(id)}/schema`, {}, s), [id]);
  return (
    <Shown asked={asked} what="Looking into it">
      {(d) => (
        <>
          {d.description && <p class="quiet">{d.description}</p>}
          {d.tables.map((t) => (
            <details key={t.name} open={d.tables.length < 4}>
              <summary><bdi>{t.name}</bdi> <span class="quiet">{t.row_count !== undefined && `${count(t.row_count)} rows · `}{size(t.size_bytes)}</span></summary>
              {t.problem && <p class="bad-text">{t.problem}</p>}
              <dl class="columns">{t.columns?.map((c) => <div key={c.name}><dt><bdi>{c.name}</bdi></dt><dd>{c.type}</dd></div>)}</dl>
              <button type="button" class="small" onClick={() => ask(t)}>Look at rows</button>
            </details>
          ))}
        </>
      )}
    </Shown>
  );
}

const atOnce = 20; // runs of a page

// Past reads a page at a time: there may be very many, and each has its answer.
function Past({ version, recall }: { version: number; recall: (r: Run) => void }) {
  const [from, setFrom] = useState<string[]>([]); // where the pages begin after the first
  const cursor = from.at(-1);
  const asked = useAsked<Page<Run>>((s) => page("api/runs", { newest: true, limit: atOnce, cursor }, s), [cursor, version]);
  const next = asked.value?.next_cursor;
  if (from.length === 0 && asked.value?.items.length === 0) return null;
  return (
    <section aria-labelledby="past">
      <h2 id="past">Asked before</h2>
      <Shown asked={asked} what="Reading what was asked">
        {({ items }) => (
          <ul class="past">
            {items.map((r) => (
              <li key={r.run_id}>
                <Mark word={r.decision?.allowed === false ? "blocked" : r.status} />{" "}
                <button type="button" class="link cut" onClick={() => recall(r)}><code><bdi>{r.request.sql ?? r.request.python_code}</bdi></code></button>{" "}
                <span class="quiet">{count(r.row_count)} rows · {milliseconds(r.exec_time_ms)} · {ago(r.created_at)}</span>
              </li>
            ))}
          </ul>
        )}
      </Shown>
      {(from.length > 0 || next) && (
        <p class="buttons">
          <button type="button" class="small" disabled={from.length === 0} onClick={() => setFrom(from.slice(0, -1))}>Newer</button>
          <button type="button" class="small" disabled={!next} onClick={() => next && setFrom([...from, next])}>Older</button>
          <span class="quiet">page {from.length + 1}</span>
        </p>
      )}
    </section>
  );
}

// What each provider can do here, and whether its sandboxes hold.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/http";
import type { Isolation } from "../api/forms";
import type { Finding, ProviderReport, Verdict } from "../api/platform";
import { events } from "../api/stream";
import { useAsked } from "../asked";
import { may } from "../session";
import { plural } from "../text";
import { LevelMark, Mark } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";
import { Scroll } from "../ui/scroll";
import { Failure, Shown } from "../ui/states";

const limits: Exclude<keyof Isolation, "boundary">[] = ["network", "memory", "cpu", "pids", "disk", "files", "policy"];

export function Doctor() {
  const asked = useAsked((s) => get<{ items: ProviderReport[] }>("api/doctor", {}, s), []);
  return (
    <section class="page" aria-labelledby="title">
      <header class="bar"><h1 id="title">Doctor</h1><button type="button" onClick={asked.again}>Look again</button></header>
      <Shown asked={asked} what="Asking every provider">
        {({ items }) => (
          <>
            <Scroll label="Providers">
              <table class="plain">
                <thead><tr><th scope="col">Provider</th><th scope="col">State</th><th scope="col">Boundary</th>{limits.map((l) => <th key={l} scope="col">{l}</th>)}<th scope="col">Can</th></tr></thead>
                <tbody>
                  {items.map((p) => (
                    <tr key={p.name}>
                      <th scope="row">{p.name}{p.default && <span class="quiet"> default</span>}{p.fallback ? <span class="quiet"> fallback {p.fallback}</span> : null}</th>
                      <td><Mark word={p.capabilities.ready ? "ready" : "not ready"} tone={p.capabilities.ready ? "good" : "idle"} /></td>
                      <td>{p.capabilities.isolation.boundary || "–"}</td>
                      {p.capabilities.ready
                        ? <>{limits.map((l) => <td key={l}><LevelMark level={p.capabilities.isolation[l]} /></td>)}<td class="quiet">{(p.capabilities.powers ?? []).join(", ")}</td></>
                        : <td colSpan={limits.length + 1}>{p.capabilities.why}{p.capabilities.remedy && <p class="quiet">{p.capabilities.remedy}</p>}</td>}
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
            {may("admin") && <Verify providers={items.filter((p) => p.capabilities.ready).map((p) => p.name)} />}
          </>
        )}
      </Shown>
    </section>
  );
}

const columns: Column<Finding & { number: number }>[] = [
  { title: "", width: 100, cell: (f) => <Mark word={f.skipped ? "not tried" : f.held ? "held" : "got through"} tone={f.skipped ? "idle" : f.held ? "good" : "bad"} /> },
  { title: "Attack", width: 150, cell: (f) => f.attack },
  { title: "What was tried", class: "grow cut", cell: (f) => f.try },
  { title: "Via", width: 110, class: "minor", cell: (f) => f.via },
  { title: "What stopped it", class: "cut", cell: (f) => f.skipped ?? f.detail ?? f.by },
];

// Verify attacks the sandboxes of a provider and shows each attempt as it ends.
function Verify({ providers }: { providers: string[] }) {
  const [provider, setProvider] = useState(providers[0] ?? "");
  const [found, setFound] = useState<(Finding & { number: number })[]>([]);
  const [verdict, setVerdict] = useState<Verdict>();
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const begin = async () => {
    setBusy(true);
    setFound([]);
    setVerdict(undefined);
    setProblem(undefined);
    const control = (stop.current = new AbortController());
    try {
      for await (const e of events("POST", "api/verify", { body: { provider }, signal: control.signal })) {
        if (e.name === "finding") setFound((all) => [...all, { ...(e.data as Finding), number: all.length }]);
        if (e.name === "verdict") setVerdict(e.data as Verdict);
      }
    } catch (p) {
      if (!control.signal.aborted) setProblem(p);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section aria-labelledby="verify" class="verify">
      <header class="bar">
        <h2 id="verify">Attack it</h2>
        <select aria-label="Provider to attack" value={provider} onChange={(e) => setProvider(e.currentTarget.value)}>
          {providers.map((p) => <option key={p} value={p}>{p}</option>)}
        </select>
        {busy
          ? <button type="button" onClick={() => stop.current?.abort()}>Stop</button>
          : <button type="button" class="primary" disabled={provider === ""} onClick={() => void begin()}>Verify</button>}
        <span role="status">
          {busy && <><span class="spinner" aria-hidden="true" /> {plural(found.length, "attempt")} so far</>}
          {verdict && <Mark word={verdict.got_through === 0 ? `all ${verdict.held} held` : `${verdict.got_through} got through`} tone={verdict.got_through === 0 ? "good" : "bad"} />}
          {verdict && verdict.not_tried > 0 && <span class="quiet"> {verdict.not_tried} not tried</span>}
        </span>
      </header>
      <p class="quiet">Hostile programs run in sandboxes of their own and try to get out, to starve others, or to stay. It takes up to a minute.</p>
      {problem !== undefined && <Failure problem={problem} />}
      {found.length > 0 && <Rows label="Attacks" rows={found} columns={columns} id={(f) => String(f.number)} end />}
    </section>
  );
}

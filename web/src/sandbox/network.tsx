// What a sandbox may reach, and what it tried to.

import { useState } from "preact/hooks";
import { latest, part } from "../api/http";
import type { Connection, Network } from "../api/forms";
import { setNetwork } from "../api/sandboxes";
import { useAsked } from "../asked";
import { may } from "../session";
import { clock, milliseconds, size } from "../text";
import { Field } from "../ui/field";
import { Mark } from "../ui/marks";
import { attempt } from "../ui/notices";
import { Rows, type Column } from "../ui/rows";
import { Empty, Shown } from "../ui/states";
import type { TabProps } from "./sandbox";

const columns: Column<Connection>[] = [
  { title: "Time", width: 90, cell: (c) => clock(c.at) },
  { title: "", width: 80, cell: (c) => <Mark word={c.allowed ? "allow" : "deny"} /> },
  { title: "To", class: "grow cut", cell: (c) => <code><bdi>{c.host}{c.port ? `:${c.port}` : ""}</bdi></code> },
  { title: "By", width: 60, class: "minor", cell: (c) => c.protocol },
  { title: "Sent", width: 90, class: "number minor", cell: (c) => size(c.sent_bytes) },
  { title: "Received", width: 90, class: "number minor", cell: (c) => size(c.received_bytes) },
  { title: "Took", width: 90, class: "number minor", cell: (c) => milliseconds(c.took_ms) },
  { title: "Why not", class: "cut", cell: (c) => <bdi>{c.why}</bdi> },
];

export function NetworkTab({ session, again }: TabProps) {
  const asked = useAsked((s) => latest<Connection>(`api/sandboxes/${part(session.session_id)}/connections`, {}, 5000, s), [session.session_id], { every: 3000, idle: session.status === "ended" });
  return (
    <div class="stack tall">
      {session.status === "running" && may("sandbox:write") && <Rules session={session} again={again} />}
      <h2>What it tried to reach</h2>
      <Shown asked={asked} what="Reading the log">
        {(all) => all.length === 0
          ? <Empty title="It has tried nothing yet"><p>Each connection and each name that it asks for is listed here, with the reason where it was refused.</p></Empty>
          : <Rows label="Connections" rows={all} columns={columns} id={(c) => String(c.number)} end />}
      </Shown>
    </div>
  );
}

function Rules({ session, again }: TabProps) {
  const before = session.spec.network ?? {};
  const [mode, setMode] = useState<string>(before.mode ?? "none");
  const [names, setNames] = useState((before.allow ?? []).join(" "));
  const set = async (e: Event) => {
    e.preventDefault();
    const network: Network = { mode: mode as "none" | "allow" | "open" };
    if (mode === "allow") network.allow = names.split(/[\s,]+/).filter(Boolean);
    if (before.secrets) network.secrets = before.secrets;
    await attempt(() => setNetwork(session.session_id, network), "The rules hold from now on");
    again();
  };
  return (
    <form class="bar" onSubmit={(e) => void set(e)}>
      <Field label="It may reach">
        <select value={mode} onChange={(e) => setMode(e.currentTarget.value)}>
          <option value="none">nothing</option>
          <option value="allow">names that are listed</option>
          <option value="open">everything public</option>
        </select>
      </Field>
      {mode === "allow" && <Field label="Names"><input class="mono" value={names} onInput={(e) => setNames(e.currentTarget.value)} required placeholder="pypi.org *.example.com" /></Field>}
      <button type="submit">Set</button>
    </form>
  );
}

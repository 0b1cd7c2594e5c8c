// Keys, and the tenants that they belong to.

import { useState } from "preact/hooks";
import { list, part, post, remove } from "../api/http";
import type { Key, NewKey } from "../api/platform";
import { useAsked } from "../asked";
import { ago, moment } from "../text";
import { confirm, Dialog } from "../ui/dialog";
import { Field } from "../ui/field";
import { Mark } from "../ui/marks";
import { Rows, type Column } from "../ui/rows";
import { Empty, Failure, Shown } from "../ui/states";
import { TenantView } from "./tenant";

const scopes: [string, string][] = [
  ["sandbox:read", "see sandboxes"], ["sandbox:write", "open, change and end them"], ["exec", "run programs and code, reach ports"], ["files:read", "read files"],
  ["files:write", "write files"], ["runs", "ask questions of data"], ["templates", "build templates of the own tenant"], ["admin", "keys, tenants, tasks, the journal"], ["metrics", "read metrics"], ["trusted", "run code whose imports nobody looks at"], ["*", "everything"],
];

const state = (k: Key): string => (k.revoked_at ? "revoked" : k.expires_at && Date.parse(k.expires_at) < Date.now() ? "expired" : "good");

export function Keys() {
  const asked = useAsked((s) => list<Key>("api/keys", {}, 5000, s), [], { live: true });
  const [making, setMaking] = useState(false);
  const [tenant, setTenant] = useState<string>();
  const [all, showAll] = useState(false);
  const revoke = (k: Key) => confirm({
    title: "Revoke this key?", verb: "Revoke", text: `${k.name || k.key_id} opens nothing any more, and what its callers wait for ends. This cannot be taken back.`,
    act: () => remove(`api/keys/${part(k.key_id)}`).then(asked.again),
  });
  const columns: Column<Key>[] = [
    { title: "Name", class: "grow cut", cell: (k) => <bdi>{k.name || k.key_id}</bdi> },
    { title: "State", width: 90, cell: (k) => <Mark word={state(k)} tone={state(k) === "good" ? "good" : "idle"} /> },
    { title: "Tenant", width: 120, class: "cut", cell: (k) => <button type="button" class="link" onClick={() => setTenant(k.tenant)}>{k.tenant}</button> },
    { title: "Scopes", class: "minor cut", cell: (k) => k.scopes.join(" ") },
    { title: "Limits", class: "minor cut", cell: (k) => limitsOf(k) },
    { title: "Made", width: 120, class: "minor", cell: (k) => ago(k.created_at) },
    { title: "Expires", width: 170, class: "minor", cell: (k) => (k.expires_at ? moment(k.expires_at) : "never") },
    { title: "Do", width: 90, class: "actions", cell: (k) => state(k) === "good" && <button type="button" class="small danger" aria-label={`Revoke ${k.name || k.key_id}`} onClick={() => revoke(k)}>Revoke</button> },
  ];
  const shown = (asked.value ?? []).filter((k) => all || state(k) === "good");
  const tenants = [...new Set((asked.value ?? []).map((k) => k.tenant))].sort();
  return (
    <section class="page tall" aria-labelledby="title">
      <header class="bar">
        <h1 id="title">Keys and tenants</h1>
        <label class="check"><input type="checkbox" checked={all} onChange={(e) => showAll(e.currentTarget.checked)} /> revoked and expired too</label>
        <select aria-label="Tenant" value="" onChange={(e) => e.currentTarget.value && setTenant(e.currentTarget.value)}>
          <option value="">Look at a tenant…</option>
          {tenants.map((t) => <option key={t} value={t}>{t}</option>)}
        </select>
        <button type="button" class="primary" onClick={() => setMaking(true)}>New key</button>
      </header>
      <Shown asked={asked} what="Asking for the keys">
        {() => shown.length === 0 ? <Empty title="There is no key" /> : <Rows label="Keys" rows={shown} columns={columns} id={(k) => k.key_id} />}
      </Shown>
      {making && <Make close={() => setMaking(false)} made={asked.again} />}
      {tenant !== undefined && <TenantView key={tenant} name={tenant} close={() => setTenant(undefined)} />}
    </section>
  );
}

function limitsOf(k: Key): string {
  const { rate_per_second: rate, concurrent, sessions } = k.limits;
  return [rate && `${rate}/s`, concurrent && `${concurrent} at once`, sessions && `${sessions} sandboxes`].filter(Boolean).join(", ") || "none";
}

function Make({ close, made }: { close: () => void; made: () => void }) {
  const [problem, setProblem] = useState<unknown>();
  const [key, setKey] = useState<NewKey>();
  const make = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const number = (name: string): number => Number(form.get(name) || 0);
    const days = number("days");
    try {
      setKey(await post<NewKey>("api/keys", {
        name: form.get("name"), tenant: form.get("tenant") || undefined, scopes: form.getAll("scope"),
        limits: { rate_per_second: number("rate"), concurrent: number("concurrent"), sessions: number("sessions") }, ...(days > 0 && { ttl_seconds: days * 86400 }),
      }));
      made();
    } catch (p) {
      setProblem(p);
    }
  };
  if (key) {
    return (
      <Dialog title="The new key" close={close}>
        <p>This is shown this once. Keep it where secrets are kept.</p>
        <Field label="Secret"><input class="mono" readOnly value={key.secret} onFocus={(e) => e.currentTarget.select()} autofocus /></Field>
        <footer>
          <button type="button" onClick={() => void navigator.clipboard?.writeText(key.secret)}>Copy</button>
          <button type="button" class="primary" onClick={close}>Done</button>
        </footer>
      </Dialog>
    );
  }
  return (
    <Dialog title="New key" close={close} wide>
      <form onSubmit={(e) => void make(e)}>
        <div class="fields">
          <Field label="Name"><input name="name" required maxLength={100} /></Field>
          <Field label="Tenant"><input name="tenant" placeholder="default" /></Field>
          <Field label="Good for days" hint="empty: it does not expire"><input name="days" type="number" min="0" step="any" /></Field>
          <Field label="Requests in a second" hint="empty: no limit"><input name="rate" type="number" min="0" step="any" /></Field>
          <Field label="Requests at once"><input name="concurrent" type="number" min="0" /></Field>
          <Field label="Sandboxes at once"><input name="sessions" type="number" min="0" /></Field>
        </div>
        <fieldset>
          <legend>What it may do</legend>
          {scopes.map(([name, text], i) => <label key={name} class="check"><input type="checkbox" name="scope" value={name} defaultChecked={i < 5} /> <code>{name}</code> <span class="quiet">{text}</span></label>)}
        </fieldset>
        {problem !== undefined && <Failure problem={problem} />}
        <footer>
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary">Make it</button>
        </footer>
      </form>
    </Dialog>
  );
}

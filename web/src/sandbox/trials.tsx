// A program on trial: what it changed is shown before it counts.

import { useState } from "preact/hooks";
import type { Trial } from "../api/forms";
import { Problem } from "../api/http";
import { nameIn, shownName } from "../api/names";
import { textOf } from "../api/stream";
import { decide, trial, tryOut } from "../api/sandboxes";
import { useAsked } from "../asked";
import { may } from "../session";
import { plain, plural, size } from "../text";
import { Blocked, Mark } from "../ui/marks";
import { attempt } from "../ui/notices";
import { Empty, Failure, Waiting } from "../ui/states";
import { Changed } from "./changed";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

export function Trials({ session, again }: TabProps) {
  return <Awake session={session} again={again}><Table session={session} again={again} /></Awake>;
}

const tones: Record<string, string> = { created: "good", modified: "warn", removed: "bad" };

function Table({ session, again }: TabProps) {
  const id = session.session_id;
  const asked = useAsked<Trial | null>((s) => trial(id, s).catch((p: unknown) => {
    if (p instanceof Problem && (p.body.code === "not_found" || p.body.code === "conflict")) return null; // nothing is on trial
    throw p;
  }), [id, session.trial]);
  const [command, setCommand] = useState("");
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState<Trial>(); // the last one, also where nothing came of it
  const begin = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setDone(await attempt(() => tryOut(id, command)));
    setBusy(false);
    asked.again();
    again();
  };
  const end = async (what: "commit" | "discard") => {
    setDone(undefined);
    await attempt(() => decide(id, what), what === "commit" ? "The changes are kept" : "The changes are taken back");
    asked.again();
    again();
  };
  const t = asked.value ?? done ?? asked.value;
  return (
    <div class="stack">
      <form class="bar" onSubmit={(e) => void begin(e)}>
        <input class="grow mono" aria-label="Command to try" placeholder="a command to try: what it changes is shown before it counts" value={command} onInput={(e) => setCommand(e.currentTarget.value)} disabled={t?.open} />
        <button type="submit" class="primary" disabled={busy || command.trim() === "" || t?.open}>Try</button>
      </form>
      {asked.problem !== undefined && <Failure problem={asked.problem} again={asked.again} />}
      {busy && <Waiting what="It runs on trial" />}
      {t === null && !busy && <Empty title="Nothing is on trial"><p>A program on trial works on a layer over the files. Afterwards its changes are committed or discarded.</p></Empty>}
      {t && (
        <section aria-labelledby="changes" class="stack">
          <header class="bar">
            <h2 id="changes">{plural(t.created, "file")} created, {t.modified} modified, {t.removed} removed</h2>
            <span class="quiet">{size(t.bytes)}</span>
            {t.open && <span class="buttons">
              <button type="button" class="primary" onClick={() => void end("commit")}>Commit</button>
              <button type="button" class="danger" onClick={() => void end("discard")}>Discard</button>
            </span>}
          </header>
          {t.execution?.refusal && <Blocked refusal={t.execution.refusal} text={command} />}
          {t.execution && <pre class="out">{plain(textOf(t.execution.stdout, t.execution.stdout_base64) + textOf(t.execution.stderr, t.execution.stderr_base64)) || "it wrote nothing"}</pre>}
          <Changes id={id} trial={t} />
          {t.truncated && <p class="quiet">There are more.</p>}
        </section>
      )}
    </div>
  );
}

const mostListed = 1000;

// Changes lists what differs; a file that is opened shows how.
function Changes({ id, trial }: { id: string; trial: Trial }) {
  const [chosen, choose] = useState<string>();
  const all = trial.changes ?? [];
  const compares = trial.open && may("files:read");
  return (
    <ul class="changes">
      {all.slice(0, mostListed).map((c) => {
        const path = nameIn(c.path, c.path_base64);
        const file = c.file === undefined || c.file.type === "file";
        const open = chosen === path;
        const name = <code><bdi>{shownName(path)}</bdi></code>;
        return (
          <li key={path}>
            <Mark word={c.kind} tone={tones[c.kind] ?? "idle"} />{" "}
            {compares && file ? <button type="button" class="link" aria-expanded={open} onClick={() => choose(open ? undefined : path)}>{name}</button> : name}{" "}
            {c.file && c.file.type === "file" && <span class="quiet">{size(c.file.size)}</span>}
            {open && compares && <Changed id={id} path={path} kind={c.kind} version={c.file?.modified} />}
          </li>
        );
      })}
      {all.length > mostListed && <li class="quiet">and {plural(all.length - mostListed, "other")}</li>}
    </ul>
  );
}

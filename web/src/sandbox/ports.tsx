// Links to what listens inside. They lead to an origin of their own, that knows
// nothing of this one.

import { useState } from "preact/hooks";
import type { Link } from "../api/forms";
import { preview } from "../api/sandboxes";
import { ago } from "../text";
import { Field } from "../ui/field";
import { Failure } from "../ui/states";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

interface Made extends Link {
  port: number;
}

export function Ports({ session, again }: TabProps) {
  const [port, setPort] = useState(String(session.spec.ports?.[0] ?? ""));
  const [made, setMade] = useState<Made[]>([]);
  const [problem, setProblem] = useState<unknown>();
  const make = async (e: Event) => {
    e.preventDefault();
    setProblem(undefined);
    try {
      const link = await preview(session.session_id, Number(port));
      setMade([{ ...link, port: Number(port) }, ...made.slice(0, 19)]);
    } catch (p) {
      setProblem(p);
    }
  };
  return (
    <Awake session={session} again={again}>
      <div class="stack">
        <form class="bar" onSubmit={(e) => void make(e)}>
          <Field label="Port inside"><input type="number" min="1" max="65535" required value={port} onInput={(e) => setPort(e.currentTarget.value)} /></Field>
          <button type="submit" class="primary">Make a link</button>
        </form>
        <p class="quiet">Whoever has the link can open the port until it is over, without a key. The page has a host name of its own and cannot reach this console.</p>
        {problem !== undefined && <Failure problem={problem} />}
        <ul class="links">
          {made.map((l) => (
            <li key={l.url}>
              {/^https?:\/\//.test(l.url) && <a href={l.url} target="_blank" rel="noopener noreferrer">Open port {l.port}</a>} <span class="quiet">until {ago(l.expires_at)}</span>
              <input class="mono" readOnly aria-label={`Link to port ${l.port}`} value={l.url} onFocus={(e) => e.currentTarget.select()} />
            </li>
          ))}
        </ul>
      </div>
    </Awake>
  );
}

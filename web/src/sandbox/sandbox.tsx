// One sandbox.

import type { ComponentType } from "preact";
import type { Session } from "../api/forms";
import { Problem } from "../api/http";
import { sandbox } from "../api/sandboxes";
import { useAsked } from "../asked";
import { rest, to } from "../route";
import { may } from "../session";
import { ago } from "../text";
import { Status } from "../ui/marks";
import { Empty, Failure, Waiting } from "../ui/states";
import { Actions } from "./actions";
import { Files } from "./files";
import { NetworkTab } from "./network";
import { Ports } from "./ports";
import { Processes } from "./processes";
import { Runner } from "./runner";
import { Summary } from "./summary";
import { TerminalTab } from "./terminals";
import { Timeline } from "./timeline";
import { Trials } from "./trials";
import { UsageTab } from "./usage";

export interface TabProps {
  session: Session;
  again: () => void;
}

interface Tab {
  name: string;
  title: string;
  scope: string;
  part: ComponentType<TabProps>;
}

const tabs: Tab[] = [
  { name: "about", title: "About", scope: "sandbox:read", part: Summary },
  { name: "terminal", title: "Terminal", scope: "exec", part: TerminalTab },
  { name: "code", title: "Code", scope: "exec", part: Runner },
  { name: "files", title: "Files", scope: "files:read", part: Files },
  { name: "processes", title: "Processes", scope: "sandbox:read", part: Processes },
  { name: "usage", title: "Usage", scope: "sandbox:read", part: UsageTab },
  { name: "ports", title: "Ports", scope: "exec", part: Ports },
  { name: "network", title: "Network", scope: "sandbox:read", part: NetworkTab },
  { name: "trial", title: "Trial", scope: "exec", part: Trials },
  { name: "timeline", title: "Timeline", scope: "sandbox:read", part: Timeline },
];

export function SandboxPage() {
  const [id = "", name = "about"] = rest.value;
  const asked = useAsked((s) => sandbox(id, s), [id], { live: true, every: 10000 });
  const s = asked.value;
  if (!s) {
    if (asked.problem === undefined) return <section class="page"><Waiting what="Looking at the sandbox" /></section>;
    const gone = asked.problem instanceof Problem && asked.problem.body.code === "not_found";
    return (
      <section class="page">
        {gone
          ? <Empty title="There is no such sandbox"><p>It may have been destroyed, or belong to somebody else.</p><a class="button" href={to("sandboxes")}>All sandboxes</a></Empty>
          : <Failure problem={asked.problem} again={asked.again} />}
      </section>
    );
  }
  const gone = asked.problem instanceof Problem && asked.problem.body.code === "not_found";
  const shown = tabs.filter((t) => may(t.scope));
  const tab = shown.find((t) => t.name === name) ?? shown[0];
  const Part = tab?.part;
  return (
    <section class="page tall sandbox" aria-labelledby="title">
      <header class="bar">
        <h1 id="title"><a href={to("sandboxes")} class="crumb">Sandboxes</a> <code>{s.session_id}</code></h1>
        <Status session={gone ? { ...s, status: "ended" } : s} />
        <span class="quiet">{s.provider}{s.status === "running" && ` · ends ${ago(s.expires_at)}`}</span>
        {!gone && <Actions session={s} again={asked.again} />}
      </header>
      {(gone || s.status === "ended" || s.status === "error") && (
        <p class="banner" role="alert">{gone ? "This sandbox was destroyed. What is below is the last that was known." : `This sandbox is over${s.cause ? `: ${s.cause}` : "."}`}</p>
      )}
      {!gone && s.instead_of && <p class="banner">{s.instead_of} was not ready: {s.provider} serves it instead, as the settings allow.</p>}
      <nav class="tabs" aria-label="Parts of the sandbox">
        {shown.map((t) => <a key={t.name} href={to("sandboxes", id, t.name)} aria-current={t === tab ? "page" : undefined}>{t.title}{t.name === "trial" && s.trial === "open" ? " •" : ""}</a>)}
      </nav>
      <div class="tab" key={`${id} ${tab?.name}`}>{Part && <Part session={gone ? { ...s, status: "ended" } : s} again={asked.again} />}</div>
    </section>
  );
}

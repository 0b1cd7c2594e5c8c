// Programs in the background.

import { useEffect, useRef, useState } from "preact/hooks";
import { part } from "../api/http";
import type { Process } from "../api/forms";
import { kill, processes, start } from "../api/sandboxes";
import { events, textOf, type Chunk } from "../api/stream";
import { useAsked } from "../asked";
import { may } from "../session";
import { ago, plain } from "../text";
import { Blocked, Mark } from "../ui/marks";
import { attempt } from "../ui/notices";
import { Scroll } from "../ui/scroll";
import { Empty, Failure, Shown } from "../ui/states";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

const mostShown = 128 << 10;
const pace = 100; // milliseconds between two pictures of what is written

export function Processes({ session, again }: TabProps) {
  return <Awake session={session} again={again}><List id={session.session_id} /></Awake>;
}

function List({ id }: { id: string }) {
  const asked = useAsked((s) => processes(id, s), [id], { live: true, every: 3000 });
  const [command, setCommand] = useState("");
  const [refused, setRefused] = useState<Process>();
  const [shown, show] = useState<number>();
  const runs = may("exec");
  const begin = async (e: Event) => {
    e.preventDefault();
    const p = await attempt(() => start(id, command));
    if (!p) return;
    setRefused(p.pid === undefined ? p : undefined);
    if (p.pid !== undefined) {
      setCommand("");
      show(p.pid);
    }
    asked.again();
  };
  return (
    <div class="stack">
      {runs && (
        <form class="bar" onSubmit={(e) => void begin(e)}>
          <input class="grow mono" aria-label="Command to start in the background" placeholder="a command to start in the background" value={command} onInput={(e) => setCommand(e.currentTarget.value)} />
          <button type="submit" class="primary" disabled={command.trim() === ""}>Start</button>
        </form>
      )}
      {refused?.result?.refusal && <Blocked refusal={refused.result.refusal} text={command} />}
      <Shown asked={asked} what="Looking for programs">
        {(all) => all.length === 0 ? <Empty title="No program runs in the background" /> : (
          <Scroll label="Programs">
            <table class="plain">
              <thead><tr><th scope="col">Number</th><th scope="col">Command</th><th scope="col">State</th><th scope="col">Started</th><th scope="col">Do</th></tr></thead>
              <tbody>
                {all.toReversed().map((p) => (
                  <tr key={p.pid}>
                    <td>{p.pid}</td>
                    <td class="cut"><code><bdi>{p.command}</bdi></code></td>
                    <td>{p.running ? <Mark word="running" /> : <><Mark word={p.result?.status ?? "ended"} /> {p.result && p.result.exit_code}</>}</td>
                    <td>{ago(p.started_at)}</td>
                    <td class="buttons">
                      <button type="button" class="small" aria-label={`Output of ${p.pid}`} onClick={() => show(shown === p.pid ? undefined : p.pid)}>Output</button>
                      {p.running && runs && p.pid !== undefined && ["TERM", "KILL"].map((name) => (
                        <button key={name} type="button" class="small danger" aria-label={`Send ${name} to ${p.pid}`} onClick={() => void attempt(() => kill(id, p.pid ?? 0, name), `${name} was sent`).then(asked.again)}>{name}</button>
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </Shown>
      {shown !== undefined && <Followed key={shown} id={id} pid={shown} />}
    </div>
  );
}

// Followed shows what a program writes, while it does.
function Followed({ id, pid }: { id: string; pid: number }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<unknown>();
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const stop = new AbortController();
    let now = "";
    let due: ReturnType<typeof setTimeout> | undefined;
    const follow = async () => {
      for await (const e of events("GET", `api/sandboxes/${part(id)}/processes/${pid}`, { signal: stop.signal })) {
        if (e.name !== "stdout" && e.name !== "stderr") continue;
        const c = e.data as Chunk;
        now = (now + textOf(c.data, c.data_base64)).slice(-mostShown);
        due ??= setTimeout(() => {
          due = undefined;
          setText(now);
        }, pace);
      }
    };
    follow().catch((p: unknown) => !stop.signal.aborted && setProblem(p));
    return () => {
      stop.abort();
      clearTimeout(due);
    };
  }, []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <section aria-label={`What ${pid} wrote`}>
      <h2>What {pid} wrote</h2>
      {problem !== undefined && <Failure problem={problem} />}
      <pre class="out follow" ref={box} tabIndex={0}>{plain(text) || "nothing yet"}</pre>
    </section>
  );
}

// Code and commands, one after the other, with what came of each.

import { signal, type Signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { CodeResult, Execution } from "../api/forms";
import { part, Problem } from "../api/http";
import { events, textOf, type Chunk } from "../api/stream";
import { Editor } from "../ui/editors";
import { Output, type Ran } from "./output";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

const languages = [["python", "Python"], ["node", "Node"], ["bash", "Bash"], ["command", "Command"]] as const;
const mostCells = 50;
const mostShown = 256 << 10; // of a stream that is still going
const pace = 100; // milliseconds between two pictures of one
const mostNotebooks = 20;

interface Cell extends Ran {
  id: number;
}

interface Kept {
  cells: Signal<Cell[]>;
  stop: Signal<AbortController | undefined>; // of what runs
}

// The cells of each sandbox stay while the console does, and what runs goes on.
const notebooks = new Map<string, Kept>();

function notebook(id: string): Kept {
  let n = notebooks.get(id);
  if (!n) {
    for (const oldest of [...notebooks.keys()].slice(0, notebooks.size - mostNotebooks + 1)) notebooks.delete(oldest);
    notebooks.set(id, (n = { cells: signal([]), stop: signal(undefined) }));
  }
  return n;
}

let last = 0;

const grown = (before: string, more: string): string => (before + more).slice(-mostShown);

// run follows what the server does with a cell, and tells of each step.
async function run(id: string, cell: Cell, step: (c: Cell) => void, stop: AbortSignal): Promise<void> {
  const command = cell.language === "command";
  const path = `api/sandboxes/${part(id)}/${command ? "execute" : "code"}`;
  const body = command ? { command: cell.code } : { language: cell.language, code: cell.code };
  let now = cell;
  let due: ReturnType<typeof setTimeout> | undefined;
  const show = () => {
    clearTimeout(due);
    due = undefined;
    step(now);
  };
  const set = (more: Partial<Cell>) => {
    now = { ...now, ...more };
    show();
  };
  try {
    for await (const event of events("POST", path, { body, headers: { "Content-Type": "application/json" }, signal: stop })) {
      switch (event.name) {
        case "stdout":
        case "stderr": {
          const c = event.data as Chunk;
          now = { ...now, [event.name]: grown(now[event.name], textOf(c.data, c.data_base64)) };
          due ??= setTimeout(show, pace);
          break;
        }
        case "exit": {
          const x = event.data as Execution;
          set({ running: false, execution: x, ...final(x) });
          break;
        }
        case "result": {
          const r = event.data as CodeResult;
          set({ running: false, execution: r, values: r.results ?? [], error: r.error, ...final(r), ...(r.execution_count !== undefined && { count: r.execution_count }) });
        }
      }
    }
  } catch (problem) {
    set({ problem: stop.aborted ? new Problem({ status: 0, code: "canceled", error: "it was stopped" }) : problem });
  }
  if (now.running || due !== undefined) set({ running: false });
}

const final = (x: Execution) => ({ stdout: textOf(x.stdout, x.stdout_base64), stderr: textOf(x.stderr, x.stderr_base64) });

export function Runner({ session, again }: TabProps) {
  return <Awake session={session} again={again}><Notebook id={session.session_id} /></Awake>;
}

function Notebook({ id }: { id: string }) {
  const { cells, stop } = notebook(id);
  const [language, setLanguage] = useState<string>("python");
  const [code, setCode] = useState("");
  const end = useRef<HTMLDivElement>(null);

  const submit = async () => {
    if (code.trim() === "" || stop.value) return;
    const control = new AbortController();
    const cell: Cell = { id: ++last, language, code, stdout: "", stderr: "", values: [], error: null, running: true };
    cells.value = [...cells.value.slice(1 - mostCells), cell];
    stop.value = control;
    setCode("");
    const show = (c: Cell) => (cells.value = cells.value.map((old) => (old.id === c.id ? c : old)));
    await run(id, cell, show, control.signal);
    stop.value = undefined;
    end.current?.scrollIntoView({ block: "nearest" });
  };

  return (
    <div class="notebook">
      {cells.value.length === 0 && <p class="quiet">What runs here remembers: variables and imports stay for the next piece. Plots and tables are shown.</p>}
      <ol class="cells" aria-label="What was run">
        {cells.value.map((c) => <li key={c.id}><Output ran={c} again={() => { setLanguage(c.language); setCode(c.code); }} /></li>)}
      </ol>
      <form class="composer" ref={end as never} onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <div class="bar">
          <select aria-label="Language" value={language} onChange={(e) => setLanguage(e.currentTarget.value)}>
            {languages.map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
          <button type="submit" class="primary" disabled={stop.value !== undefined || code.trim() === ""}>Run</button>
          {stop.value && <button type="button" onClick={() => stop.value?.abort()}>Stop</button>}
          <span class="quiet">Ctrl-Enter runs it</span>
        </div>
        <Editor label="Code" language={language} value={code} change={setCode} run={() => void submit()} />
      </form>
    </div>
  );
}

// A terminal in the page. What a program writes faster than it can be shown is left
// out, oldest first, so that the page always answers.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as XTerm, type ITheme } from "@xterm/xterm";
import { useEffect, useRef, useState } from "preact/hooks";
import { isDark } from "../theme";
import { size } from "../text";
import { connect, type State } from "./wire";

const mostPending = 1 << 20;

const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function themeNow(): ITheme {
  return { background: token("--terminal"), foreground: token("--terminal-text"), cursor: token("--terminal-text"), selectionBackground: token("--terminal-selection") };
}

// feeder hands bytes to the terminal as it can take them.
function feeder(term: XTerm) {
  let queue: Uint8Array[] = [];
  let pending = 0;
  let skipped = 0;
  let busy = false;
  const next = () => {
    if (skipped > 0) {
      // CAN ends an escape sequence of which only the end would come.
      const note = `\u0018\u001b[0m\r\n\u001b[2m[${size(skipped)} not shown: it came faster than it can be shown]\u001b[0m\r\n`;
      skipped = 0;
      term.write(note);
    }
    const chunk = queue.shift();
    busy = chunk !== undefined;
    if (chunk) {
      pending -= chunk.length;
      term.write(chunk, next);
    }
  };
  return (bytes: Uint8Array) => {
    queue.push(bytes);
    pending += bytes.length;
    while (pending > mostPending && queue.length > 1) {
      const old = queue.shift();
      pending -= old?.length ?? 0;
      skipped += old?.length ?? 0;
    }
    if (!busy) next();
  };
}

export default function Terminal({ id }: { id: string }) {
  const box = useRef<HTMLDivElement>(null);
  const term = useRef<XTerm | undefined>(undefined);
  const [state, setState] = useState<State>({ is: "connecting" });
  const [turn, setTurn] = useState(0);
  const dark = isDark();

  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const t = new XTerm({
      fontFamily: token("--mono"), fontSize: 13, scrollback: 5000, cursorBlink: true, theme: themeNow(), screenReaderMode: false,
      allowProposedApi: false, linkHandler: { activate: () => undefined }, // a link from inside may lead anywhere
    });
    const fit = new FitAddon();
    t.loadAddon(fit);
    t.open(b);
    fit.fit();
    t.focus();
    term.current = t;
    let before: State["is"] = "connecting";
    const wire = connect(id, {
      size: () => ({ cols: t.cols, rows: t.rows }),
      show: feeder(t),
      state: (s) => {
        if (s.is === "lost") t.write(`\r\n\u001b[2m[${s.why}; trying again]\u001b[0m\r\n`);
        if (s.is === "open" && before === "lost") t.write("\u001b[0m\r\n\u001b[2m[connected again: this is a new shell in the same sandbox]\u001b[0m\r\n");
        if (s.is === "ended") t.write(`\r\n\u001b[2m[${s.how}]\u001b[0m\r\n`);
        if (s.is !== "connecting") before = s.is;
        setState(s);
      },
    });
    t.onData((data) => wire.type(data));
    t.onResize(({ cols, rows }) => wire.resize(cols, rows));
    const watch = new ResizeObserver(() => fit.fit());
    watch.observe(b);
    return () => {
      watch.disconnect();
      wire.close();
      t.dispose();
    };
  }, [id, turn]);

  useEffect(() => {
    if (term.current) term.current.options.theme = themeNow();
  }, [dark]);

  return (
    <div class="terminal">
      <p class="terminal-state" role="status" data-state={state.is}>
        {state.is === "connecting" && "Connecting…"}
        {state.is === "open" && "Connected"}
        {state.is === "lost" && `Not connected: ${state.why}. Trying again…`}
        {state.is === "ended" && <>{state.how} <button type="button" class="small" onClick={() => setTurn(turn + 1)}>New shell</button></>}
      </p>
      <div class="terminal-box" ref={box} />
    </div>
  );
}

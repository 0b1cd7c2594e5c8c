// What came of a piece of code. All of it is from inside a sandbox: texts are shown
// as texts, pictures as pictures, and HTML in a frame that can do nothing.

import { useMemo } from "preact/hooks";
import type { CodeResult, Execution } from "../api/forms";
import { milliseconds, plain } from "../text";
import { Blocked, Mark } from "../ui/marks";
import { Failure } from "../ui/states";
import { drawable, fits, fromBase64, look } from "./pictures";

export interface Ran {
  language: string;
  code: string;
  stdout: string;
  stderr: string;
  values: Record<string, string>[];
  error: CodeResult["error"];
  running: boolean;
  execution?: Execution;
  count?: number;
  problem?: unknown;
}

export function Output({ ran, again }: { ran: Ran; again: () => void }) {
  const x = ran.execution;
  return (
    <article class="cell" data-running={ran.running}>
      <div class="cell-code">
        <span class="quiet">{ran.language}{ran.count !== undefined && ` [${ran.count}]`}</span>
        <pre><code>{ran.code}</code></pre>
        <button type="button" class="small" onClick={again} aria-label="Edit again">Edit</button>
      </div>
      {ran.stdout && <pre class="out" aria-label="Output">{plain(ran.stdout)}</pre>}
      {ran.stderr && !x?.refusal && <pre class="out err" aria-label="Errors">{plain(ran.stderr)}</pre>}
      {ran.values.map((v, i) => <Value key={i} forms={v} />)}
      {ran.error && (
        <div class="raised" role="alert">
          <strong>{ran.error.name}</strong>: {ran.error.value}
          {ran.error.traceback && <pre>{plain(ran.error.traceback)}</pre>}
        </div>
      )}
      {x?.refusal && <Blocked refusal={x.refusal} text={ran.code} />}
      {ran.problem !== undefined && <Failure problem={ran.problem} />}
      <p class="quiet cell-end">
        {ran.running ? <><span class="spinner" aria-hidden="true" /> running</> : x && (
          <><Mark word={x.status} /> exit code {x.exit_code} · {milliseconds(x.execution_time_ms)}{x.outcome !== "exited" && ` · ${x.outcome.replaceAll("_", " ")}`}{x.truncated && " · output was cut"}</>
        )}
      </p>
    </article>
  );
}

const most = 8 << 20;

interface Drawn {
  src?: string;
  why?: string; // it is not drawn
}

function picture({ png, jpeg, svg }: Record<string, string>): Drawn | undefined {
  const data = png ?? jpeg;
  if (data) {
    const found = fromBase64(data);
    if (!found) return { why: "It is called a picture, and is none." };
    return fits(found) ? { src: `data:${found.type};base64,${data.replace(/\s/g, "")}` } : { why: `It is a picture of ${found.width} × ${found.height}, too large to be drawn.` };
  }
  if (!svg) return undefined;
  return svg.length < most && drawable(svg) ? { src: `data:image/svg+xml,${encodeURIComponent(svg.replace(/\p{Surrogate}/gu, "\ufffd"))}` } : { why: "It is an SVG that is too large, not whole, draws too much, or has pictures inside that nobody knows the size of." };
}

function Value({ forms }: { forms: Record<string, string> }) {
  const drawn = useMemo(() => picture(forms), [forms]);
  if (drawn?.src) return <img class="value" src={drawn.src} alt={forms["text"] ? plain(forms["text"]).slice(0, 200) : "a picture that the code made"} />;
  const html = forms["html"];
  if (!drawn && html && html.length < most) return <Frame html={html} />;
  const text = forms["text"] ?? forms["markdown"] ?? forms["json"] ?? (drawn ? "" : Object.values(forms)[0]) ?? "";
  return <>{drawn?.why && <p class="quiet value">{drawn.why}</p>}{text && <pre class="out value">{plain(text)}</pre>}</>;
}

const head = (pictures: boolean): string => `<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src ${pictures ? "data:" : "'none'"}; base-uri 'none'; form-action 'none'">
<style>body{margin:8px;font:13px system-ui,sans-serif;color:#1b2330;background:#fff}table{border-collapse:collapse}td,th{border:1px solid #d5dbe3;padding:3px 8px;text-align:right}thead th{background:#f3f5f8}</style>`;

// heightOf guesses what HTML needs: nothing in there can be measured.
function heightOf(html: string): number {
  const rows = html.match(/<tr[\s>]/gi)?.length ?? 0;
  return rows > 0 ? Math.min(420, 34 + rows * 24) : 240;
}

// Frame has no origin, no script, no forms and no way to the page around it.
function Frame({ html }: { html: string }) {
  const kept = useMemo(() => look(head(false) + html), [html]);
  if (kept.reaches) {
    return <><p class="quiet value">This HTML has the element {kept.reaches}, by which a browser would connect to somebody. It is shown as text.</p><pre class="out value">{plain(html)}</pre></>;
  }
  return <iframe class="value" sandbox="" title="HTML that the code made" srcdoc={head(kept.pictures) + html} style={{ height: `${heightOf(html)}px` }} loading="lazy" referrerpolicy="no-referrer" />;
}

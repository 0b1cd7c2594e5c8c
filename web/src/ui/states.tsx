// What stands in the place of something that is not there: yet, at all, or any more.

import type { ComponentChildren } from "preact";
import { Problem } from "../api/http";
import type { Asked } from "../asked";

export function Waiting({ what }: { what: string }) {
  return <p class="waiting" role="status"><span class="spinner" aria-hidden="true" /> {what}</p>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Failure({ problem, again }: { problem: unknown; again?: () => void }) {
  const body = problem instanceof Problem ? problem.body : undefined;
  return (
    <div class="failure" role="alert">
      <p><strong>{body?.title ?? "That did not work"}</strong>: {problem instanceof Error ? problem.message : String(problem)}</p>
      {body?.remedy && <p>{body.remedy}</p>}
      <p class="quiet">
        {body && <code>{[body.code, body.reason].filter(Boolean).join(" · ")}</code>}
        {body?.request_id && <> request <code>{body.request_id}</code></>}
      </p>
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

// Shown shows what was asked for when it is there. A later failure stands above what
// was known before.
export function Shown<T>({ asked, what, children }: { asked: Asked<T>; what: string; children: (value: T) => ComponentChildren }) {
  if (asked.value === undefined) {
    return asked.problem === undefined ? <Waiting what={what} /> : <Failure problem={asked.problem} again={asked.again} />;
  }
  return (
    <>
      {asked.problem !== undefined && <Failure problem={asked.problem} again={asked.again} />}
      {children(asked.value)}
    </>
  );
}

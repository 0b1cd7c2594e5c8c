// Small marks for states.

import type { Level, Refusal, Session } from "../api/forms";

const tones: Record<string, string> = {
  running: "good", success: "good", succeeded: "good", healthy: "good", hard: "good", exited: "good", allow: "good", waiting: "good",
  creating: "busy", paused: "warn", soft: "warn", partly_paused: "warn", timeout: "warn", timed_out: "warn", ask: "warn",
  stopped: "idle", ended: "idle",
  error: "bad", failed: "bad", blocked: "bad", deny: "bad", none: "bad", failing: "bad",
};

export function Mark({ word, tone }: { word: string; tone?: string }) {
  return <span class={`mark ${tone ?? tones[word] ?? "idle"}`}>{word}</span>;
}

export function Status({ session }: { session: Session }) {
  return <Mark word={session.status} tone={session.status === "running" && session.busy ? "busy" : tones[session.status] ?? "idle"} />;
}

const meanings: Record<Level, string> = {
  hard: "the kernel enforces it",
  soft: "it is watched, and ended when it goes over",
  none: "nothing enforces it here",
};

export function LevelMark({ level }: { level: Level }) {
  return <span title={meanings[level]}><Mark word={level} /></span>;
}

// Blocked says why policy refused something, and marks the place in it.
export function Blocked({ refusal, text }: { refusal: Refusal; text?: string }) {
  const line = refusal.line && text ? text.split("\n")[refusal.line - 1] : undefined;
  return (
    <div class="blocked" role="alert">
      <p><Mark word="blocked" /> {refusal.reason}</p>
      <p class="quiet">
        rule <code>{refusal.rule}</code>
        {refusal.word && <> · <code>{refusal.word}</code></>}
        {refusal.line !== undefined && refusal.line > 0 && <> · line {refusal.line}, column {refusal.column}</>}
      </p>
      {line !== undefined && refusal.column !== undefined && refusal.column > 0 && (
        <pre class="place">{line + "\n" + " ".repeat(refusal.column - 1) + "^".repeat(Math.max(1, refusal.word?.length ?? 1))}</pre>
      )}
    </div>
  );
}

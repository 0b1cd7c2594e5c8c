// A dialog over the page, and questions that are asked in one.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "./states";

export function Dialog({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    <dialog ref={box} class={wide ? "wide" : undefined} aria-label={title} onClose={close} onClick={(e) => e.target === box.current && close()}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={close}>✕</button>
      </header>
      {children}
    </dialog>
  );
}

interface Question {
  title: string;
  text: string;
  verb: string;
  act: () => Promise<unknown>;
}

const question = signal<Question | null>(null);

// confirm asks before something is done that cannot be taken back.
export function confirm(q: Question): void {
  question.value = q;
}

export function Confirmation() {
  const q = question.value;
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  if (!q) return null;
  const close = () => {
    setProblem(undefined);
    question.value = null;
  };
  const act = async () => {
    setBusy(true);
    try {
      await q.act();
      close();
    } catch (p) {
      setProblem(p);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={q.title} close={close}>
      <p>{q.text}</p>
      {problem !== undefined && <Failure problem={problem} />}
      <footer>
        <button type="button" onClick={close}>Cancel</button>
        <button type="button" class="danger" disabled={busy} onClick={() => void act()}>{q.verb}</button>
      </footer>
    </Dialog>
  );
}

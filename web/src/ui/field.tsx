// A labelled field of a form.

import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  hint?: string;
  children: ComponentChildren;
}

export function Field({ label, hint, children }: Props) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

// A table of any length: only the rows that can be seen are in the document.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export const rowHeight = 34; // as --row in style.css
const margin = 12; // rows above and below what can be seen

export interface Column<T> {
  title: string;
  class?: string;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  rows: T[];
  columns: Column<T>[];
  id: (row: T) => string;
  open?: (row: T) => void;
  chosen?: string | undefined;
  seen?: (rows: T[]) => void; // told which can be seen
  end?: boolean; // stays at its end while it grows
}

export function Rows<T>({ label, rows, columns, id, open, chosen, seen, end }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 60 });
  const pinned = useRef(true);

  const look = () => {
    const b = box.current;
    if (!b) return;
    pinned.current = b.scrollTop + b.clientHeight >= b.scrollHeight - rowHeight;
    const from = Math.max(0, Math.floor(b.scrollTop / rowHeight) - margin);
    const to = Math.ceil((b.scrollTop + b.clientHeight) / rowHeight) + margin;
    setView((old) => (old.from === from && old.to === to ? old : { from, to }));
  };
  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    if (end && pinned.current) b.scrollTop = b.scrollHeight;
    look();
    const watch = new ResizeObserver(look);
    watch.observe(b);
    return () => watch.disconnect();
  }, [rows.length]);

  const from = Math.min(view.from, Math.max(0, rows.length - 1));
  const to = Math.min(view.to, rows.length);
  const part = rows.slice(from, to);
  const marks = part.map(id).join(" ");
  useLayoutEffect(() => seen?.(part), [marks]);

  return (
    <div class="rows" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>{columns.map((c) => <th key={c.title} scope="col" class={c.class}>{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {from > 0 && <tr aria-hidden="true" style={{ height: `${from * rowHeight}px` }} />}
          {part.map((row, i) => (
            <tr key={id(row)} aria-rowindex={from + i + 2} class={chosen === id(row) ? "chosen" : undefined} onClick={open && (() => open(row))} data-row={id(row)}>
              {columns.map((c) => <td key={c.title} class={c.class}>{c.cell(row)}</td>)}
            </tr>
          ))}
          {to < rows.length && <tr aria-hidden="true" style={{ height: `${(rows.length - to) * rowHeight}px` }} />}
        </tbody>
      </table>
    </div>
  );
}

// A table of any length: only the rows that can be seen are in the document.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { scrolled } from "./scrolling";

export const rowHeight = 34; // as --row in style.css
const margin = 8; // rows above and below what can be seen
const step = 4; // rows by which they are changed
const rest = 200; // milliseconds after which rows count as seen

export interface Column<T> {
  title: string;
  class?: string;
  width?: number; // pixels; those without one share what is left
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  rows: T[];
  columns: Column<T>[]; // the same ones as long as they show the same
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
    const top = b.scrollTop, bottom = top + b.clientHeight;
    if (end) pinned.current = bottom >= b.scrollHeight - rowHeight;
    const from = Math.max(0, Math.floor((top / rowHeight - margin) / step) * step);
    const to = Math.ceil((bottom / rowHeight + margin) / step) * step;
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

  const scroll = () => {
    if (!end) scrolled(); // one that follows its end scrolls by itself
    look();
  };

  const from = Math.min(view.from, Math.max(0, rows.length - 1));
  const to = Math.min(view.to, rows.length);
  const part = rows.slice(from, to);
  const marks = part.map(id).join(" ");
  useEffect(() => {
    if (!seen) return;
    const due = setTimeout(() => seen(part), rest); // who scrolls past does not look
    return () => clearTimeout(due);
  }, [marks]);

  return (
    <div class="rows" ref={box} onScroll={scroll} tabIndex={0} role="region" aria-label={label}>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <div role="rowgroup" class="rows-head">
          <div role="row">{columns.map((c) => <span role="columnheader" key={c.title} class={c.class} style={widthOf(c)}>{c.title}</span>)}</div>
        </div>
        <div role="rowgroup" class="rows-body" style={{ height: `${rows.length * rowHeight}px` }}>
          {part.map((row, i) => <Row key={id(row)} row={row} at={from + i} columns={columns} id={id(row)} open={open} chosen={chosen === id(row)} />)}
        </div>
      </div>
    </div>
  );
}

const widths = new Map<number, { flex: string }>();

function widthOf({ width }: Column<never>): { flex: string } | undefined {
  if (!width) return undefined;
  let style = widths.get(width);
  if (!style) widths.set(width, (style = { flex: `0 0 ${width}px` }));
  return style;
}

interface RowProps<T> {
  row: T;
  at: number;
  columns: Column<T>[];
  id: string;
  open: ((row: T) => void) | undefined;
  chosen: boolean;
}

// Row is laid out by itself: none of the others moves when it comes or goes. It is made
// once, and again only when it shows something else.
class Row<T> extends Component<RowProps<T>> {
  override shouldComponentUpdate(next: RowProps<T>): boolean {
    const now = this.props;
    return next.row !== now.row || next.at !== now.at || next.columns !== now.columns || next.chosen !== now.chosen || next.open !== now.open;
  }

  override render({ row, at, columns, id, open, chosen }: RowProps<T>) {
    return (
      <div role="row" aria-rowindex={at + 2} class={chosen ? "chosen" : undefined} onClick={open && (() => open(row))} data-row={id} style={{ top: `${at * rowHeight}px` }}>
        {columns.map((c) => <span role="cell" key={c.title} class={c.class} style={widthOf(c)}>{c.cell(row)}</span>)}
      </div>
    );
  }
}

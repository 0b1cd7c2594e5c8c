// How a text differs from what it was, by lines.

export interface Line {
  kind: " " | "-" | "+";
  text: string;
}

export interface Hunk {
  before: number; // the number of its first line, from 1
  after: number;
  lines: Line[];
}

export interface Diff {
  hunks: Hunk[];
  added: number;
  removed: number;
  cut: boolean; // there are more than are shown
}

const around = 3; // lines that are the same and shown
const mostEdits = 1000; // that are looked for: more is another text
const mostLines = 4000; // that are shown

// linesOf keeps the end of each line, so that a last one without an end differs.
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

// diff compares two texts in bounded time, whoever wrote them.
export function diff(before: string, after: string): Diff {
  const a = linesOf(before);
  const b = linesOf(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (lines: string[]): Line[] => lines.map((text) => ({ kind: " ", text }));
  const first = Math.max(0, head - around);
  return hunksOf([...same(a.slice(first, head)), ...middle, ...same(a.slice(a.length - tail, a.length - tail + around))], first + 1);
}

// edits is the shortest way from one list to the other (Myers), or all of one and
// then all of the other where that is long.
function edits(a: string[], b: string[]): Line[] {
  const most = Math.min(a.length + b.length, mostEdits);
  const trace: Int32Array[] = [];
  const known = new Map<string, number>(); // numbers are compared faster
  const number = (line: string): number => known.get(line) ?? (known.set(line, known.size), known.size - 1);
  const left = Int32Array.from(a, number);
  const right = Int32Array.from(b, number);
  const reach = new Int32Array(2 * most + 3);
  for (let d = 0; d <= most; d++) {
    trace.push(reach.slice(most + 1 - d - 1, most + 1 + d + 2)); // the part that the way back looks at
    for (let k = -d; k <= d; k += 2) {
      const at = most + 1 + k;
      let x = k === -d || (k !== d && num(reach, at - 1) < num(reach, at + 1)) ? num(reach, at + 1) : num(reach, at - 1) + 1;
      while (x < left.length && x - k < right.length && left[x] === right[x - k]) x++;
      reach[at] = x;
      if (x >= a.length && x - k >= b.length) return wayBack(a, b, trace);
    }
  }
  return [...a.map((text): Line => ({ kind: "-", text })), ...b.map((text): Line => ({ kind: "+", text }))];
}

const num = (of: Int32Array, at: number): number => of[at] ?? 0;

function wayBack(a: string[], b: string[], trace: Int32Array[]): Line[] {
  const lines: Line[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0 && (x > 0 || y > 0); d--) {
    const reach = trace[d];
    if (!reach) break;
    const at = (k: number): number => num(reach, k + d + 1);
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? at(k + 1) : at(k - 1) + 1; // where the run of equal lines began
    while (x > from && y > 0) lines.push({ kind: " ", text: a[--x] ?? "" }), y--;
    if (d === 0) break;
    if (down) lines.push({ kind: "+", text: b[--y] ?? "" });
    else lines.push({ kind: "-", text: a[--x] ?? "" });
  }
  return lines.reverse();
}

// hunksOf leaves out what is the same and far from every difference.
function hunksOf(lines: Line[], first: number): Diff {
  const out: Diff = { hunks: [], added: 0, removed: 0, cut: false };
  const near = new Uint8Array(lines.length);
  lines.forEach((line, i) => {
    if (line.kind === " ") return;
    line.kind === "+" ? out.added++ : out.removed++;
    near.fill(1, Math.max(0, i - around), i + around + 1);
  });
  let before = first;
  let after = first;
  let open: Hunk | undefined;
  let shown = 0;
  for (const [i, line] of lines.entries()) {
    if (!near[i]) {
      open = undefined;
    } else if (shown === mostLines) {
      out.cut = true;
      break;
    } else {
      if (!open) out.hunks.push((open = { before, after, lines: [] }));
      open.lines.push(line);
      shown++;
    }
    if (line.kind !== "+") before++;
    if (line.kind !== "-") after++;
  }
  return out;
}

// Numbers, times and sizes as people read them.

const units = ["B", "KB", "MB", "GB", "TB"];

export function size(bytes: number): string {
  let n = bytes;
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

export function span(seconds: number): string {
  const s = Math.round(Math.abs(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(time: string | undefined, now = Date.now()): string {
  if (!time) return "–";
  const seconds = (now - Date.parse(time)) / 1000;
  return Math.abs(seconds) < 1.5 ? "now" : seconds > 0 ? `${span(seconds)} ago` : `in ${span(seconds)}`;
}

export function clock(time: string): string {
  return new Date(time).toLocaleTimeString(undefined, { hour12: false });
}

export function moment(time: string | undefined): string {
  return time ? new Date(time).toLocaleString(undefined, { hour12: false }) : "–";
}

export function milliseconds(ms: number): string {
  return ms < 1 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export const count = (n: number): string => n.toLocaleString("en").replace(/,/g, "\u202f");

// plural returns "1 file", "2 files".
export const plural = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

// plain takes the colours of a terminal out of a text.
// eslint-disable-next-line no-control-regex
export const plain = (text: string): string => text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "");

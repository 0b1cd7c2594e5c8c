// Names of files are bytes. Those that are no UTF-8 are strings here with a lone
// surrogate (U+DC80 to U+DCFF) in the place of each byte that is none, so that they
// are cut and joined like others; what is sent is the bytes again.

import { bytesOf } from "./stream";

const odd = /\p{Surrogate}/u; // a lone one: two that belong together are one letter

export const isOdd = (name: string): boolean => odd.test(name);

const wide = (first: number): number => (first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4);

// nameIn reads a name as the API writes one.
export function nameIn(text: string | undefined, base64: string | undefined): string {
  if (base64 === undefined) return text ?? "";
  const bytes = bytesOf(base64);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let name = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0;
    const end = at + wide(first);
    try {
      name += decoder.decode(bytes.subarray(at, end));
      at = end;
    } catch {
      name += String.fromCharCode(0xdc00 + first);
      at++;
    }
  }
  return name;
}

const byteOf = (letter: string): number => letter.charCodeAt(0) - 0xdc00;

// escaped writes a name into a query.
export const escaped = (name: string): string =>
  [...name].map((c) => (odd.test(c) ? `%${byteOf(c).toString(16).padStart(2, "0")}` : encodeURIComponent(c))).join("");

// nameFor writes a name into a body: as text, or as base64 under another name.
export function nameFor(field: string, name: string): Record<string, string> {
  if (!odd.test(name)) return { [field]: name };
  const encoder = new TextEncoder();
  const bytes = [...name].flatMap((c) => (odd.test(c) ? [byteOf(c)] : [...encoder.encode(c)]));
  return { [`${field}_base64`]: btoa(String.fromCharCode(...bytes)) };
}

// shownName is a name as people read it.
export const shownName = (name: string): string =>
  odd.test(name) ? [...name].map((c) => (odd.test(c) ? `\\x${byteOf(c).toString(16).padStart(2, "0")}` : c)).join("") : name;

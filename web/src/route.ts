// Where in the console this tab is: what stands behind the # of its address.

import { computed, signal } from "@preact/signals";

const read = (): string[] => {
  try {
    return location.hash.replace(/^#?\/?/, "").split("/").map(decodeURIComponent).filter(Boolean);
  } catch {
    return []; // not one of ours
  }
};

const parts = signal(read());
addEventListener("hashchange", () => (parts.value = read()));

export const page = computed(() => parts.value[0] ?? "overview");
export const rest = computed(() => parts.value.slice(1));

// to returns the address of a place, for a link.
export function to(...path: string[]): string {
  return "#/" + path.map(encodeURIComponent).join("/");
}

export function go(...path: string[]): void {
  location.hash = to(...path);
}

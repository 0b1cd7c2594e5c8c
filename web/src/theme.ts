// Dark or light: as the system has it, until somebody chooses.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const kept = "cove.theme";
const stored = localStorage.getItem(kept);
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => (systemDark.value = system.matches));

export const isDark = (): boolean => (theme.value === "system" ? systemDark.value : theme.value === "dark");

effect(() => {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  if (theme.value === "system") localStorage.removeItem(kept);
  else localStorage.setItem(kept, theme.value);
});

export function turn(): void {
  theme.value = isDark() ? "light" : "dark";
}

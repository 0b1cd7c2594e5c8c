// Keys that work everywhere in the console, but not where somebody types.

import { go } from "./route";
import { turn } from "./theme";

export const shortcuts: [string, string][] = [
  ["/", "search on this page"], ["?", "this list"], ["g o", "Overview"], ["g s", "Sandboxes"], ["g d", "Runs and data"], ["g j", "Journal"], ["g k", "Keys and tenants"], ["g h", "Doctor"],
  ["t", "dark or light"], ["Ctrl Enter", "run what is in the editor"], ["Ctrl S", "save the file in the editor"], ["Esc Tab", "leave the editor"], ["Esc", "close what is open"],
];

const places: Record<string, string> = { o: "overview", s: "sandboxes", d: "data", j: "journal", k: "keys", h: "doctor" };

const typing = (e: KeyboardEvent): boolean =>
  e.target instanceof Element && e.target.closest("input, textarea, select, [contenteditable], .xterm, dialog") !== null;

export function listen(help: () => void): () => void {
  let going = false;
  const press = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
    const place = going ? places[e.key] : undefined;
    going = e.key === "g" && !going;
    if (place) return go(place);
    switch (e.key) {
      case "/": {
        const search = document.querySelector<HTMLInputElement>("input[type=search]");
        if (!search) return;
        e.preventDefault();
        return search.focus();
      }
      case "?":
        return help();
      case "t":
        return turn();
    }
  };
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}

import { lazy } from "./lazy";
import type { EditorProps } from "./editor";

export const Editor = lazy<EditorProps>("Fetching the editor", async () => (await import("./editor")).default);

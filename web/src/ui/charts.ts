import { lazy } from "./lazy";

export const Chart = lazy("Fetching the chart", async () => (await import("./chart")).default);

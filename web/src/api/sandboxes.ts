// What can be done to sandboxes.

import { get, latest, list, part, post, remove, send } from "./http";
import type { Link, Network, Process, Session, Spec, Trial, Usage } from "./forms";

const at = (id: string): string => `api/sandboxes/${part(id)}`;

export const sandboxes = (signal?: AbortSignal): Promise<Session[]> => latest("api/sandboxes", {}, 5000, signal);
export const sandbox = (id: string, signal?: AbortSignal): Promise<Session> => get(at(id), {}, signal);
export const open = (spec: Spec): Promise<Session> => post("api/sandboxes", spec);
export const usage = (id: string, signal?: AbortSignal): Promise<Usage> => get(`${at(id)}/stats`, {}, signal);

export type Change = "start" | "stop" | "pause" | "resume" | "renew" | "fork" | "snapshot";
export const change = (id: string, what: Change): Promise<Session> => post(`${at(id)}/${what}`);
export const destroy = (id: string): Promise<void> => remove(at(id));

export const setNetwork = async (id: string, network: Network): Promise<void> => {
  await send("PUT", `${at(id)}/network`, { body: network });
};
export const preview = (id: string, port: number): Promise<Link> => post(`${at(id)}/ports/${port}`);

export const processes = (id: string, signal?: AbortSignal): Promise<Process[]> => list(`${at(id)}/processes`, {}, 1000, signal);
export const start = (id: string, command: string): Promise<Process> => post(`${at(id)}/processes`, { command });
export const kill = (id: string, pid: number, name: string): Promise<void> => post(`${at(id)}/processes/${pid}/signal`, { signal: name });

export const trial = (id: string, signal?: AbortSignal): Promise<Trial> => get(`${at(id)}/trial`, {}, signal);
export const tryOut = (id: string, command: string): Promise<Trial> => post(`${at(id)}/trial`, { command });
export const decide = (id: string, what: "commit" | "discard"): Promise<void> => post(`${at(id)}/trial/${what}`);
// before reads a file as it was when the trial began.
export const before = async (id: string, path: string): Promise<Blob> => (await send("GET", `${at(id)}/trial/before`, { query: { path } })).blob();

// Files of a sandbox.

import { address, list, part, post, remove, send } from "./http";
import type { FileEntry } from "./forms";

const at = (id: string): string => `api/sandboxes/${part(id)}`;

export const mostEntries = 2000;

export const entries = (id: string, path: string, signal?: AbortSignal): Promise<FileEntry[]> =>
  list(`${at(id)}/files/list`, { path }, mostEntries, signal);

// read returns the first bytes of a file, up to most: it may grow while it is read.
export const read = async (id: string, path: string, most: number): Promise<Blob> =>
  (await send("GET", `${at(id)}/files`, { query: { path, offset: 0, length: most } })).blob();

export const write = async (id: string, path: string, content: Blob | string): Promise<void> => {
  await send("PUT", `${at(id)}/files`, { query: { path }, raw: content, headers: { "Content-Type": "application/octet-stream" } });
};

export const makeFolder = (id: string, path: string): Promise<void> => post(`${at(id)}/files/mkdir`, { path });
export const move = (id: string, from: string, to: string): Promise<void> => post(`${at(id)}/files/move`, { from, to });
export const erase = (id: string, path: string): Promise<void> => remove(`${at(id)}/files`, { path });

// source is where a browser downloads a file from.
export const source = (id: string, path: string): string => address(`${at(id)}/files`, { path }).href;

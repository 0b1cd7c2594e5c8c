// Files of a sandbox.

import { address, list, part, post, remove, send } from "./http";
import type { FileEntry } from "./forms";
import { nameFor, nameIn } from "./names";

const at = (id: string): string => `api/sandboxes/${part(id)}`;

export const mostEntries = 2000;

// Entry is a file whose name may be any bytes, as names.ts writes them.
export interface Entry extends FileEntry {
  path: string;
}

export const entries = async (id: string, path: string, signal?: AbortSignal): Promise<Entry[]> =>
  (await list<FileEntry>(`${at(id)}/files/list`, { path }, mostEntries, signal)).map((f) => ({ ...f, path: nameIn(f.path, f.path_base64) }));

// read returns the first bytes of a file, up to most: it may grow while it is read.
export const read = async (id: string, path: string, most: number): Promise<Blob> =>
  (await send("GET", `${at(id)}/files`, { query: { path, offset: 0, length: most } })).blob();

export const write = async (id: string, path: string, content: Blob | string): Promise<void> => {
  await send("PUT", `${at(id)}/files`, { query: { path }, raw: content, headers: { "Content-Type": "application/octet-stream" } });
};

export const makeFolder = (id: string, path: string): Promise<void> => post(`${at(id)}/files/mkdir`, nameFor("path", path));
export const move = (id: string, from: string, to: string): Promise<void> => post(`${at(id)}/files/move`, { ...nameFor("from", from), ...nameFor("to", to) });
export const erase = (id: string, path: string): Promise<void> => remove(`${at(id)}/files`, { path });

// source is where a browser downloads a file from.
export const source = (id: string, path: string): string => address(`${at(id)}/files`, { path }).href;

// All that the console asks of the server goes through here: the public API, with
// the cookie of a browser that is signed in.

import { escaped, isOdd } from "./names";

const root = new URL("./", document.baseURI);

export type Query = Record<string, string | number | boolean | undefined>;

// address returns the URL of a path of the API. Each part of a path that comes from
// elsewhere must have gone through part.
export function address(path: string, query: Query = {}): URL {
  const at = new URL(path.replace(/^\//, ""), root);
  const odd: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === "") continue;
    if (typeof value === "string" && isOdd(value)) odd.push(`${name}=${escaped(value)}`);
    else at.searchParams.set(name, String(value));
  }
  if (odd.length > 0) at.search = [at.search.slice(1), ...odd].filter(Boolean).join("&");
  return at;
}

// part writes what may hold anything as one part of a path.
export const part = encodeURIComponent;

export interface ProblemBody {
  status: number;
  title?: string;
  code: string;
  reason?: string;
  error: string;
  remedy?: string;
  request_id?: string;
  details?: Record<string, unknown>;
}

// Problem is what the server says is wrong, or that there is no server.
export class Problem extends Error {
  readonly body: ProblemBody;

  constructor(body: ProblemBody) {
    super(body.error);
    this.name = "Problem";
    this.body = body;
  }

  get signedOut(): boolean {
    return this.body.status === 401;
  }
}

const unreachable = (): Problem =>
  new Problem({ status: 0, code: "unreachable", error: "the server does not answer", remedy: "it may be starting again; the console goes on when it is back" });

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const body = (await answer.json()) as ProblemBody;
    if (typeof body.error === "string") return new Problem({ ...body, status: answer.status });
  } catch {
    // not one of ours, such as a proxy's
  }
  return new Problem({ status: answer.status, code: "unknown", error: `the server answered ${answer.status} ${answer.statusText}` });
}

export interface Ask {
  query?: Query;
  body?: unknown;
  raw?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

// signInAgain is called when the server knows this browser no more. It resolves to
// whether it does again.
let signInAgain: (why: Problem) => Promise<boolean> = async () => false;

export function onSignedOut(act: typeof signInAgain): void {
  signInAgain = act;
}

// send asks once more where the sign-in was over and could be renewed.
export async function send(method: string, path: string, ask: Ask = {}): Promise<Response> {
  let answer = await attempt(method, path, ask);
  if (answer.status === 401) {
    const problem = await problemOf(answer);
    if (ask.raw instanceof ReadableStream || !(await signInAgain(problem))) throw problem;
    answer = await attempt(method, path, ask);
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function attempt(method: string, path: string, ask: Ask): Promise<Response> {
  const headers = new Headers(ask.headers);
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (ask.raw !== undefined) init.body = ask.raw;
  if (ask.body !== undefined) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(ask.body);
  }
  if (ask.signal) init.signal = ask.signal;
  try {
    return await fetch(address(path, ask.query), init);
  } catch (cause) {
    if (ask.signal?.aborted) throw cause;
    throw unreachable();
  }
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, { query, ...(signal && { signal }) })).json()) as T;
}

export async function post<T>(path: string, body: unknown = {}, query: Query = {}): Promise<T> {
  const answer = await send("POST", path, { body, query });
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export async function put(path: string, body: unknown): Promise<void> {
  await send("PUT", path, { body });
}

export async function remove(path: string, query: Query = {}): Promise<void> {
  await send("DELETE", path, { query });
}

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

export const page = <T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> => get(path, query, signal);

const largest = 1000; // page that the server gives

async function* pages<T>(path: string, query: Query, limit: number, signal?: AbortSignal): AsyncGenerator<T[]> {
  let cursor: string | undefined;
  do {
    const page: Page<T> = await get(path, { limit, ...query, cursor }, signal);
    yield page.items;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

// list reads a list to its end, or to so many elements.
export async function list<T>(path: string, query: Query = {}, most = 5000, signal?: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for await (const items of pages<T>(path, query, Math.min(largest, most), signal)) {
    all.push(...items);
    if (all.length >= most) break;
  }
  return all;
}

const mostPages = 100; // of a list that is read for its end

// latest returns the last elements of a list that begins with the oldest.
export async function latest<T>(path: string, query: Query, most: number, signal?: AbortSignal): Promise<T[]> {
  let last: T[] = [];
  let read = 0;
  for await (const items of pages<T>(path, query, largest, signal)) {
    last = [...last, ...items].slice(-most);
    if (++read === mostPages) break;
  }
  return last;
}

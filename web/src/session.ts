// Who this browser is signed in as. The server knows it by a cookie that no script
// can read; the key that somebody typed stays in the storage of this tab, so that a
// server that starts again, and forgets its browsers, can be asked once more.

import { signal } from "@preact/signals";
import { address, get, onSignedOut, Problem, send, type ProblemBody } from "./api/http";
import type { Link } from "./api/forms";
import type { Who } from "./api/platform";

const kept = "cove.key";

// who is undefined until it is known, and null for nobody.
export const who = signal<Who | null | undefined>(undefined);
// why says what ended the last sign-in.
export const why = signal<Problem | null>(null);

export async function recall(): Promise<void> {
  try {
    who.value = await get<Who>("api/whoami");
    why.value = null;
  } catch (problem) {
    if (problem instanceof Problem && !problem.signedOut) why.value = problem;
    who.value = null;
  }
}

// signIn trades a key for the cookie: it makes a login link and uses it up.
export async function signIn(key: string): Promise<void> {
  await trade(key);
  sessionStorage.setItem(kept, key);
  await recall();
}

async function trade(key: string): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch(address("api/login-links"), {
      method: "POST", body: "{}", headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" }, credentials: "omit", cache: "no-store",
    });
  } catch {
    throw new Problem({ status: 0, code: "unreachable", error: "the server does not answer, or the key has letters that no key has" });
  }
  const body = (await answer.json()) as Link | ProblemBody;
  if (!("url" in body)) throw new Problem({ ...body, status: answer.status });
  const ticket = new URL(body.url).searchParams.get("ticket") ?? "";
  // The answer leads to this very page; its cookie is all that is wanted of it.
  const entered = await fetch(address("login"), { method: "POST", body: new URLSearchParams({ ticket }), redirect: "manual", credentials: "same-origin" });
  if (entered.type !== "opaqueredirect" && !entered.ok) throw new Problem({ ...((await entered.json()) as ProblemBody), status: entered.status });
}

export async function signOut(): Promise<void> {
  sessionStorage.removeItem(kept);
  try {
    await send("POST", "logout");
  } finally {
    why.value = null;
    who.value = null;
  }
}

export function may(scope: string): boolean {
  const scopes = who.value?.scopes ?? [];
  return scopes.includes("*") || scopes.includes(scope);
}

let renewing: Promise<boolean> | undefined;

async function renew(problem: Problem): Promise<boolean> {
  const key = sessionStorage.getItem(kept);
  if (key !== null) {
    try {
      await trade(key);
      return true;
    } catch (again) {
      if (again instanceof Problem && again.signedOut) {
        sessionStorage.removeItem(kept);
        problem = again;
      } else {
        return false;
      }
    }
  }
  if (who.value) {
    why.value = problem;
    who.value = null;
  }
  return false;
}

onSignedOut((problem) => {
  renewing ??= renew(problem).finally(() => (renewing = undefined));
  return renewing;
});

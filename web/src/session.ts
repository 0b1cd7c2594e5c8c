// Who this browser is signed in as. The server knows it by a cookie that no script
// can read; the key that somebody typed stays in the storage of this tab, so that a
// server that knows the cookie no more can be asked once more.

import { signal } from "@preact/signals";
import { address, get, onSignedOut, Problem, send, type ProblemBody } from "./api/http";
import type { Link } from "./api/forms";
import type { Who } from "./api/platform";

const kept = "cove.key";

// who is undefined until it is known, and null for nobody.
export const who = signal<Who | null | undefined>(undefined);
// why says what ended the last sign-in.
export const why = signal<Problem | null>(null);

// Tabs of a browser share its cookie. Who signs out in one has left them all, and who
// signs in as somebody else has done so in all.
const tabs = new BroadcastChannel("cove.session");
type Told = "came" | "leaves" | "left";
const tell = (what: Told): void => tabs.postMessage(what);

tabs.onmessage = ({ data }: MessageEvent<Told>) => {
  if (data !== "came") sessionStorage.removeItem(kept); // or this tab would sign in again
  if (data === "left") location.reload();
  if (data === "came" && who.value) void get<Who>("api/whoami").then(meet, () => undefined); // whatever asks next is told
};

let met: string | undefined; // who was shown here

// meet begins anew where another one was shown before: nothing of theirs stays.
function meet(now: Who): void {
  const name = JSON.stringify([now.tenant, now.name]);
  if (met !== undefined && met !== name) {
    sessionStorage.removeItem(kept);
    location.reload();
    return;
  }
  met = name;
  if (JSON.stringify(who.value) !== JSON.stringify(now)) who.value = now;
  why.value = null;
}

export async function recall(): Promise<void> {
  try {
    meet(await get<Who>("api/whoami"));
  } catch (problem) {
    if (problem instanceof Problem && !problem.signedOut) why.value = problem;
    who.value = null;
  }
}

// signIn trades a key for the cookie: it makes a login link and uses it up.
export async function signIn(key: string): Promise<void> {
  await trade(key);
  await recall();
  sessionStorage.setItem(kept, key);
  tell("came");
}

// arrive finds out who this browser is signed in as when a tab opens, as by a link.
export async function arrive(): Promise<void> {
  await recall();
  if (who.value) tell("came");
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

// signOut fails where the server does not hear it: the cookie is good then, and who
// reads that they are out must be.
export async function signOut(): Promise<void> {
  sessionStorage.removeItem(kept);
  tell("leaves");
  try {
    await send("POST", "logout");
  } catch (problem) {
    if (!(problem instanceof Problem && problem.signedOut)) throw problem;
  }
  tell("left");
  location.reload(); // what was shown is not kept for the next one
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

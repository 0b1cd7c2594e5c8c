// The page for who is not known.

import { useState } from "preact/hooks";
import { Problem } from "../api/http";
import { recall, signIn, why } from "../session";
import { Field } from "../ui/field";
import { Failure } from "../ui/states";

export function SignIn() {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const enter = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await signIn(key.trim());
    } catch (p) {
      setProblem(p);
    } finally {
      setBusy(false);
    }
  };
  const before = why.value;
  return (
    <main class="signin">
      <form onSubmit={(e) => void enter(e)}>
        <h1><span class="logo" aria-hidden="true" /> Cove</h1>
        {before && before.body.status !== 0 && <p role="alert">{before.message}. Sign in again; you come back to where you were.</p>}
        {before && before.body.status === 0 && <Failure problem={before} again={() => void recall()} />}
        <Field label="Key" hint="The server said at its start which file has the first one.">
          <input type="password" name="key" autocomplete="off" spellcheck={false} value={key} onInput={(e) => setKey(e.currentTarget.value)} required autofocus />
        </Field>
        {problem !== undefined && (problem instanceof Problem && problem.signedOut
          ? <p class="failure" role="alert">This key opens nothing: {problem.message}. {problem.body.remedy}</p>
          : <Failure problem={problem} />)}
        <button type="submit" class="primary" disabled={busy || key.trim() === ""}>Sign in</button>
        <p class="quiet">Without a key: <code>cove login-link</code> on the machine of the server makes a link that signs this browser in, once.</p>
      </form>
    </main>
  );
}

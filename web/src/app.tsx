// The frame around every page.

import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { listen, shortcuts } from "./keyboard";
import { connected } from "./live";
import { Data } from "./pages/data";
import { Doctor } from "./pages/doctor";
import { Journal } from "./pages/journal";
import { Keys } from "./pages/keys";
import { Overview } from "./pages/overview";
import { Sandboxes } from "./pages/sandboxes";
import { SignIn } from "./pages/signin";
import { page, rest, to } from "./route";
import { SandboxPage } from "./sandbox/sandbox";
import { may, signOut, who } from "./session";
import { isDark, turn } from "./theme";
import { Confirmation, Dialog } from "./ui/dialog";
import { attempt, Notices } from "./ui/notices";
import { Empty, Failure, Waiting } from "./ui/states";

const first = "overview"; // or what a key may see in its place

interface Place {
  name: string;
  title: string;
  scopes: string[]; // one of them is enough to see something there
  part: ComponentType;
}

const places: Place[] = [
  { name: "overview", title: "Overview", scopes: ["sandbox:read", "admin"], part: Overview },
  { name: "sandboxes", title: "Sandboxes", scopes: ["sandbox:read"], part: Sandboxes },
  { name: "data", title: "Runs and data", scopes: ["runs"], part: Data },
  { name: "journal", title: "Journal", scopes: ["sandbox:read", "admin"], part: Journal },
  { name: "keys", title: "Keys and tenants", scopes: ["admin"], part: Keys },
  { name: "doctor", title: "Doctor", scopes: ["sandbox:read"], part: Doctor },
];

export function App() {
  if (who.value === undefined) return <main class="signin"><Waiting what="Asking the server who you are" /></main>;
  if (who.value === null) return <SignIn />;
  return <Frame />;
}

function Frame() {
  const [help, setHelp] = useState(false);
  useEffect(() => listen(() => setHelp(true)), []);
  const shown = places.filter((p) => p.scopes.some(may));
  const place = shown.find((p) => p.name === page.value) ?? (page.value === first ? shown[0] : undefined);
  const one = page.value === "sandboxes" && rest.value.length > 0 && place;
  const Part = place?.part;
  useEffect(() => {
    document.title = `${one ? rest.value[0] : place?.title ?? "Nothing"} · Cove`;
  });
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
      <header class="side">
        <a class="brand" href={to()}><span class="logo" aria-hidden="true" /> Cove</a>
        <nav aria-label="Pages">
          {shown.map((p) => <a key={p.name} href={to(p.name)} aria-current={p === place ? "page" : undefined}>{p.title}</a>)}
        </nav>
        <div class="side-end">
          <p class="quiet who"><bdi title={who.value?.name}>{who.value?.key_name || who.value?.name}</bdi> of <bdi>{who.value?.tenant}</bdi></p>
          <span class="buttons">
            <button type="button" class="icon" onClick={turn} aria-label={isDark() ? "Light colours" : "Dark colours"}>{isDark() ? "☀" : "☾"}</button>
            <button type="button" class="icon" onClick={() => setHelp(true)} aria-label="Help">?</button>
            <button type="button" class="small" onClick={() => void attempt(signOut)}>Sign out</button>
          </span>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {!connected.value && <p class="banner" role="alert">The server does not answer. What you see is the last that was known; this page goes on when the server is back.</p>}
        {one ? <Guarded key={rest.value[0]} part={SandboxPage} /> : Part ? <Guarded key={place?.name} part={Part} /> : <section class="page"><Empty title="There is no such page"><a class="button" href={to()}>Overview</a></Empty></section>}
      </main>
      {help && <Help close={() => setHelp(false)} />}
      <Confirmation />
      <Notices />
    </div>
  );
}

// Guarded shows what is wrong with a page in its place; the others go on.
function Guarded({ part: Part }: { part: ComponentType }) {
  const [fault, retry] = useErrorBoundary();
  if (fault !== undefined) return <section class="page"><Failure problem={fault} again={retry} /></section>;
  return <Part />;
}

function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="facts shortcuts">
        {shortcuts.map(([keys, what]) => <div key={keys}><dt>{keys.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt><dd>{what}</dd></div>)}
      </dl>
    </Dialog>
  );
}

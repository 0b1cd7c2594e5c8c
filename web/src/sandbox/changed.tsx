// How one file differs from what it was before a trial.

import { read } from "../api/files";
import { Problem } from "../api/http";
import { before } from "../api/sandboxes";
import { useAsked } from "../asked";
import { plural } from "../text";
import { Scroll } from "../ui/scroll";
import { Shown } from "../ui/states";
import { diff, type Diff } from "./diff";

const most = 1 << 20; // bytes of a file, as the server gives of an old one
const longest = 2000; // letters of a line that are shown

type Side = { text: string } | { why: string };

async function asText(get: () => Promise<Blob>): Promise<Side> {
  let blob: Blob;
  try {
    blob = await get();
  } catch (problem) {
    if (problem instanceof Problem && problem.body.reason === "file_too_large") return { why: "It is larger than 1 MB." };
    if (problem instanceof Problem && problem.body.code === "invalid") return { why: "It is, or was, no regular file." };
    throw problem;
  }
  if (blob.size > most) return { why: "It is larger than 1 MB." };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await blob.arrayBuffer());
    return text.includes("\0") ? { why: "It is no text." } : { text };
  } catch {
    return { why: "It is no text." };
  }
}

async function compare(id: string, path: string, kind: string): Promise<Diff | string> {
  const nothing: Side = { text: "" };
  const [old, now] = await Promise.all([
    kind === "created" ? nothing : asText(() => before(id, path)),
    kind === "removed" ? nothing : asText(() => read(id, path, most + 1)),
  ]);
  if ("why" in old) return old.why;
  return "why" in now ? now.why : diff(old.text, now.text);
}

// Changed asks again when the trial was looked at again.
export function Changed({ id, path, kind, version }: { id: string; path: string; kind: string; version: unknown }) {
  const asked = useAsked(() => compare(id, path, kind), [id, path, kind, version]);
  return (
    <Shown asked={asked} what="Comparing">
      {(d) => typeof d === "string"
        ? <p class="quiet">{d} Its content is not compared.</p>
        : d.hunks.length === 0 ? <p class="quiet">Its content is the same; its mode or its kind is not.</p> : <Hunks of={d} />}
    </Shown>
  );
}

const classes = { "+": "added", "-": "taken", " ": undefined };

function Hunks({ of }: { of: Diff }) {
  return (
    <>
      <p class="quiet">{plural(of.added, "line")} more, {of.removed} less</p>
      <Scroll label="Differences">
        <pre class="diff">
          {of.hunks.map((h) => (
            <>
              <span class="where">{`@@ -${h.before},${h.lines.filter((l) => l.kind !== "+").length} +${h.after},${h.lines.filter((l) => l.kind !== "-").length} @@\n`}</span>
              {h.lines.map((l) => <span class={classes[l.kind]}>{l.kind}<bdi>{shown(l.text)}</bdi>{"\n"}</span>)}
            </>
          ))}
        </pre>
      </Scroll>
      {of.cut && <p class="quiet">There are more differences than are shown.</p>}
    </>
  );
}

// shown is one line: what could look like another one, or like an end, is marked.
function shown(line: string): string {
  const text = line.endsWith("\n") ? line.slice(0, -1) : `${line} ⊣ no end of line`;
  return (text.length > longest ? `${text.slice(0, longest)}…` : text).replaceAll("\r", "␍");
}

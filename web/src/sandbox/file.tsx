// One file: looked at, changed, downloaded.

import { useEffect, useState } from "preact/hooks";
import { erase, move, read, source, write, type Entry } from "../api/files";
import { isOdd, shownName } from "../api/names";
import { useAsked } from "../asked";
import { may } from "../session";
import { moment, size } from "../text";
import { confirm } from "../ui/dialog";
import { Editor } from "../ui/editors";
import { attempt } from "../ui/notices";
import { Empty, Shown } from "../ui/states";
import { folderOf, nameOf } from "./files";
import { fits, known } from "./pictures";

const mostEdited = 1 << 20;
const mostSeen = 16 << 20;

const languages: Record<string, string> = { py: "python", js: "node", mjs: "node", ts: "typescript", sql: "sql", sh: "bash" };

// ends is how its lines end: the editor knows \n only, and saving must change no other line.
type Content = { kind: "text"; text: string; ends: string } | { kind: "picture"; blob: Blob } | { kind: "bytes"; why?: string };

async function lookAt(id: string, file: Entry): Promise<Content> {
  if (file.type !== "file" || file.size > mostSeen) return { kind: "bytes" };
  const blob = await read(id, file.path, mostSeen + 1);
  if (blob.size > mostSeen) return { kind: "bytes" };
  const picture = known(new Uint8Array(await blob.arrayBuffer()));
  if (picture && !fits(picture)) return { kind: "bytes", why: `It is a picture of ${picture.width} × ${picture.height}, too large to be drawn.` };
  if (picture) return { kind: "picture", blob: new Blob([blob], { type: picture.type }) };
  if (blob.size > mostEdited) return { kind: "bytes" };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await blob.arrayBuffer());
    const ends = text.includes("\r\n") ? "\r\n" : "\n";
    const shown = text.replaceAll(ends, "\n");
    const mixed = shown.includes("\r") || shown.replaceAll("\n", ends) !== text;
    return text.includes("\0") || mixed ? { kind: "bytes" } : { kind: "text", text: shown, ends };
  } catch {
    return { kind: "bytes" };
  }
}

interface Props {
  id: string;
  file: Entry;
  changed: () => void;
  gone: () => void;
}

export function FileView({ id, file, changed, gone }: Props) {
  const path = file.path;
  const asked = useAsked(() => lookAt(id, file), [path]);
  const writes = may("files:write");
  const rename = async () => {
    const name = prompt("Its new name", isOdd(nameOf(path)) ? "" : nameOf(path))?.trim();
    if (!name || name === nameOf(path)) return;
    if (await attempt(() => move(id, path, name.startsWith("/") ? name : `${folderOf(path)}/${name}`).then(() => true), "It has its new name")) gone();
  };
  const ask = () => confirm({ title: "Delete this file?", verb: "Delete", text: `${shownName(path)} is gone then.`, act: () => erase(id, path).then(gone) });
  return (
    <article class="file" aria-label={`File ${shownName(path)}`}>
      <header class="bar">
        <h2 class="cut"><bdi>{shownName(nameOf(path))}</bdi></h2>
        <span class="quiet">{size(file.size)} · {file.mode} · {moment(file.modified)}</span>
        <span class="buttons">
          <a class="button" href={source(id, path)} download={shownName(nameOf(path))}>Download</a>
          {writes && <button type="button" onClick={() => void rename()}>Rename</button>}
          {writes && <button type="button" class="danger" onClick={ask}>Delete</button>}
        </span>
      </header>
      <Shown asked={asked} what="Reading the file">
        {(content) => {
          switch (content.kind) {
            case "text":
              return <Text id={id} path={path} text={content.text} ends={content.ends} writes={writes} changed={changed} />;
            case "picture":
              return <Picture blob={content.blob} name={shownName(nameOf(path))} />;
            case "bytes":
              return <Empty title="This is not shown here"><p>{content.why ?? (file.type !== "file" ? `It is a ${file.type}.` : file.size > mostEdited ? "It is large." : "It is no text, or its lines end in several ways.")} It can be downloaded.</p></Empty>;
          }
        }}
      </Shown>
    </article>
  );
}

function Text({ id, path, text, ends, writes, changed }: { id: string; path: string; text: string; ends: string; writes: boolean; changed: () => void }) {
  const [now, set] = useState(text);
  const [saved, setSaved] = useState(text);
  const save = async () => {
    const written = now;
    if (!(await attempt(() => write(id, path, written.replaceAll("\n", ends)).then(() => true), "Saved"))) return;
    setSaved(written);
    changed();
  };
  const dirty = now !== saved;
  return (
    <>
      <Editor label={`Content of ${shownName(nameOf(path))}`} language={languages[path.slice(path.lastIndexOf(".") + 1)] ?? "text"} value={now} change={set} readOnly={!writes} save={() => void save()} />
      {writes && (
        <div class="bar">
          <button type="button" class="primary" disabled={!dirty} onClick={() => void save()}>Save</button>
          <button type="button" disabled={!dirty} onClick={() => set(saved)}>Undo changes</button>
          {dirty && <span class="quiet">changed, not saved</span>}
        </div>
      )}
    </>
  );
}

function Picture({ blob, name }: { blob: Blob; name: string }) {
  const [url, setURL] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setURL(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url ? <img class="value" src={url} alt={name} /> : null;
}

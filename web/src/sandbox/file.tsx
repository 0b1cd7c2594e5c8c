// One file: looked at, changed, downloaded.

import { useEffect, useState } from "preact/hooks";
import { erase, move, read, source, write } from "../api/files";
import type { FileEntry } from "../api/forms";
import { useAsked } from "../asked";
import { may } from "../session";
import { moment, size } from "../text";
import { confirm } from "../ui/dialog";
import { Editor } from "../ui/editors";
import { attempt } from "../ui/notices";
import { Empty, Shown } from "../ui/states";
import { folderOf, nameOf } from "./files";

const mostEdited = 1 << 20;
const mostSeen = 16 << 20;

// Pictures are known by their first bytes: what a sandbox calls a file says nothing.
const pictures: [string, number[]][] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]], ["image/webp", [0x52, 0x49, 0x46, 0x46]],
];

const languages: Record<string, string> = { py: "python", js: "node", mjs: "node", ts: "typescript", sql: "sql", sh: "bash" };

// ends is how its lines end: the editor knows \n only, and saving must change no other line.
type Content = { kind: "text"; text: string; ends: string } | { kind: "picture"; blob: Blob } | { kind: "bytes" };

async function look(id: string, file: FileEntry): Promise<Content> {
  if (file.type !== "file" || file.size > mostSeen) return { kind: "bytes" };
  const blob = await read(id, file.path ?? "", mostSeen + 1);
  if (blob.size > mostSeen) return { kind: "bytes" };
  const first = new Uint8Array(await blob.slice(0, 8).arrayBuffer());
  const type = pictures.find(([, magic]) => magic.every((b, i) => first[i] === b))?.[0];
  if (type) return { kind: "picture", blob: new Blob([blob], { type }) };
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
  file: FileEntry;
  changed: () => void;
  gone: () => void;
}

export function FileView({ id, file, changed, gone }: Props) {
  const path = file.path ?? "";
  const asked = useAsked(() => look(id, file), [path]);
  const writes = may("files:write");
  const rename = async () => {
    const name = prompt("Its new name", nameOf(path))?.trim();
    if (!name || name === nameOf(path)) return;
    if (await attempt(() => move(id, path, name.startsWith("/") ? name : `${folderOf(path)}/${name}`).then(() => true), "It has its new name")) gone();
  };
  const ask = () => confirm({ title: "Delete this file?", verb: "Delete", text: `${path} is gone then.`, act: () => erase(id, path).then(gone) });
  return (
    <article class="file" aria-label={`File ${path}`}>
      <header class="bar">
        <h2 class="cut"><bdi>{nameOf(path)}</bdi></h2>
        <span class="quiet">{size(file.size)} · {file.mode} · {moment(file.modified)}</span>
        <span class="buttons">
          <a class="button" href={source(id, path)} download={nameOf(path)}>Download</a>
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
              return <Picture blob={content.blob} name={nameOf(path)} />;
            case "bytes":
              return <Empty title="This is not shown here"><p>{file.type !== "file" ? `It is a ${file.type}.` : file.size > mostEdited ? "It is large." : "It is no text, or its lines end in several ways."} It can be downloaded.</p></Empty>;
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
      <Editor label={`Content of ${nameOf(path)}`} language={languages[path.slice(path.lastIndexOf(".") + 1)] ?? "text"} value={now} change={set} readOnly={!writes} save={() => void save()} />
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

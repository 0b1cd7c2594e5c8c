// The files of a sandbox: a tree, and the one that is chosen.

import { useRef, useState } from "preact/hooks";
import { entries, makeFolder, mostEntries, write, type Entry } from "../api/files";
import { shownName } from "../api/names";
import { useAsked } from "../asked";
import { may } from "../session";
import { size } from "../text";
import { attempt, say } from "../ui/notices";
import { Empty, Failure, Waiting } from "../ui/states";
import { FileView } from "./file";
import { Awake } from "./resting";
import type { TabProps } from "./sandbox";

export const workspace = "/workspace";

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
const inside = (folder: string, name: string): string => `${folder.replace(/\/$/, "")}/${name}`;

const byKind = (a: Entry, b: Entry): number =>
  Number(b.type === "dir") - Number(a.type === "dir") || a.path.localeCompare(b.path);

export function Files({ session, again }: TabProps) {
  return <Awake session={session} again={again}><Tree id={session.session_id} /></Awake>;
}

function Tree({ id }: { id: string }) {
  const [chosen, choose] = useState<Entry>();
  const [folder, setFolder] = useState(workspace);
  const [version, setVersion] = useState(0);
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const writes = may("files:write");
  const changed = () => setVersion((v) => v + 1);

  const upload = async (files: Iterable<File>) => {
    let done = 0;
    for (const file of files) {
      if (await attempt(() => write(id, inside(folder, file.name), file).then(() => true))) done++;
    }
    if (done > 0) say(`${done === 1 ? "1 file is" : `${done} files are`} in ${shownName(folder)}`);
    changed();
  };
  const named = async (kind: "file" | "folder") => {
    const name = prompt(`The name of the new ${kind} in ${shownName(folder)}`)?.trim();
    if (!name) return;
    const path = inside(folder, name);
    await attempt(() => (kind === "folder" ? makeFolder(id, path) : write(id, path, "")));
    changed();
  };

  return (
    <div
      class={over ? "files over" : "files"}
      onDragOver={(e) => { e.preventDefault(); setOver(writes); }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => { e.preventDefault(); setOver(false); if (writes) void upload(e.dataTransfer?.files ?? []); }}
    >
      <div class="files-tree">
        <div class="bar">
          {writes && <>
            <button type="button" onClick={() => picker.current?.click()}>Upload</button>
            <button type="button" onClick={() => void named("file")}>New file</button>
            <button type="button" onClick={() => void named("folder")}>New folder</button>
            <input ref={picker} type="file" multiple hidden aria-label="Files to upload" onChange={(e) => { void upload([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ""; }} />
          </>}
          <button type="button" onClick={changed} aria-label="Read the files again">↻</button>
        </div>
        <p class="quiet">into <code><bdi>{shownName(folder)}</bdi></code>{writes && ", or drop files here"}</p>
        <ul class="tree" role="tree" aria-label="Files">
          <Folder id={id} path={workspace} name="workspace" depth={0} version={version} chosen={chosen?.path} folder={folder} enter={setFolder} choose={choose} open />
        </ul>
      </div>
      <div class="files-view">
        {chosen
          ? <FileView key={`${chosen.path} ${chosen.modified}`} id={id} file={chosen} changed={changed} gone={() => { choose(undefined); changed(); }} />
          : <Empty title="No file is chosen"><p>Choose one to look at it, change it or download it.</p></Empty>}
      </div>
    </div>
  );
}

interface FolderProps {
  id: string;
  path: string;
  name: string;
  depth: number;
  version: number;
  chosen: string | undefined;
  folder: string;
  enter: (path: string) => void;
  choose: (f: Entry) => void;
  open?: boolean;
}

function Folder(p: FolderProps) {
  const [open, setOpen] = useState(p.open ?? false);
  const asked = useAsked((s) => entries(p.id, p.path, s), [p.path, p.version], { idle: !open });
  const [known, keep] = useState<Entry[]>();
  if (asked.value && asked.value !== known) keep(asked.value); // stays while it is read again
  const all = (asked.value ?? known ?? []).toSorted(byKind);
  return (
    <li role="treeitem" aria-expanded={open} aria-selected={p.folder === p.path}>
      <button type="button" class="tree-row" style={{ paddingLeft: `${p.depth * 14 + 6}px` }} onClick={() => { setOpen(!open || p.folder !== p.path); p.enter(p.path); }}>
        <span class="twist" aria-hidden="true">{open ? "▾" : "▸"}</span> <bdi class="cut">{shownName(p.name)}</bdi>
      </button>
      {open && (
        <ul role="group">
          {asked.problem !== undefined && <li role="none"><Failure problem={asked.problem} again={asked.again} /></li>}
          {!asked.value && !known && asked.problem === undefined && <li role="none"><Waiting what="Reading" /></li>}
          {all.map((f) => f.type === "dir"
            ? <Folder key={f.path} {...p} open={false} path={f.path} name={nameOf(f.path)} depth={p.depth + 1} />
            : (
              <li key={f.path} role="treeitem" aria-selected={p.chosen === f.path}>
                <button type="button" class={p.chosen === f.path ? "tree-row chosen" : "tree-row"} style={{ paddingLeft: `${(p.depth + 1) * 14 + 20}px` }} onClick={() => p.choose(f)}>
                  <bdi class="cut">{shownName(nameOf(f.path))}</bdi> <span class="quiet">{f.type === "file" ? size(f.size) : f.type}</span>
                </button>
              </li>
            ))}
          {all.length >= mostEntries && <li role="none" class="quiet tree-row">There may be more than these {mostEntries}; a terminal lists all.</li>}
          {asked.value?.length === 0 && <li role="none" class="quiet tree-row" style={{ paddingLeft: `${(p.depth + 1) * 14 + 20}px` }}>empty</li>}
        </ul>
      )}
    </li>
  );
}

// An editor for code and for text.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { sql } from "@codemirror/lang-sql";
import { classHighlighter } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

export interface EditorProps {
  label: string;
  language: string;
  value: string;
  change: (value: string) => void;
  run?: () => void; // with Ctrl-Enter or Shift-Enter
  save?: () => void; // with Ctrl-S
  readOnly?: boolean;
}

// shellWords is enough of a shell to read it by.
const shellWords = StreamLanguage.define({
  token(stream) {
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'[^']*'?/)) return "string";
    if (stream.match(/^\$(?:\w+|\{[^}]*\})/)) return "variableName";
    if (stream.match(/^\b(?:if|then|else|elif|fi|for|while|do|done|case|esac|in|function|return|exit|export)\b/)) return "keyword";
    if (stream.match(/^\d+\b/)) return "number";
    stream.next();
    stream.eatWhile(/\w/);
    return null;
  },
});

function languageOf(name: string): Extension {
  switch (name) {
    case "python":
      return [python(), indentUnit.of("    ")];
    case "node":
    case "typescript":
      return javascript({ typescript: name === "typescript" });
    case "sql":
      return sql();
    case "bash":
    case "command":
      return shellWords;
    default:
      return [];
  }
}

export default function Editor({ label, language, value, change, run, save, readOnly }: EditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const now = useRef({ change, run, save });
  now.current = { change, run, save };
  const spoken = useRef(new Compartment());

  useEffect(() => {
    if (!box.current) return;
    const ask = (name: "run" | "save") => () => {
      now.current[name]?.();
      return now.current[name] !== undefined;
    };
    const keys = [{ key: "Mod-Enter", run: ask("run") }, { key: "Shift-Enter", run: ask("run") }, { key: "Mod-s", run: ask("save") }];
    view.current = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          keymap.of(keys), lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(),
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]), syntaxHighlighting(classHighlighter),
          spoken.current.of(languageOf(language)), EditorState.readOnly.of(readOnly ?? false),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of((u) => u.docChanged && now.current.change(u.state.doc.toString())),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  useEffect(() => view.current?.dispatch({ effects: spoken.current.reconfigure(languageOf(language)) }), [language]);
  useEffect(() => {
    const v = view.current;
    if (v && v.state.doc.toString() !== value) v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: value } });
  }, [value]);

  return <div class="editor" ref={box} />;
}

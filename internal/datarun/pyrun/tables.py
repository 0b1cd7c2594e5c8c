# Gives the code of a run its tables. Runs in a namespace of its own; home is that of
# the code, and asked is what to do, in JSON. What reads the frames of DuckDB, confine.py
# and values.py follow in the same program.
import os
import sys

# Where code imports from that is not of the interpreter's own: nothing there is for runs.
OTHERS = {"", *os.environ.get("PYTHONPATH", "").split(os.pathsep), "%s/.local/lib/python%d.%d/site-packages" % (os.environ.get("HOME"), *sys.version_info[:2])}
sys.path[:] = [p for p in sys.path if p not in OTHERS]

import builtins
import codecs
import collections.abc
import json
import keyword
import re

import numpy as np
import pandas as pd

HEAD = 64 << 10  # bytes in which the separator is looked for
TAKEN = {"dfs", "pd", "np", "result", "result_df", "result_rows", "result_columns"}


class TableProblem(Exception):
    """A table that cannot be had."""


def load(table):
    """The frame of a table. What is wrong with its file is told in one sentence."""
    if table["problem"]:
        raise TableProblem(table["problem"])
    file = table["file"]
    try:
        return FORMATS[table["format"]](table["path"], table["columns"])
    except TableProblem as e:
        raise TableProblem("%s %s" % (file, e)) from None
    except UnicodeError:
        raise TableProblem("%s is not UTF-8 text; save it as UTF-8" % file) from None
    except OSError as e:
        raise TableProblem("%s cannot be read: %s" % (file, e.strerror or type(e).__name__)) from None
    except MemoryError:
        raise
    except Exception as e:
        text = (str(e).splitlines() or [""])[0][:300]
        raise TableProblem("%s cannot be read as %s: %s" % (file, table["format"], text)) from None


def read_csv(path, columns):
    with open(path, "rb") as f:
        head = f.read(HEAD)
    if not head.strip(codecs.BOM_UTF8 + b" \t\r\n"):
        raise TableProblem("is empty")
    some = None if columns is None else lambda c: c in columns
    frame = pd.read_csv(path, sep=separator(head), encoding="utf-8-sig", low_memory=False, usecols=some)
    return chosen(frame, columns)


def separator(head):
    """What stands between the columns: that of which the first line has most, outside of quotes."""
    line = codecs.decode(head.removeprefix(codecs.BOM_UTF8), "utf-8", "replace").lstrip("\r\n").partition("\n")[0]
    return max(",;\t|", key=re.sub('"[^"]*"', "", line).count)


def read_json(path, columns):
    with open(path, encoding="utf-8-sig") as f:
        start = f.read(1)
        while start.isspace():
            start = f.read(1)
        if not start:
            raise TableProblem("is empty")
        f.seek(0)
        if start == "[":
            records = json.load(f)
        else:
            records = lines(f)
    if not all(isinstance(r, dict) for r in records):
        raise TableProblem("is not a list of objects")
    return chosen(pd.DataFrame(records), columns)


def lines(f):
    """The objects of a file with one in each line, or with a single one."""
    text = f.read()
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError:
        return [json.loads(text)]


def no_parquet(path, columns):
    raise TableProblem("is Parquet, which Python has read by DuckDB, and this build has none")


def read_frame(path, columns):
    return chosen(cove_frame(path), columns)


def chosen(frame, columns):
    if columns is None:
        return frame
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise TableProblem("has no column %s" % missing[0])
    return frame[[c for c in frame.columns if c in columns]]


FORMATS = {"csv": read_csv, "json": read_json, "parquet": no_parquet, "frame": read_frame}


class Frames(collections.abc.MutableMapping):
    """Frames by the names of their tables. A table is loaded when it is first asked for."""

    def __init__(self, tables):
        self.__files = {t["name"]: t for t in tables}
        self.__frames = dict.fromkeys(self.__files)

    def __getitem__(self, name):
        if name in self.__files:
            self.__frames[name] = load(self.__files[name])
            del self.__files[name]
        return self.__frames[name]

    def __setitem__(self, name, frame):
        self.__files.pop(name, None)
        self.__frames[name] = frame

    def __delitem__(self, name):
        self.__files.pop(name, None)
        del self.__frames[name]

    def __iter__(self):
        return iter(self.__frames)

    def __len__(self):
        return len(self.__frames)

    def __contains__(self, name):
        return name in self.__frames

    def __repr__(self):
        return "dfs of " + ", ".join(map(str, self.__frames))


USES = "getattribute getitem setitem len iter next contains repr str bool eq lt gt le ge add radd sub mul truediv call array".split()


def unreadable(problem):
    """What stands for a table that cannot be had, until the code uses it: that it speaks of it is only guessed."""
    def use(*_, **__):
        raise TableProblem(problem)
    return type("Unreadable", (), {"__%s__" % name: use for name in USES})()


def identifier(name):
    """A table's name as one that code can have."""
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    if not word.isidentifier():
        word = "_" + word
    if keyword.iskeyword(word) or word in TAKEN or hasattr(builtins, word):
        word += "_"
    return word if word.isidentifier() else None


def no_more(*_, **__):
    raise TypeError("there is one dfs")


def begin(home, asked):
    frames = Frames(asked["tables"])
    Frames.__init__ = no_more  # which would read other files
    home.update(dfs=frames, pd=pd, np=np)
    exact = {t["name"] for t in asked["tables"]}
    for t in asked["tables"]:
        word = identifier(t["name"])
        if t["named"] and word and word not in home and (word == t["name"] or word not in exact):
            try:
                home[word] = frames[t["name"]]
            except TableProblem as e:
                home[word] = unreadable(str(e))
    builtins._ = NOTHING
    sys.modules["cove_run"] = Told(home, asked["max_rows"], asked["max_bytes"])
    display(Confined(confine([t["path"] for t in asked["tables"] if not t["problem"]], asked["scratch"])))

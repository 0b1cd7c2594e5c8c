# Writes a file as cmd/cove-duckdb writes frames, one column of each kind, with and
# without NULL, in two batches. usage: npz.py FILE
import json
import sys

import numpy as np

arrays, columns = {}, []


def batch(number, name, data, null):
    """One row of the last column, as a batch of its own."""
    key = "%d.%d." % (len(columns) - 1, number)
    arrays[key + name] = data
    if null:
        arrays[key + "null"] = np.array([True])


def column(name, kind, data, null=(False, False)):
    columns.append({"name": name, "type": "?", "kind": kind})
    for b in range(2):
        batch(b, "data", data[b : b + 1], null[b])


def texts(name, kind, *words):
    columns.append({"name": name, "type": "?", "kind": kind})
    for b, w in enumerate(words):
        blob = b"" if w is None else w if isinstance(w, bytes) else w.encode()
        batch(b, "data", np.frombuffer(blob, dtype="uint8"), w is None)
        batch(b, "ends", np.array([len(blob)], dtype="int64"), False)


for t in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 bool".split():
    column(t, "number", np.array([1, 0], dtype=t))
    column(t, "number", np.array([1, 0], dtype=t), [False, True])
for unit in "D s ms us ns".split():
    column(unit, "time", np.array(["2020-01-02", "1999-12-31"], dtype="datetime64[%s]" % unit))
column("us", "time", np.array(["2020-01-02T03:04:05.678901", "1970-01-01"], dtype="datetime64[us]"), [False, True])
column("us", "zoned", np.array(["2020-01-02T03:04:05", "1999-12-31"], dtype="datetime64[us]"))
column("far", "time", np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[D]"))
texts("text", "text", "é", "")
texts("text", "text", "x", None)
texts("bytes", "bytes", b"\x00\xff", None)
texts("integer", "integer", "12345678901234567890123", None)
texts("integer", "integer", "7", "-8")
texts("decimal", "decimal", "12345678901234567890.12345", None)
texts("json", "json", '{"a":[1,null]}', "[1]")
texts("lists", "json", "[1,2]", "[3,4]")
head = json.dumps({"rows": 2, "batches": 2, "columns": columns}).encode()
np.savez(open(sys.argv[1], "wb"), head=np.frombuffer(head, dtype="uint8"), **arrays)

# Tells what the code of a run gave. Comes last in the same program.
import base64
import datetime
import decimal
import itertools
import math

NOTHING = object()
MARK = "... (output truncated)"
DEPTH = 32        # of lists in lists
COLUMNS = 16384   # of an answer
LABEL = 1000      # characters of a column's name
NAMES = 1 << 20   # bytes of the names of all columns


class Told:
    """The result of the code, when the epilogue asks for it."""

    def __init__(self, home, max_rows, max_bytes):
        self.home, self.max_rows, self.max_bytes = home, max_rows, max_bytes

    def __call__(self):
        self.__text = written(self.answer())
        return self

    def __repr__(self):
        return ""

    def _repr_mimebundle_(self):
        return {"application/vnd.cove.run+json": self.__text}

    def answer(self):
        columns, types, rows = self.result()
        if len(columns) > COLUMNS:
            return {"problem": "the result has %d columns; the most is %d" % (len(columns), COLUMNS)}
        columns = [clean(str(c))[:LABEL] for c in columns]
        if length(columns) > NAMES:
            return {"problem": "the names of the result's %d columns take more than %d bytes; give it shorter names or fewer columns" % (len(columns), NAMES)}
        out, size, cut = [], 0, False
        for row in rows:
            if len(out) == self.max_rows:
                cut = True
                break
            row = [plain(v) for v in row]
            n = length(row)
            if n > self.max_bytes:  # it would never have room
                row, cut = self.shorter(row), True
                n = length(row)
            if size + n > self.max_bytes:
                cut = True
                break
            out.append(row)
            size += n
        return {"columns": columns, "types": types, "rows": out, "truncated": cut}

    def shorter(self, row):
        """A row whose long texts are cut."""
        most = max(self.max_bytes // (2 * len(row)) - len(MARK), 0)
        return [v.encode()[:most].decode("utf-8", "ignore") + MARK if isinstance(v, str) and len(v.encode()) > most else v for v in row]

    def result(self):
        """Columns, their types and the rows of the first thing that the code left."""
        home = self.home
        if home.get("result_df") is not None:
            return of_frame(home["result_df"], "result_df")
        if home.get("result_rows") is not None:
            return of_rows(home["result_rows"], home.get("result_columns"))
        if home.get("result") is not None:
            return of_value(home["result"])
        last = getattr(builtins, "_", NOTHING)
        return ([], [], []) if last is NOTHING else of_value(last)


def length(row):
    return len(written(row).encode()) + 1


def written(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def of_frame(frame, name):
    if isinstance(frame, pd.Series):
        return of_value(frame)
    if not isinstance(frame, pd.DataFrame):
        raise Wrong("%s is %s, not a frame" % (name, a(frame)))
    columns, series = [label(c) for c in frame.columns], [frame.iloc[:, i] for i in range(min(frame.shape[1], COLUMNS + 1))]
    labels = frame.index
    if any(n is not None for n in labels.names) or len(labels) and (labels.nlevels > 1 or labels.dtype.kind not in "iu"):
        for i in reversed(range(labels.nlevels)):
            level = labels.names[i]
            columns.insert(0, label(level) if level is not None else "index" if labels.nlevels == 1 else "level_%d" % i)
            series.insert(0, labels.get_level_values(i).to_series())
    types = [str(s.dtype) for s in series]
    cells = [s.array for s in series]
    return columns, types, ([missing(c[i]) for c in cells] for i in range(len(frame)))


def label(name):
    return "_".join(map(str, name)) if isinstance(name, tuple) else str(name)


def missing(value):
    """A cell of a frame, where not a number means that there is none."""
    return None if isinstance(value, (float, np.floating)) and value != value else value


def of_rows(rows, columns):
    if isinstance(rows, (pd.DataFrame, pd.Series)):
        return of_frame(rows, "result_rows")
    if isinstance(rows, (str, bytes, dict)) or not isinstance(rows, collections.abc.Iterable):
        raise Wrong("result_rows is %s, not a list of rows" % a(rows))
    rows = iter(rows)
    first = next(rows, NOTHING)
    if columns is not None:
        columns = [str(c) for c in columns]
    if first is NOTHING:
        return columns or [], [], []
    rows = itertools.chain([first], rows)
    if isinstance(first, dict):
        rows, columns = of_dicts(rows, columns)
    elif columns is None:
        columns = ["result"] if single(first) else ["column_%d" % (i + 1) for i in range(len(first))]
    return columns, [], (fitting(i, r, columns) for i, r in enumerate(rows))


def of_dicts(rows, columns):
    """Rows that name their columns, in the order in which they do."""
    rows = list(itertools.islice(rows, MOST + 1))
    if columns is None:
        columns = list(dict.fromkeys(k for r in rows if isinstance(r, dict) for k in r))
    keys = {str(k): k for r in rows if isinstance(r, dict) for k in r}
    rows = ([r.get(keys.get(str(c), c)) for c in columns] if isinstance(r, dict) else r for r in rows)
    return rows, columns


MOST = 1000  # rows of an answer


def single(row):
    if isinstance(row, np.ndarray):
        return row.ndim == 0
    return not isinstance(row, (list, tuple, pd.Series))


def fitting(i, row, columns):
    row = [row] if single(row) else list(row)
    if len(row) > len(columns):
        raise Wrong("row %d of the result has %d values for %d columns" % (i + 1, len(row), len(columns)))
    return row + [None] * (len(columns) - len(row))


def of_value(value):
    """A result that is no frame, as a table."""
    if isinstance(value, pd.DataFrame):
        return of_frame(value, "result")
    if isinstance(value, pd.Series):
        return of_frame(value.to_frame("result" if value.name is None else value.name), "result")
    if isinstance(value, pd.Index):
        return of_frame(value.to_frame(index=False, name="result") if value.nlevels == 1 and value.name is None else value.to_frame(index=False), "result")
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return of_value(value.item())
        return of_rows(value.tolist() if value.dtype.kind in "biuf" and value.ndim <= 2 else list(value), None)
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return of_rows(list(value), None)
    if isinstance(value, dict) and value:
        return list(value), [], [list(value.values())]
    if isinstance(value, (list, set, frozenset)) or isinstance(value, tuple) and value and isinstance(value[0], (list, tuple, dict)):
        return of_rows(value, None)
    return ["result"], [], [[value]]


class Wrong(Exception):
    """A result that is no table."""


def a(value):
    name = type(value).__name__
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def plain(v, depth=0):
    """A value as JSON has it."""
    if v is None or v is pd.NaT or v is pd.NA:
        return None
    if isinstance(v, str):
        return clean(v)
    if isinstance(v, (bool, np.bool_)):
        return bool(v)
    if isinstance(v, (int, np.integer)) and not isinstance(v, np.timedelta64):
        return int(v)
    if isinstance(v, (float, np.floating)):
        return number(v)
    for kinds, form in FORMS:
        if isinstance(v, kinds):
            return form(v)
    if isinstance(v, np.generic):
        return plain(v.item(), depth + 1) if depth < DEPTH else clean(str(v))
    if isinstance(v, np.ndarray) and v.ndim == 0:
        return plain(v.item(), depth + 1) if depth < DEPTH else clean(str(v))
    if depth < DEPTH and isinstance(v, dict):
        return {clean(str(k)): plain(x, depth + 1) for k, x in v.items()}
    if depth < DEPTH and isinstance(v, (list, tuple, set, frozenset, np.ndarray, pd.Series, pd.Index)):
        return [plain(x, depth + 1) for x in v]
    return clean(str(v))


def clean(text):
    return str(text).encode("utf-8", "replace").decode()


def number(v):
    if math.isnan(v):
        return "NaN"
    if math.isinf(v):
        return "Infinity" if v > 0 else "-Infinity"
    return float(v) if isinstance(v, float) else float(str(v))  # the shortest number of fewer bits


def moment(v):
    if v.tzinfo is not None:
        v = v.astimezone(datetime.timezone.utc) if not isinstance(v, pd.Timestamp) else v.tz_convert("UTC")
    text = v.isoformat().removesuffix("+00:00")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text + "Z" if v.tzinfo is not None else text


def clock(v):
    text = v.isoformat()
    return text.rstrip("0").rstrip(".") if "." in text and v.tzinfo is None else text


def span(v):
    """A length of time in the form of ISO 8601."""
    ns = ((v.days * 86400 + v.seconds) * 10**6 + v.microseconds) * 1000 + getattr(v, "nanoseconds", 0)
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    seconds, ns = divmod(ns, 10**9)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    part = ("%d.%09d" % (seconds, ns)).rstrip("0").rstrip(".")
    clock = "".join("%d%s" % (n, unit) for n, unit in ((hours, "H"), (minutes, "M")) if n) + (part + "S" if part != "0" else "")
    return sign + "P" + ("%dD" % days if days else "") + ("T" + clock if clock or not days else "") + ("" if clock or days else "0S")


def exact(v):
    """A decimal number with all its digits."""
    if v.is_nan():
        return "NaN"
    if v.is_infinite():
        return "Infinity" if v > 0 else "-Infinity"
    return format(v, "f") if abs(v.adjusted()) < 1000 else str(v)


def calendar(v):
    """A moment of numpy's, whose years are more than those of pandas."""
    try:
        return plain(pd.Timestamp(v))
    except ValueError:
        return str(v)


FORMS = (
    (datetime.datetime, moment),
    (datetime.date, lambda v: v.isoformat()),
    (datetime.time, clock),
    (datetime.timedelta, span),
    (np.timedelta64, lambda v: plain(pd.Timedelta(v))),
    (np.datetime64, calendar),
    (decimal.Decimal, exact),
    ((bytes, bytearray, memoryview), lambda v: base64.b64encode(bytes(v)).decode()),
)


begin(home, json.loads(asked))

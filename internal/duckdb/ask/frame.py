def cove_frame(path):
    """Reads the file that cmd/cove-duckdb wrote as a frame of pandas."""
    import datetime
    import decimal
    import json

    import numpy as np
    import pandas as pd

    def whole(values, null):
        """Integers of any size: 64 bits where that is enough."""
        try:
            return numbers(np.array([0 if v is None else v for v in values], dtype="int64"), null)
        except OverflowError:
            return np.array(values + [None], dtype=object)[:-1]

    def numbers(data, null):
        if null is None:
            return data
        if data.dtype.kind == "f":
            data[null] = np.nan
            return data
        if data.dtype.kind == "b":
            return pd.arrays.BooleanArray(data, null)
        return pd.arrays.IntegerArray(data, null)

    def times(data, null, zone):
        if null is not None:
            data[null] = np.datetime64("NaT")
        # The first and last whole days that nanoseconds since 1970 reach.
        low, high = (np.datetime64(day).astype(data.dtype) for day in ("1677-09-22", "2262-04-11"))
        known = data[~np.isnat(data)]
        if known.size and data.dtype != "datetime64[ns]" and (known.min() < low or known.max() >= high):
            values = data.astype(object)
            if zone:
                values = [v.replace(tzinfo=datetime.timezone.utc) if hasattr(v, "tzinfo") else v for v in values]
            return pd.Series(values, dtype=object)
        series = pd.Series(data.astype("datetime64[ns]"))
        return series.dt.tz_localize("UTC") if zone else series

    def whole_column(archive, i, batches):
        """The numbers of all batches, and where they are NULL, if anywhere."""
        parts = [archive["%d.%d.data" % (i, b)] for b in range(batches)]
        return np.concatenate(parts), nulls(archive, i, [len(p) for p in parts])

    def nulls(archive, i, sizes):
        names = ["%d.%d.null" % (i, b) for b in range(len(sizes))]
        if not any(n in archive.files for n in names):
            return None
        return np.concatenate([archive[n] if n in archive.files else np.zeros(size, bool) for n, size in zip(names, sizes)])

    def pieces(archive, i, batches, read):
        """The values of all batches that are pieces of bytes."""
        values, sizes = [], []
        for b in range(batches):
            blob, start = archive["%d.%d.data" % (i, b)].tobytes(), 0
            ends = archive["%d.%d.ends" % (i, b)].tolist()
            sizes.append(len(ends))
            null = archive["%d.%d.null" % (i, b)] if "%d.%d.null" % (i, b) in archive.files else None
            for row, end in enumerate(ends):
                values.append(None if null is not None and null[row] else read(blob[start:end]))
                start = end
        return values, nulls(archive, i, sizes)

    def column(archive, i, kind, batches):
        if kind == "number":
            return numbers(*whole_column(archive, i, batches))
        if kind in ("time", "zoned"):
            return times(*whole_column(archive, i, batches), kind == "zoned")
        read = {
            "text": lambda b: b.decode(),
            "bytes": lambda b: b,
            "integer": lambda b: int(b),
            "decimal": lambda b: decimal.Decimal(b.decode()),
            "json": lambda b: json.loads(b),
        }[kind]
        values, null = pieces(archive, i, batches, read)
        if kind == "integer":
            return whole(values, null)
        out = np.empty(len(values), dtype=object)
        out[:] = values
        return pd.Series(out, dtype=object)

    with np.load(path, allow_pickle=False) as archive:
        head = json.loads(archive["head"].tobytes())
        columns = {
            i: pd.Series(column(archive, i, c["kind"], head["batches"])) for i, c in enumerate(head["columns"])
        }
        frame = pd.DataFrame(columns, index=pd.RangeIndex(head["rows"]))
    frame.columns = [c["name"] for c in head["columns"]]
    return frame

"""What python.py needs for errors, for values with more than one form, and for await.

It finds python.py as core and its state as S."""
import base64
import importlib
import importlib.machinery
import linecache
import sys
import traceback

TEXT = 256 << 10  # characters of a text form
FORM = 4 << 20  # bytes of any other
ROWS = 1000  # of a frame
REPRS = (
    ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"), ("application/javascript", "_repr_javascript_"),
    ("application/pdf", "_repr_pdf_"),
)

linecache.cache.update(S.sources)
S.sources = linecache.cache


def module(name):
    return core.by_ourselves(importlib.import_module, name)


def cut(text, most=TEXT):
    if len(text) <= most:
        return text
    return "%s\n… (%d more characters)\n%s" % (text[:most // 2], len(text) - most, text[-most // 2:])


def text_of(value):
    try:
        return cut(repr(value))
    except Exception as e:
        return "<%s: its repr raised %s>" % (type(value).__name__, type(e).__name__)


def plain(kind, form):
    """A form as text: bytes in base64, structures in JSON. None if it is too long."""
    if isinstance(form, tuple):  # (data, metadata)
        form = form[0] if form else None
    if form is None:
        return None
    if isinstance(form, (bytes, bytearray, memoryview)):
        form = base64.b64encode(form).decode()
    elif not isinstance(form, str):
        form = module("json").dumps(form, default=str)
    if kind in ("text/html", "text/markdown", "text/latex", "image/svg+xml") and len(form) > FORM:
        return None
    return form if len(form) <= FORM * 4 // 3 else None


def forms_of(value):
    """All forms of a value, by MIME type."""
    forms = {}
    if isinstance(value, type):  # the methods of a class are not about the class
        return {"text/plain": text_of(value)}
    bundle = getattr(value, "_repr_mimebundle_", None)
    offers = []
    if callable(bundle):
        offers.append(bundle)
    for kind, name in REPRS:
        method = getattr(value, name, None)
        if callable(method):
            offers.append(lambda kind=kind, method=method: {kind: method()})
    for offer in offers:
        try:
            made = offer()
            made = made[0] if isinstance(made, tuple) and made else made
            for kind, form in (made or {}).items():
                form = plain(kind, form)
                if form is not None:
                    forms.setdefault(str(kind), form)
        except Exception:
            pass  # the forms that work are enough
    family = type(value).__module__.partition(".")[0]
    try:
        if family == "pandas":
            forms.update(rows_of(value))
        elif family == "matplotlib" and "savefig" in dir(value) and "image/png" not in forms:
            forms["image/png"] = picture(value)
            close_figure(value)
    except Exception:
        pass
    if "text/plain" not in forms:
        forms["text/plain"] = text_of(value)
    forms["text/plain"] = cut(forms["text/plain"])
    return forms


def rows_of(value):
    """A frame or a series as rows; labels of rows that say something come first."""
    if not hasattr(value, "to_json") or not hasattr(value, "iloc"):
        return {}
    json = module("json")
    frame = value.to_frame() if value.ndim == 1 else value
    total, most = len(frame), ROWS
    while True:
        part = frame.iloc[:most]
        columns, rows = table(part)
        if not numbered(part.index):
            names, labels = part.index.names, part.index.to_frame(index=False)
            labels.columns = [n if n is not None else "index" if len(names) == 1 else f"level_{i}" for i, n in enumerate(names)]
            more, labels = table(labels)
            columns, rows = more + columns, [a + b for a, b in zip(labels, rows)]
        text = json.dumps({"columns": columns, "rows": rows, "row_count": total, "truncated": len(rows) < total})
        if len(text) <= 1 << 20:
            return {"application/json": text}
        if most <= 1:
            return {}
        most = max(min(most, total) // 4, 1)


def numbered(index):
    """Whether the labels of rows are nothing but their numbers, from 0 on."""
    unnamed = len(index.names) == 1 and index.names[0] is None
    return unnamed and (len(index) == 0 or index.dtype.kind in "iu" and list(index) == list(range(len(index))))


def table(frame):
    """The names of the columns of a frame, and its rows without labels."""
    columns = [c if isinstance(c, (str, int, float, bool)) else str(c) for c in frame.columns]
    # Names may come twice, which rows do not mind and to_json does.
    frame = frame.set_axis(range(len(columns)), axis=1).reset_index(drop=True)
    return columns, module("json").loads(frame.to_json(orient="values", date_format="iso", default_handler=str))


def picture(figure):
    data = core.io.BytesIO()
    figure.savefig(data, format="png", dpi=100, bbox_inches="tight")
    form = plain("image/png", data.getvalue())
    if form is None:
        raise ValueError
    return form


def close_figure(figure):
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close(figure)


def figures():
    """The open figures, which are closed."""
    plt = sys.modules["matplotlib.pyplot"]
    frames = []
    for n in list(getattr(plt, "get_fignums", list)()):
        figure = plt.figure(n)
        try:
            frames += core.show({"image/png": picture(figure), "text/plain": text_of(figure)})
        except Exception as e:
            frames += core.show({"text/plain": "%s (not drawn: %s: %s)" % (text_of(figure), type(e).__name__, e)})
        plt.close(figure)
    return frames


def show_figures(*_, **__):
    """What pyplot.show() does here."""
    core.flush()
    frames = figures()
    if not S.forked:
        core.send(core.out, 1, frames)


async def in_turn(parts):
    for p in parts:
        value = eval(p, S.main.__dict__)
        if p.co_flags & 0x180:
            value = await value
    return value


def wait_for(parts):
    """Runs code that awaits in the loop of the context."""
    asyncio = module("asyncio")
    if S.loop is None or S.loop.is_closed():
        S.loop = asyncio.new_event_loop()
    loop = S.loop
    asyncio.set_event_loop(loop)
    task = loop.create_task(in_turn(parts))
    try:
        return loop.run_until_complete(task)
    except BaseException:
        S.running = False
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(asyncio.wait([task], timeout=0.2))
            except BaseException:
                pass
        raise


def drop_ours(t, seen):
    """Takes the driver's frames out of a traceback and those it is chained to."""
    while t is not None and id(t) not in seen:
        seen.add(id(t))
        t.stack[:] = [f for f in t.stack if f.filename != core.FILE]
        for other in [t.__cause__, *(getattr(t, "exceptions", None) or ())]:
            drop_ours(other, seen)
        t = t.__context__


def describe(e, name):
    """Name, value, traceback and line of what was raised."""
    try:
        value = str(e)
    except Exception:
        value = "(its text cannot be made)"
    line, at = 0, e.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == name:
            line = at.tb_lineno
        at = at.tb_next
    if isinstance(e, SyntaxError) and e.filename == name:
        line = e.lineno
    try:
        t = traceback.TracebackException(type(e), e, e.__traceback__, compact=True)
        drop_ours(t, set())
        text = "".join(core.by_ourselves(list, t.format()))
    except Exception:
        text = ""
    return type(e).__name__, cut(value), text, line or 0


def failed(e, name, frames):
    """The exit code of code that raised, and what there is to say."""
    try:
        if isinstance(e, SystemExit):
            if e.code is None or e.code == 0:
                return 0, frames
            if isinstance(e.code, int):
                what = "SystemExit", e.code, "", describe(e, name)[3]
                return e.code & 255 or 1, frames + core.frame(b"E", S.seq, core.fields(*what))
            print(e.code, file=sys.stderr)
        what = describe(e, name)
        if S.forked:
            sys.stderr.write(what[2])
        if isinstance(e, ModuleNotFoundError):
            importlib.invalidate_caches()  # what is installed now is found next time
        return 130 if isinstance(e, KeyboardInterrupt) else 1, frames + core.frame(b"E", S.seq, core.fields(*what))
    finally:
        e.__traceback__ = e.__context__ = e.__cause__ = None  # it holds all that its frames hold


def pyplot(name, path, target):
    """Where pyplot is, and what is different about it here."""
    spec = importlib.machinery.PathFinder.find_spec(name, path, target)
    if spec is not None and spec.loader is not None:
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.show = show_figures
        spec.loader.exec_module = exec_module
    return spec


def warm(is_warm, modules):
    """Has ready what the first code is likely to need."""
    for m in modules:
        try:
            importlib.import_module(m)
        except Exception:
            pass
    if "matplotlib.pyplot" in sys.modules:  # as it was imported before us
        sys.modules["matplotlib.pyplot"].show = show_figures
    if not is_warm:
        return
    for m in ("json", "re", "math", "datetime", "random", "itertools", "collections"):
        importlib.import_module(m)
    for _ in range(2):
        exec(core.compiled("def f(x):\n    return [x]\nf(1)", "<warm>")[0], {})
        try:
            raise ValueError
        except ValueError as e:
            describe(e, "<warm>")
        core.show(forms_of({"a": 1}))
    import gc
    gc.collect()
    gc.freeze()

"""What the cases share: each is a function that raises where an SDK does not do what
its users expect. Nothing here knows Cove."""

import json
import os
import time
import traceback

from e2b import Sandbox

MODE = os.environ.get("CASES_MODE")  # url or domain
OTHER_KEY = os.environ.get("CASES_OTHER_KEY")  # of another tenant
NEW = hasattr(Sandbox, "create_snapshot")  # the newer generation

cases = []


class Absent(Exception):
    pass


class Skipped(Exception):
    pass


class Unsupported(Exception):
    pass


def test(run):
    cases.append(run)
    return run


def absent(unless):
    """Ends a case where this version of the SDK has no such call."""
    if not unless:
        raise Absent("the SDK has no such call")


def skip(unless, why):
    """Ends a case that cannot be tried here."""
    if not unless:
        raise Skipped(why)


def unsupported(what, words):
    """Ends a case as what the server refuses, if it does so in one of these words."""
    try:
        got = what()
    except Exception as err:
        if any(w in str(err) for w in words):
            raise Unsupported(str(err)) from None
        raise
    raise AssertionError(f"is said not to be supported, and gave {show(got)}")


def same(got, want, what="it"):
    if got != want:
        raise AssertionError(f"{what} is {show(got)}, not {show(want)}")


def ok(got, what):
    if not got:
        raise AssertionError(what)


def fails(what, name):
    """Wants an error of a class, by its name or that of a class above it."""
    try:
        got = what()
    except Exception as err:
        if any(c.__name__ == name for c in type(err).__mro__):
            return err
        raise AssertionError(f"fails with {type(err).__name__}: {err}, not with {name}") from err
    raise AssertionError(f"gave {show(got)} instead of {name}")


def until(what, ask, seconds=60):
    """Asks again until the answer is true. Only its bound is a time."""
    end, last = time.monotonic() + seconds, None
    while True:
        try:
            if ask():
                return
        except Exception as err:
            last = err
        if time.monotonic() > end:
            raise AssertionError(f"{what}: never" + (f", the last time for {last}" if last else ""))
        time.sleep(0.05)


def show(value):
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)})"


# A case makes its sandboxes here, so that none is left.
made = []


def box(*args, of=Sandbox, **opts):
    s = of.create(*args, **opts)
    made.append(s.sandbox_id)
    return s


def keep(id):
    made.append(id)


def one(run):
    line = {"case": run.__name__, "status": "pass", "why": ""}
    try:
        run()
    except (Absent, Skipped, Unsupported) as err:
        status = {Absent: "absent", Skipped: "skip", Unsupported: "unsupported"}[type(err)]
        line.update(status=status, why=str(err))
    except Exception as err:
        line.update(status="fail", why=f"{type(err).__name__}: {err}\n{traceback.format_exc()}")
    for id in made:
        try:
            Sandbox.kill(id)
        except Exception:
            pass
    made.clear()
    return line


def run_all(only):
    for run in cases:
        if not only or run.__name__ in only.split(","):
            print(json.dumps(one(run)), flush=True)

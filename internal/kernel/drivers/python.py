"""Runs Python code that a host sends, and says how it ended. Follows python_streams.py in
the same program. See ../doc.go.

Both are compiled at every start, so what not every start needs is in python_more.py."""
import _ast
import _posixsubprocess
import _signal
import _thread
import builtins
import os
import resource
import sys
import time

FILE = "<cove>"
AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
TREE = 0x400  # ast.PyCF_ONLY_AST
SOURCES = 256  # cells whose source a traceback can show
SOURCE = 1 << 20  # characters of one
SIGNALS = range(1, 32)
LEFT = 16  # processes of others that are not waited for
PLAIN = int, float, bool, complex  # their only form is their text

PID = os.getpid()
MORE = r(int(r(8)))  # with what has read this file


def before():
    """Puts right what earlier code may have broken."""
    if S.kids or S.left:
        reap()
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    if getattr(sys, "stdin", None) is None or sys.stdin.closed:
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # exit() closes it
    if S.stdout.closed or S.stderr.closed or None in (getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
        new_streams()
    if _signal.getsignal(_signal.SIGINT) is not interrupted:
        _signal.signal(_signal.SIGINT, interrupted)


def more():
    """What is in python_more.py."""
    if S.more is None:
        S.more = {"core": S.own, "S": S}
        try:
            by_ourselves(exec, compile(MORE, FILE, "exec"), S.more)
        except BaseException:
            S.more = None
            raise
    return S.more


def by_ourselves(do, *args):
    """Calls what may import modules: no file of the workspace is taken for ours."""
    path, sys.path = sys.path, S.path
    try:
        return do(*args)
    finally:
        sys.path = path


def system(command):
    """Execute the command in a subshell."""  # C's own is deaf to interrupts meanwhile
    flush()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", os.fsencode(command)], os.environ)
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # the code lets the kernel reap
        return -1
    except BaseException:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                os.kill(pid, _signal.SIGKILL)
                os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # the interrupt came when it had been waited for
        raise


def starts(module, name):
    """Has us tell the children of a function from those that others left us."""
    start = getattr(module, name)

    def started(*args, **options):
        reap()
        pid = start(*args, **options)
        S.kids.add(pid[0] if isinstance(pid, tuple) else pid)
        return pid
    started.__name__, started.__doc__ = name, start.__doc__
    setattr(module, name, started)


def reap():
    """Lets go of what was left to us by programs that ended: nobody else can, and it
    counts as processes. The latest ones stay, in case the code waits for any."""
    try:
        kids = []
        for task in os.listdir("/proc/self/task"):
            with open("/proc/self/task/%s/children" % task) as f:
                kids += map(int, f.read().split())
        S.kids.intersection_update(kids)
        left = [k for k in kids if k not in S.kids][:-LEFT]
        for k in left:
            os.waitpid(k, os.WNOHANG)
        S.left = bool(left)
    except OSError:
        pass  # one ended, or there is no such list


class Pyplot:
    """Has pyplot.show() show here, once somebody imports pyplot."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return more()["pyplot"](name, path, target) if name == "matplotlib.pyplot" else None


def no_input(prompt=""):
    raise EOFError("input() is not possible here: nobody can answer; put the value into the code")


def show(forms, kind=b"R"):
    words = []
    for mime, form in forms.items():
        words += mime, form
    return frame(kind, S.seq, fields(*words))


def forms_of(value):
    return {"text/plain": repr(value)} if type(value) in PLAIN else more()["forms_of"](value)


def display(*values, **_):
    """Shows values as if each of them were the last line."""
    flush()
    for v in values:
        f = show(forms_of(v))
        if not S.forked:
            send(out, 1, f)


def compiled(code, name):
    """The code, with a last expression apart."""
    tree = compile(code, name, "exec", TREE | AWAIT)
    last = []
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = [compile(_ast.Expression(tree.body.pop().value), name, "eval", AWAIT)]
        if not tree.body:
            return last
    return [compile(tree, name, "exec", AWAIT)] + last


def cell(code, name):
    """Runs code, and returns its value."""
    code = code.decode()
    if len(code) < SOURCE:
        S.sources[name] = len(code), None, code.splitlines(True), name
    parts = compiled(code, name)
    del code
    S.running = True
    if any(p.co_flags & 0x180 for p in parts):  # it awaits
        value = more()["wait_for"](parts)
    else:
        for p in parts:
            value = eval(p, S.main.__dict__)
    if value is None:
        return []
    builtins._ = value
    return show(forms_of(value), b"T")


def guarded(code, name):
    """Runs code, and returns its exit code and what there is to say."""
    frames, raised = [], None
    try:
        try:
            frames = cell(code, name)
            if "matplotlib.pyplot" in sys.modules:
                frames += more()["figures"]()
        finally:
            S.running = False
    except BaseException as e:
        S.running = False
        raised = e
    if raised is None:
        return 0, frames
    try:
        return more()["failed"](raised, name, frames)
    except BaseException:  # no memory, or nothing left to describe it with
        raised.__traceback__ = None  # with all that its frames hold
        return 1, frames + frame(b"E", S.seq, fields(type(raised).__name__, raised, "", 0))


def spent():
    own, kids = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own[0] + own[1] + kids[0] + kids[1], max(own[2], kids[2])


def run(seq, code):
    S.seq = seq
    name = "<cell %d>" % seq
    S.sources.pop("<cell %d>" % (seq - SOURCES), None)
    before()
    begun, _ = spent()
    was = lend(S.lent) if S.lent else None
    status, frames = guarded(code, name)
    flush()
    if was:
        lend(was)
        S.lent = {}
    if S.forked or os.getpid() != PID:
        os._exit(status)
    os.fstat(requests)
    now, peak = spent()
    S.last = None
    send(err, 2, frame(b"M", seq))
    send(out, 1, frames + frame(b"D", seq, fields(status, int((now - begun) * 1e6), peak)))


def lend(variables):
    """Sets variables, and returns what they were. None is one that is not there."""
    was = {k: S.environ.get(k) for k in variables}
    for k, v in variables.items():
        if v is not None:
            S.environ[k] = v
        else:
            S.environ.pop(k, None)
    if "TZ" in variables:
        time.tzset()
    return was


def lent(*words):
    words = [w.decode("utf-8", "surrogateescape") for w in words]
    S.lent = dict(zip(words[::2], words[1::2]))


def child():
    S.forked, S.lock, S.kids = True, _thread.RLock(), set()
    for fd in (requests, out, err):
        try:
            os.close(fd)
        except OSError:
            pass


def ways():
    """Where code imports from, before the standard library."""
    sys.path[:] = [""] + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p] + S.path
    home = os.environ.get("HOME")
    if home:
        sys.path.append("%s/.local/lib/python%d.%d/site-packages" % (home, *sys.version_info[:2]))


def begin(marker, warm, *modules):
    S.marker, S.own, S.main = marker, sys.modules["__main__"], type(sys)("__main__")
    new_streams()
    os.dup2(null, 0)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    _signal.signal(_signal.SIGINT, interrupted)
    os.register_at_fork(before=starting, after_in_child=child)
    sys.addaudithook(lambda event, _: starting() if event in STARTS else None)
    builtins.input, builtins.display, os.system = no_input, display, system
    for module, name in FORKS:
        starts(module, name)
    if "subprocess" in sys.modules:  # it was there before us
        sys.modules["subprocess"]._fork_exec = _posixsubprocess.fork_exec
    sys.meta_path.insert(0, Pyplot)
    os.environ.setdefault("MPLCONFIGDIR", "/tmp/.matplotlib")
    sys.modules["__main__"] = S.main
    sys.argv[:] = [""]
    if warm or modules:
        more()["warm"](bool(warm), [m.decode() for m in modules])
    ways()
    send(out, 1, frame(b"H", 0, fields(PID, os.getpgrp(), "%d.%d.%d" % sys.version_info[:3])))


# What starts processes, at the bottom.
FORKS = (os, "fork"), (os, "forkpty"), (os, "posix_spawn"), (os, "posix_spawnp"), (_posixsubprocess, "fork_exec")
# What starts programs: their output comes after what was printed before.
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"}


def adopt(*words):
    place, *words = (w.decode("utf-8", "surrogateescape") for w in words)
    os.environ.update(zip(words[::2], words[1::2]))
    time.tzset()
    ways()
    problem = ""
    try:
        os.chdir(place)
    except OSError as e:
        problem = e.strerror
    if "random" in sys.modules:
        sys.modules["random"].seed()
    send(out, 1, frame(b"A", 0, fields(problem)))


def answer():
    """Says that all requests before this one are done."""
    send(out, 1, frame(b"P", 0))


def receive(data):
    """The next request, and what was read after it."""
    while b"\n" not in data[:64]:
        if len(data) >= 64:
            raise ValueError
        data += fetch(1 << 16)
    head, _, data = data.partition(b"\n")
    kind, seq, size = head.split(b" ")
    seq, size = int(seq), int(size)
    if size < 0 or kind == b"X" and seq != S.seq + 1:
        raise ValueError
    parts, missing = [data], size - len(data)
    while missing > 0:
        parts.append(fetch(min(missing, 1 << 20)))
        missing -= len(parts[-1])
    data = b"".join(parts)
    return kind, seq, data[:size], data[size:]


def fetch(size):
    """Reads from the host. Handlers of the code's may raise while we wait, but must not
    have us forget what we read."""
    was = None
    while True:
        try:
            was = was or [_signal.pthread_sigmask(_signal.SIG_BLOCK, ())]
            waiting.poll()
            _signal.pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)
            break
        except BaseException as e:
            stray(e)
    data = os.read(requests, size)
    if not data:
        os._exit(0)  # the host is gone
    try:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, was[0])
    except BaseException as e:
        stray(e)
    return data


def stray(e):
    """Tells of what a handler of signals raised while none of its code ran."""
    if e.__traceback__.tb_next is None or S.forked:
        raise
    try:
        S.stderr.write(more()["describe"](e, "")[2])
    except Exception:
        pass


def serve():
    data = b""
    while True:
        try:
            kind, seq, body, data = receive(data)
            if kind == b"X":
                run(seq, body)
            else:
                {b"I": begin, b"A": adopt, b"V": lent, b"P": answer}[kind](*unfields(body))
        except OSError:
            give_up("its code closed the descriptors that drive it")
        except (KeyError, ValueError):
            give_up("its code wrote to the descriptor that drives it")
        except BaseException as e:  # an interrupt between two steps, or no memory
            if S.forked or os.getpid() != PID:
                os._exit(1)
            if not isinstance(e, KeyboardInterrupt):
                give_up("%s in its driver" % type(e).__name__)


serve()

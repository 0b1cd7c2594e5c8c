"""How Python's driver speaks with its host, and how what the code prints gets there in
order. Comes before python.py in the same program. See ../doc.go."""
import _thread
import fcntl
import io
import os
import select
import sys
import time

MOST = 4096  # of a frame

MAIN = _thread.get_ident()
requests, out, err = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 512) for fd in (0, 1, 2))
waiting = select.poll()
waiting.register(requests, select.POLLIN)
null = os.open(os.devnull, os.O_RDWR)
null, _ = fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, 512), os.close(null)


class State:
    marker = b""
    seq = 0
    running = False  # code is under way: an interrupt raises
    quiet = False  # frames are being written: an interrupt waits
    waiting = False
    struck = 0.0  # when an interrupt was raised
    forked = False
    point = 0
    last = None  # the descriptor that was written to last; 0: others write, too
    loop = None  # where code awaits
    more = None  # python_more.py, when it is there
    path = list(sys.path)  # of the standard library
    sources = {}
    lock = _thread.RLock()  # of who writes frames
    kids = set()  # processes that the code started
    left = False  # others left us more than a few
    lent = {}  # variables for the next run alone
    environ = os.environ


S = State()


def write_all(fd, data):
    """Writes all of data, also where somebody made the pipe non-blocking."""
    view = memoryview(data).cast("B")
    while view:
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            select.select([], [fd], [])


def fields(*texts):
    parts = []
    for t in texts:
        if not isinstance(t, bytes):
            t = str(t).encode("utf-8", "replace")
        parts += b"%d:" % len(t), t
    return b"".join(parts)


def unfields(data):
    texts, at = [], 0
    while at < len(data):
        colon = data.index(b":", at)
        at = colon + 1 + int(data[at:colon])
        texts.append(data[colon + 1:at])
    return texts


def frame(kind, seq, body=b""):
    """A message in frames that the kernel does not tear."""
    step = MOST - len(S.marker) - 32
    last = max(len(body) - 1, 0) // step * step
    frames = [b"%s%s %d %d\n%s" % (S.marker, kind.lower(), seq, step, body[at:at + step]) for at in range(0, last, step)]
    frames.append(b"%s%s %d %d\n%s" % (S.marker, kind, seq, len(body) - last, body[last:]))
    return frames


def send(fd, spare, frames):
    """Writes frames, as many at once as stay whole. Where the code has closed our
    descriptor, its own may still be the same pipe."""
    main = _thread.get_ident() == MAIN
    with S.lock:
        S.quiet = S.quiet or main
        try:
            data = b""
            for f in frames:
                if len(data) + len(f) > MOST:
                    put(fd, spare, data)
                    data = b""
                data += f
            put(fd, spare, data)
        finally:
            if main:
                S.quiet = False
    if main and S.waiting:
        S.waiting = False
        strike()


def put(fd, spare, data):
    try:
        write_all(fd, data)
    except OSError:
        write_all(spare, data)


def strike():
    if S.running:
        S.struck = time.monotonic()
        raise KeyboardInterrupt


def interrupted(signum, at):
    if not S.running or time.monotonic() - S.struck < 0.05:
        return
    if S.quiet:
        S.waiting = True
    else:
        strike()


def give_up(why):
    """Last words."""
    try:
        send(out, 1, frame(b"L", 0, fields(why)))
    finally:
        os._exit(1)


class Stream(io.BufferedIOBase):
    """What sys.stdout and sys.stderr write to: the descriptor, at once. It tells the
    host in which order the two were written."""

    def __init__(self, fd, name):
        self.fd, self.name, self.mode = fd, name, "wb"

    def fileno(self):
        return self.fd

    def writable(self):
        return True

    def write(self, data):
        if S.last != self.fd:
            self.turn()
        write_all(self.fd, data)
        return len(data)

    def turn(self):
        was, S.last = S.last, self.fd
        if was is not None:
            point(self.fd)


def point(fd):
    """Says that what follows on a descriptor comes after all that was written to the
    other one."""
    if S.forked:
        return
    S.point += 1
    there, here = ((out, 1), (err, 2)) if fd == 2 else ((err, 2), (out, 1))
    try:
        send(*there, frame(b"B", S.point))
        send(*here, frame(b"W", S.point))
    except OSError:
        pass  # the output itself says what is wrong


def new_streams():
    for fd, name, errors in ((1, "stdout", "surrogateescape"), (2, "stderr", "backslashreplace")):
        s = io.TextIOWrapper(Stream(fd, "<%s>" % name), "utf-8", errors, line_buffering=True)
        s.mode = "w"
        for where in ((sys, name), (sys, "__%s__" % name), (S, name)):
            setattr(*where, s)


def flush():
    for name in ("stdout", "stderr"):
        for s in {getattr(sys, name, None), getattr(S, name)}:
            try:
                s.flush()
            except Exception:
                pass


def starting():
    """Puts what a process will write after what was printed before it, and before what
    is printed next."""
    flush()
    for fd in {1: (2,), 2: (1,), 0: (1, 2)}.get(S.last, ()):
        point(fd)
    S.last = 0

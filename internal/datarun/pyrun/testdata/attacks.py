# What code over data tries once it has every builtin: result_rows has what came of each.
# OUTSIDE is a directory that it may not touch, and PID a process of another user.
import ctypes, fcntl, mmap, os, signal, socket, struct, subprocess, threading, _thread

X86 = os.uname().machine == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def raw(x86, arm, *args):
    got = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in (x86 if X86 else arm, *args)))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def forked(fork):
    pid = fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def in_thread(do):
    """What comes of it in a thread that starts now."""
    raised = []
    def run():
        try:
            do()
        except BaseException as e:
            raised.append(e)
    t = threading.Thread(target=run)
    t.start()
    t.join()
    if raised:
        raise raised[0]


def spawned(path, argv):
    os.waitpid(os.posix_spawn(path, argv, {}), 0)


def system():
    if libc.system(b"true"):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def machine_code():
    """Calls fork by instructions of its own, as no library does."""
    if not X86:
        return forked(lambda: raw(57, 220, 17, 0, 0, 0, 0))
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b8390000000f05c3"))  # mov eax, 57; syscall; ret
    call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    def fork():
        pid = call()
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid
    forked(fork)


def listed(path):
    if not os.listdir(path):
        raise OSError(2, "nothing is listed")


def read(path):
    with open(path, "rb") as f:
        return f.read(1)


def attributes(path):
    with open(path, "rb") as f:
        fcntl.ioctl(f, 0x40086602, struct.pack("l", 0x40))


def write(path, mode="w"):
    with open(path, mode) as f:
        f.write("x")


PROCESSES = {
    "fork": lambda: forked(os.fork),
    "fork by its number": lambda: forked(lambda: raw(56, 220, 17, 0, 0, 0, 0)),
    "fork by machine code": machine_code,
    "fork in a thread": lambda: in_thread(lambda: forked(os.fork)),
    "subprocess": lambda: subprocess.run(["/bin/true"]),
    "system": system,
    "posix_spawn": lambda: spawned("/bin/true", ["true"]),
    "popen": lambda: os.popen("true").close(),
    "ptrace": lambda: raw(101, 117, 16, PID, 0, 0),
    "memory of others": lambda: raw(310, 270, PID, (ctypes.c_long * 2)(), 0, (ctypes.c_long * 2)(), 0, 0),
    "signal": lambda: os.kill(PID, 0),
    "signal in a thread": lambda: in_thread(lambda: os.kill(PID, 0)),
    "internet": lambda: socket.socket(socket.AF_INET).close(),
    "unix socket": lambda: socket.socket(socket.AF_UNIX).close(),
    "unix datagrams": lambda: [s.close() for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)],
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "memory file": lambda: os.close(os.memfd_create("x")),
    "mode of the table": lambda: os.chmod(TABLE, 0o600),
    "attributes of the table": lambda: attributes(TABLE),
    "shared memory": lambda: raw(29, 194, 0, 4096, 0o1600),
}
FILES = {
    "read a file of the system": lambda: read("/etc/passwd"),
    "read in a thread": lambda: in_thread(lambda: read("/etc/passwd")),
    "read by its number": lambda: os.close(raw(257, 56, -100, b"/etc/passwd", 0, 0)),
    "read through a link": lambda: (os.symlink("/etc/passwd", SCRATCH + "/link"), read(SCRATCH + "/link")),
    "read its own memory": lambda: read("/proc/self/maps"),
    "read the environment of others": lambda: read("/proc/%d/environ" % PID),
    "read another table": lambda: read(OUTSIDE + "/other.csv"),
    "list the system": lambda: listed("/etc"),
    "list another directory": lambda: listed(OUTSIDE),
    "write beside the table": lambda: write(OUTSIDE + "/planted"),
    "write over another table": lambda: write(OUTSIDE + "/other.csv", "a"),
    "remove another table": lambda: os.remove(OUTSIDE + "/gone.csv"),
    "make a directory": lambda: os.mkdir(OUTSIDE + "/made"),
    "link into the scratch": lambda: os.link(OUTSIDE + "/other.csv", SCRATCH + "/other.csv"),
    "write the table": lambda: write(TABLE, "a"),
}


def attempt(do):
    try:
        do()
    except BaseException as e:
        return "%s %s" % (type(e).__name__, getattr(e, "errno", ""))
    return "done"


result_rows = [[name, attempt(do)] for name, do in [*PROCESSES.items(), *FILES.items()]]
# An exec is tried last, since the interpreter would be gone.
try:
    EXEC and os.execv("/bin/true", ["true"])
except OSError as e:
    result_rows.append(["exec", "%s %s" % (type(e).__name__, e.errno)])
result_columns = ["name", "outcome"]

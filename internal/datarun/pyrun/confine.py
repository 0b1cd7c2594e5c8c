# Has the kernel keep this process, and the code that it runs next, from all but libraries,
# the tables and a directory to write to: by landlock, which is about files, and by a filter
# of system calls. Neither can be undone. Comes in the same program as tables.py, and runs
# when the tables are loaded and before the code.
import ctypes
import os
import stat
import struct
import tempfile

LIBRARIES = [
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/etc/ld.so.cache", "/etc/localtime", "/etc/matplotlibrc",
    "/etc/fonts", "/dev/urandom",
]

# Landlock's calls, and its rights in bits: how many there are from each version on.
CREATE, ADD, RESTRICT = 444, 445, 446
RIGHTS = 13, 14, 15, 15, 16
WRITE, READ, LIST, TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
SCRATCH = WRITE | READ | LIST | TRUNCATE | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13  # files, directories and links

# What the filter refuses: the numbers of calls on x86_64 and aarch64.
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
REFUSED = {
    # Processes, and what others of them have.
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "socket": (41, 198), "mq_open": (240, 180), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    # Files that landlock does not know, and changes of files that it does not refuse.
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "open_by_handle_at": (304, 265), "truncate": (76, 45),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
}
MISSING = {"clone3": (435, 435), "io_uring_setup": (425, 425)}  # libraries do without a call that is not there
STREAMS = {"socketpair": (53, 199)}  # connected to each other; others could reach any socket in the file system
OWN = {"kill": (62, 129), "tgkill": (234, 131)}  # to itself alone
CLONE, SECCOMP, IOCTL = (56, 220), (317, 277), (16, 29)
ATTRIBUTES = 0x40086602, 0x40046602, 0x401C5820  # what ioctl changes of files that are open to be read
CLONE_THREAD = 0x10000
QUIET = 1 | 4  # what is refused is not for the log of the host
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x50001, 0x50026


class Unconfined(Exception):
    """The kernel has landlock, and the code is not confined."""


class Confined:
    """Tells the host how far the code is confined."""

    def __init__(self, how):
        self.how = how

    def __repr__(self):
        return ""

    def _repr_mimebundle_(self):
        return {"application/vnd.cove.run+json": json.dumps({"confined": self.how})}


def confine(files, scratch):
    """Confines the process, and returns how far: a kernel without landlock has no rules for files."""
    if scratch:
        os.mkdir(scratch, 0o700)
        os.environ.update(TMPDIR=scratch, MPLCONFIGDIR=scratch)
        tempfile.tempdir = scratch
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(*map(ctypes.c_long, (CREATE, 0, 0, 1)))
    try:
        ask(libc.prctl, 38, 1, 0, 0, 0)  # no new privileges: neither can be put up without
        if version > 0:
            restrict(libc.syscall, version, files, scratch)
        refuse(libc.syscall)
    except Exception as e:
        if version > 0:
            raise Unconfined(str(e)) from None
    return "hard" if version > 0 else "soft"


def ask(call, *args):
    got = call(*(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def restrict(call, version, files, scratch):
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:  # it binds the one that asks
        raise Unconfined("its interpreter has %d threads, and should have one before the code runs" % threads)
    handled = (1 << RIGHTS[min(version, len(RIGHTS)) - 1]) - 1
    attr = struct.pack("=QQQ", handled, 0, 2 if version >= 6 else 0)  # files, and signals that are asked for by fcntl
    ruleset = ask(call, CREATE, attr, len(attr), 0)
    rules = [(p, READ | LIST) for p in [*LIBRARIES, *libraries(), *files]] + [(os.devnull, READ | WRITE | TRUNCATE), (scratch, SCRATCH)]
    for path, allowed in rules:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # it cannot be opened
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= READ | WRITE | TRUNCATE
        ask(call, ADD, ruleset, 1, struct.pack("=Qi", allowed & handled, fd), 0)
        os.close(fd)
    ask(call, RESTRICT, ruleset, QUIET if version >= 7 else 0)
    os.close(ruleset)


def libraries():
    """Where this interpreter has its own."""
    return sys.path + [os.path.join(p, "lib") for p in {sys.prefix, sys.base_prefix}]


def refuse(call):
    which, machine = MACHINES[os.uname().machine]
    text = op(0x20, 4) + op(0x15, machine, 1, 0) + op(0x06, EPERM)  # calls of another kind of machine
    text += op(0x20, 0) + op(0x35, 0x40000000, 0, 1) + op(0x06, ENOSYS)  # x32
    for calls, answer in (REFUSED, EPERM), (MISSING, ENOSYS):
        for numbers in calls.values():
            if numbers[which] is not None:
                text += op(0x15, numbers[which], 0, 1) + op(0x06, answer)
    # Some bit of the first argument is set, or it is equal.
    for number, jump, value in (CLONE, 0x45, CLONE_THREAD), *((n, 0x15, os.getpid()) for n in OWN.values()):
        text += op(0x15, number[which], 0, 4) + op(0x20, 16) + op(jump, value, 1, 0) + op(0x06, EPERM) + op(0x06, ALLOW)
    for numbers in STREAMS.values():
        text += op(0x15, numbers[which], 0, 7) + op(0x20, 16) + op(0x15, 1, 0, 4)  # of the family unix,
        text += op(0x20, 24) + op(0x54, 15) + op(0x15, 1, 0, 1) + op(0x06, ALLOW) + op(0x06, EPERM)  # and streams
    text += op(0x15, IOCTL[which], 0, 2 + 2 * len(ATTRIBUTES)) + op(0x20, 24)
    for value in ATTRIBUTES:
        text += op(0x15, value, 0, 1) + op(0x06, EPERM)
    text += op(0x06, ALLOW)  # of ioctl, and then of all else
    text += op(0x06, ALLOW)
    text = ctypes.create_string_buffer(text, len(text))
    if ask(call, SECCOMP[which], 1, 1, struct.pack("HP", len(text) // 8, ctypes.addressof(text))):  # for all threads
        raise Unconfined("the filter is not put over all threads")


def op(code, value, yes=0, no=0):
    """An instruction of a filter."""
    return struct.pack("=HBBI", code, yes, no, value)

# Imports the modules that it is called with, and waits. What goes on from here may be
# one of many copies, in a sandbox each, which have nothing but this in common. The
# first line of its input says how many processes may be, and how much code follows;
# then it is as if it had been started with the code.
def ahead():
    import gc
    import os
    import resource
    import sys

    os.environ.setdefault("MPLCONFIGDIR", "/tmp/.matplotlib")  # as the code's driver has it
    for name in sys.argv[1:]:
        try:
            __import__(name)
        except Exception:
            pass  # the code learns why
    if "numpy" in sys.modules:
        import numpy.random
    import random
    sys.argv[:] = ["-c"]
    gc.collect()
    gc.freeze()
    os.write(1, b"+")

    def read(size):
        data = b""
        while len(data) < size:
            part = os.read(0, size - len(data))
            if not part:
                os._exit(0)
            data += part
        return data

    head = b""
    while not head.endswith(b"\n"):
        head += read(1)
    processes, size = map(int, head.split())
    if processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    random.seed()
    if "numpy" in sys.modules:
        numpy.random.seed()
    return read(size)


code = ahead()
del ahead
exec(compile(globals().pop("code"), "<string>", "exec"))

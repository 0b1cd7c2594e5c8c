import threading

from e2b import PtySize

from suite import NEW, absent, box, fails, ok, same, show, test, unsupported, until

background = {"background": True, "timeout": 0}


class Waited:
    """Waits for a command in a thread, as programs do that go on meanwhile."""

    def __init__(self, handle):
        self.out, self.err, self.pty, self.end, self.problem = "", "", b"", None, None
        self.thread = threading.Thread(target=self.wait, args=(handle,), daemon=True)
        self.thread.start()

    def wait(self, handle):
        try:
            self.end = handle.wait(on_pty=self.on_pty, on_stdout=self.on_out)
        except Exception as err:
            self.problem = err

    def on_pty(self, data):
        self.pty += bytes(data)

    def on_out(self, data):
        self.out += data


@test
def run():
    s = box()
    out, err = [], []
    got = s.commands.run("echo out; echo err >&2", on_stdout=out.append, on_stderr=err.append)
    same((got.stdout, got.stderr, got.exit_code), ("out\n", "err\n", 0), "result")
    same(("".join(out), "".join(err)), ("out\n", "err\n"), "what was streamed")


@test
def run_fail():
    s = box()
    err = fails(lambda: s.commands.run("echo why >&2; exit 3"), "CommandExitException")
    same((err.exit_code, err.stderr), (3, "why\n"), "result")


@test
def run_env_cwd_user():
    s = box(envs={"A": "create", "B": "create"})
    got = s.commands.run("echo $A $B $PWD $HOME", envs={"B": "command"}, cwd="/tmp", user="user")
    same(got.stdout, "create command /tmp /home/user\n", "stdout")
    same(s.commands.run("pwd; cd; pwd").stdout, "/home/user\n/home/user\n", "where it starts")


@test
def run_root():
    s = box()
    unsupported(lambda: s.commands.run("id", user="root"), ["one user"])


@test
def run_timeout():
    s = box()
    fails(lambda: s.commands.run("exec sleep 1000", timeout=2), "TimeoutException")
    until("the deadline kills it", lambda: not s.commands.list())


@test
def run_disconnect():
    s = box()
    h = s.commands.run("sleep 1000", **background)
    h.disconnect()
    same([p.pid for p in s.commands.list()], [h.pid], "what runs")
    same(s.commands.kill(h.pid), True, "kill")


@test
def background_run():
    s = box()
    h = s.commands.run("echo one; read line; echo $line", stdin=True, **background)
    s.commands.send_stdin(h.pid, "two\n")
    got = h.wait()
    same((got.stdout, got.exit_code), ("one\ntwo\n", 0), "result")


background_run.__name__ = "background"


@test
def stdin():
    s = box()
    h = s.commands.run("cat", stdin=True, **background)
    w = Waited(h)
    s.commands.send_stdin(h.pid, "ünï\n")
    until("it comes back", lambda: w.out == "ünï\n")
    same(h.kill(), True, "kill")


@test
def close_stdin():
    absent(NEW)
    s = box()
    h = s.commands.run("wc -c", stdin=True, **background)
    s.commands.send_stdin(h.pid, "12345")
    s.commands.close_stdin(h.pid)
    same(h.wait().stdout.strip(), "5", "stdout")


@test
def stream_input():
    s = box()
    absent(hasattr(s.commands, "stream_input"))
    h = s.commands.run("wc -c", stdin=True, **background)
    s.commands.stream_input(h.pid, ["x" * 1000 for _ in range(50)])
    s.commands.close_stdin(h.pid)
    same(h.wait().stdout.strip(), "50000", "stdout")


@test
def kill_command():
    s = box()
    h = s.commands.run("sleep 1000", **background)
    same(s.commands.kill(h.pid), True, "kill")
    err = fails(h.wait, "SandboxException")
    ok(getattr(err, "exit_code", 1) != 0, "it ended well")
    same((s.commands.kill(h.pid), s.commands.kill(999999)), (False, False), "kill of nothing")


@test
def list_commands():
    s = box()
    h = s.commands.run("sleep 1000", cwd="/tmp", envs={"A": "1"}, **background)
    got = [(p.pid, p.cmd, list(p.args), p.cwd) for p in s.commands.list()]
    same(got, [(h.pid, "/bin/bash", ["-l", "-c", "sleep 1000"], "/tmp")], "what runs")
    h.kill()


@test
def connect_command():
    s = box()
    h = s.commands.run("read line; echo got $line", stdin=True, **background)
    h.disconnect()
    again = s.commands.connect(h.pid, timeout=0)
    s.commands.send_stdin(h.pid, "it\n")
    got = again.wait()
    same((got.stdout, got.exit_code), ("got it\n", 0), "result")


@test
def big_output():
    s = box()
    got = s.commands.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    same((len(got.stdout), got.stdout[-5:]), (3000005, "\nend\n"), "stdout")


@test
def runes():
    s = box()
    got = s.commands.run("for i in $(seq 20000); do printf 'aé€😀'; done").stdout
    ok(got == "aé€😀" * 20000, f"a rune was split: {len(got)} characters, {got.count(chr(0xFFFD))} replaced")


def terminal(s):
    h = s.pty.create(PtySize(rows=24, cols=80), timeout=0)
    return h, Waited(h)


@test
def pty():
    s = box()
    h, w = terminal(s)
    s.pty.send_stdin(h.pid, b"echo $((6*7)) $TERM\n")
    until("its answer", lambda: b"42 xterm" in w.pty)
    same(s.pty.kill(h.pid), True, "kill")
    until("it is gone", lambda: not s.commands.list())


@test
def pty_resize():
    s = box()
    h, w = terminal(s)
    s.pty.resize(h.pid, PtySize(rows=31, cols=101))
    s.pty.send_stdin(h.pid, b"stty size; exit\n")
    until("its answer", lambda: b"31 101" in w.pty)


@test
def pty_connect():
    absent(NEW)
    s = box()
    h = s.pty.create(PtySize(rows=24, cols=80), timeout=0)
    h.disconnect()
    again = s.pty.connect(h.pid, timeout=0)
    w = Waited(again)
    s.pty.send_stdin(h.pid, b"echo $((6*7))\n")
    until("its answer", lambda: b"42" in w.pty)
    again.kill()


@test
def many_runs():
    s = box()
    for i in range(100):
        got = s.commands.run(f"echo {i}").stdout
        same(got, f"{i}\n", f"run {i}: {show(got)}")

import base64

from e2b_code_interpreter import Sandbox

from suite import absent, box, fails, ok, same, show, test, unsupported

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"


def made(**opts):
    return box(of=Sandbox, **opts)


@test
def run_code():
    s = made()
    s.run_code("x = 41")
    got = s.run_code("x + 1")
    same((got.text, len(got.results), got.results[0].is_main_result, got.error), ("42", 1, True, None), "result")
    same(s.run_code('"text"').text, "text", "a string")
    ok(got.execution_count >= 2, f"it ran {got.execution_count} times")


@test
def code_stream():
    s = made()
    out, err, results = [], [], []
    got = s.run_code(
        'import sys\nprint("out")\nprint("err", file=sys.stderr)\n7',
        on_stdout=lambda m: out.append(m.line), on_stderr=lambda m: err.append(m.line), on_result=results.append,
    )
    same(("".join(got.logs.stdout), "".join(got.logs.stderr)), ("out\n", "err\n"), "logs")
    same(("".join(out), "".join(err), len(results)), ("out\n", "err\n", 1), "what was streamed")


@test
def code_runes():
    s = made()
    got = s.run_code('print("aé€😀" * 20000)')
    ok("".join(got.logs.stdout) == "aé€😀" * 20000 + "\n", "a rune was split")


@test
def code_env():
    s = made(envs={"A": "create", "B": "create"})
    read = 'import os\nos.environ.get("A", "-") + " " + os.environ.get("B", "-")'
    same(s.run_code(read, envs={"B": "run"}).text, "create run", "in the run")
    same(s.run_code(read).text, "create create", "after it")


@test
def code_files():
    s = made()
    s.files.write("numbers.txt", "1 2 3")
    same(s.run_code('sum(map(int, open("numbers.txt").read().split()))').text, "6", "relative")
    same(s.run_code('open("/home/user/numbers.txt").read()').text, "1 2 3", "by its whole name")


@test
def code_error():
    s = made()
    error = s.run_code('print("before")\n1/0').error
    same((error.name, error.value), ("ZeroDivisionError", "division by zero"), "error")
    ok("ZeroDivisionError" in error.traceback, f"traceback: {show(error.traceback)}")


@test
def code_png():
    s = made()
    got = s.run_code(PLOT)
    png = next((r.png for r in got.results if r.png), None)
    ok(png, f"no picture: {show(got)}")
    same(base64.b64decode(png)[1:4], b"PNG", "what it is")


@test
def code_chart():
    s = made()

    def chart():
        found = next((r.chart for r in s.run_code(PLOT).results if r.chart), None)
        if not found:
            raise RuntimeError("no chart")
        return found

    unsupported(chart, ["no chart"])


@test
def code_data():
    s = made()
    got = s.run_code('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})')
    same(got.results[0].data, {"a": [1, 2], "b": ["x", "y"]}, "data")
    ok("<table" in got.results[0].html, "no table")


@test
def code_js():
    s = made()
    s.run_code("let y = 20", language="javascript")
    same(s.run_code("y * 2 + 2", language="js").text, "42", "text")


@test
def code_bash():
    s = made()
    same("".join(s.run_code("echo $((6*7))", language="bash").logs.stdout), "42\n", "stdout")


@test
def code_other():
    s = made()
    unsupported(lambda: s.run_code("1 + 1", language="r"), ["no interpreter"])


@test
def contexts():
    s = made()
    context = s.create_code_context(language="python", cwd="/tmp")
    s.run_code("z = 5")
    same(s.run_code('import os\n"z" in globals(), os.getcwd()', context=context).text, "(False, '/tmp')", "what another context sees")
    same(context.cwd, "/tmp", "cwd")


@test
def context_list():
    absent(hasattr(Sandbox, "list_code_contexts"))
    s = made()
    context = s.create_code_context()
    ids = [c.id for c in s.list_code_contexts()]
    ok(context.id in ids, f"{context.id} is not in {show(ids)}")
    s.remove_code_context(context)
    ok(context.id not in [c.id for c in s.list_code_contexts()], "it is still there")


@test
def context_restart():
    absent(hasattr(Sandbox, "restart_code_context"))
    s = made()
    context = s.create_code_context()
    s.run_code("z = 5", context=context)
    s.restart_code_context(context)
    same(s.run_code('"z" in globals()', context=context).text, "False", "what is left")


@test
def code_disconnect():
    s = made()
    s.run_code("x = 1")
    fails(lambda: s.run_code("import time\nwhile True: time.sleep(0.01)", timeout=2), "TimeoutException")
    same(s.run_code("x + 1").text, "2", "what it remembers after")

"""Python as a tool for a model: every error is a text that it can act on."""

from cove import get_sandbox, run_python_code

print(run_python_code("print(sum(range(10)))", timeout=20))
print("---")
print(run_python_code("print(1", timeout=20).splitlines()[0])
print("---")
print(run_python_code("import subprocess", timeout=20).splitlines()[0])
print("---")
print(run_python_code("while True: pass", timeout=1).splitlines()[0])
print("---")
with get_sandbox() as sandbox:
    result = sandbox.execute("import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\nsys.exit(3)", timeout=20)
    print(repr(result.stdout), repr(result.stderr), result.exit_code, result.duration > 0, result.meta["timed_out"])

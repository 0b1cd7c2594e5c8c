"""The shortest of all: one sandbox, one program, one file, code that remembers."""

from cove import Sandbox

with Sandbox.create() as sandbox:
    print(sandbox.commands.run("echo hello from a sandbox").stdout, end="")
    sandbox.files.write("notes.txt", "files stay\n")
    print(sandbox.commands.run("cat notes.txt").stdout, end="")
    sandbox.code.run("x = 41")
    print(sandbox.code.run("x + 1").text)

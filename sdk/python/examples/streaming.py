"""Output while it comes, a program in the background, and a terminal."""

from cove import Sandbox

with Sandbox.create() as sandbox:
    sandbox.commands.run("for i in 1 2 3; do echo step $i; done", on_stdout=lambda text: print(text, end=""))
    server = sandbox.commands.start("read question; echo answer to $question", keep_stdin=True)
    server.send_stdin("everything\n", eof=True)
    with server.output() as output:
        print("background:", b"".join(piece.data for piece in output).decode().strip())
    terminal = sandbox.terminals.create(cols=100, rows=30)
    terminal.send_stdin("stty size; exit\n")
    print("terminal:", "30 100" in terminal.wait().stdout)

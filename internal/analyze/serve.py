# Reads code and tells what is in it. Follows facts.py in the same program.
#
# A request on standard input is a length, the word facts where they are wanted in
# place of the imports, a newline and the code. The answer on
# standard output is a length, a newline and JSON. A child looks at each request,
# so that code that breaks the parser breaks nothing else, and nothing of one
# request is there for the next.
import json
import os
import resource
import signal

MOST_BYTES = 16 << 20    # of code
MOST_ANSWER = 1 << 20    # of an answer
MEMORY = 224 << 20       # of a child
SECONDS = 2              # of the CPU, for a child
FACTS = b"facts"


def report(code, kind):
    try:
        tree = parse(code.decode())
    except UnicodeDecodeError as e:
        return {"syntax": mistake(ValueError("the code is not UTF-8: byte %d cannot be read" % e.start))}
    except (SyntaxError, ValueError) as e:
        return {"syntax": mistake(e)}
    except (MemoryError, RecursionError):
        return {"unread": "it is too large or too deeply nested"}
    try:
        return facts(tree) if kind == FACTS else {"imports": trimmed(Finder(tree, MOST_LITERALS).find())}
    except (MemoryError, RecursionError):
        return {"unread": "it is too large or too deeply nested"}


def child(code, kind, out):
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
    answer = json.dumps(report(code, kind)).encode()
    with open(out, "wb") as f:
        f.write(answer)


def ask(code, kind):
    """Has a child look at code, and returns its answer."""
    sys.stdout.flush()
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.close(r)
            child(code, kind, w)
            status = 0
        finally:
            os._exit(status)
    os.close(w)
    with open(r, "rb") as f:
        answer = f.read(MOST_ANSWER + 1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return b'{"unread": "it took too long"}'
    if status != 0 or not 0 < len(answer) <= MOST_ANSWER:
        return b'{"unread": "the parser broke on it"}'
    return answer


def serve(requests, answers):
    while True:
        line = requests.readline(32)
        if not line:
            return
        size, _, kind = line.strip().partition(b" ")
        size = int(size)
        if not 0 <= size <= MOST_BYTES or kind not in (b"", FACTS):
            return
        code = requests.read(size)
        if len(code) != size:
            return
        answer = ask(code, kind)
        answers.write(b"%d\n" % len(answer) + answer)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

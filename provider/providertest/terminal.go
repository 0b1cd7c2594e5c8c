package providertest

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

func terminalTests() []test {
	return []test{
		{"has_a_size", terminalSize},
		{"resize", terminalResize},
		{"resize_tells_the_program", terminalWinch},
		{"is_a_terminal", terminalIs},
		{"output_is_merged_and_cooked", terminalOutput},
		{"echoes_what_is_typed", terminalEcho},
		{"end_of_input_by_key", terminalEOF},
		{"interrupt_by_key", terminalInterrupt},
		{"interrupt_can_be_caught", terminalTrap},
		{"resize_without_one_is_unsupported", terminalNone},
	}
}

// terminal starts a program on a terminal of 80 columns and 24 rows.
func (e *env) terminal(s cove.Sandbox, cmd cove.Command) *interactive {
	e.Helper()
	cmd.TTY = &cove.WindowSize{Cols: 80, Rows: 24}
	return e.interact(s, cmd)
}

func (e *env) terminalSandbox() cove.Sandbox {
	e.Helper()
	e.needsPower(cove.PowerTerminal)
	return e.sandbox()
}

func terminalSize(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, cove.Command{Argv: []string{"stty", "size"}})
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, p.out.String(), "24 80\r\n", "the size")
}

func terminalResize(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, shell("stty -echo; stty size; read line; stty size"))
	p.out.until("24 80\r\n")
	e.must(p.Resize(e.ctx(), cove.WindowSize{Cols: 132, Rows: 50}), "resize")
	e.wants(cove.Invalid, p.Resize(e.ctx(), cove.WindowSize{}), "a size of nothing")
	p.send("go\n")
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, p.out.String(), "24 80\r\n50 132\r\n", "the sizes")
	e.wants(cove.NotFound, p.Resize(e.ctx(), cove.WindowSize{Cols: 1, Rows: 1}), "resizing after the end")
}

func terminalWinch(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, shell("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"))
	p.out.until("ready")
	e.must(p.Resize(e.ctx(), cove.WindowSize{Cols: 100, Rows: 30}), "resize")
	p.out.until("30 100\r\n")
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func terminalIs(e *env) {
	s := e.terminalSandbox()
	script := `for i in 0 1 2; do test -t $i && echo "$i yes" || echo "$i no"; done`
	p := e.terminal(s, shell(script))
	e.wait(p)
	equal(e, p.out.String(), "0 yes\r\n1 yes\r\n2 yes\r\n", "with a terminal")
	e.prints(s, "0 no\n1 no\n2 no\n", script)
}

func terminalOutput(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, shell("echo out; echo err >&2; printf 'a\\nb'"))
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, p.out.String(), "out\r\nerr\r\na\r\nb", "the output")
}

func terminalEcho(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, cove.Command{Argv: []string{"cat"}})
	p.send("hello\n")
	p.out.until("hello\r\nhello\r\n")
	p.send("wx\x7fy\r")
	p.out.until("\r\nwy\r\n") // backspace took the x, return ended the line
	p.send("\x04")
	e.ended(e.wait(p), cove.Exited, 0, "")
	silent := e.terminal(s, shell("stty -echo; echo ready; read line; echo \"got $line\""))
	silent.out.until("ready\r\n")
	silent.send("secret\n")
	e.wait(silent)
	if text := silent.out.String(); !strings.HasPrefix(text, "ready\r\ngot secret\r\n") {
		e.Errorf("without echo the output is %q", text)
	}
}

func terminalEOF(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, cove.Command{Argv: []string{"cat"}})
	p.send("no newline\x04")
	p.out.until("no newlineno newline")
	p.send("\x04")
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func terminalInterrupt(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, cove.Command{Argv: []string{"cat"}})
	p.send("up\n")
	p.out.until("up\r\nup\r\n")
	p.send("\x03")
	e.ended(e.wait(p), cove.Signaled, 130, "INT")
}

func terminalTrap(e *env) {
	s := e.terminalSandbox()
	p := e.terminal(s, shell("trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done"))
	p.out.until("ready")
	p.send("\x03")
	p.out.until("caught\r\n")
	e.ended(e.wait(p), cove.Exited, 4, "")
}

func terminalNone(e *env) {
	s := e.sandbox()
	p := e.interact(s, cove.Command{Argv: []string{"cat"}})
	e.wants(cove.Unsupported, p.Resize(e.ctx(), cove.WindowSize{Cols: 10, Rows: 10}), "resizing without a terminal")
	e.must(p.in.Close(), "close the input")
	e.wait(p)
}

package providertest

import (
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
)

func killTests() []test {
	return []test{
		{"ends_the_program", killEnds},
		{"ends_the_whole_tree", killTree},
		{"ends_what_survived_the_program", killSurvivors},
		{"twice", killTwice},
		{"unblocks_a_program_that_reads", killReader},
		{"leaves_other_programs_alone", killOthers},
	}
}

func killEnds(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell("trap '' TERM INT HUP; echo ready; sleep 1000; sleep 1000"))
	p.out.until("ready")
	e.must(p.Kill(e.ctx()), "kill")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
	equal(e, p.out.String(), "ready\n", "the output")
}

// family starts children of several kinds and prints their numbers.
const family = `sleep 1000 & echo $!
(sleep 1000 & echo $!; wait) &
setsid sh -c 'echo $$; exec sleep 1000' &
nohup sh -c 'echo $$; exec sleep 1000' 2>/dev/null &
`

func killTree(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(family+"wait"))
	pids := e.family(p)
	e.must(p.Kill(e.ctx()), "kill")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
	for _, pid := range pids {
		e.gone(s, pid)
	}
}

// family waits for the four children.
func (e *env) family(p *interactive) []string {
	e.Helper()
	ctx := e.ctx()
	for {
		text := p.out.String()
		if pids := strings.Fields(text); strings.Count(text, "\n") == 4 {
			return pids
		}
		p.out.mu.Lock()
		changed := p.out.changed
		now := p.out.buf.String()
		p.out.mu.Unlock()
		if now != text {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			e.Fatalf("the children never came up: %q", text)
		}
	}
}

func killSurvivors(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell("sleep 1000 >/dev/null 2>&1 & echo $!"))
	e.ended(e.wait(p), cove.Exited, 0, "")
	pid := p.out.line()
	e.must(p.Kill(e.ctx()), "kill")
	e.gone(s, pid)
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func killTwice(e *env) {
	s := e.sandbox()
	p := e.start(s, cove.Command{Argv: []string{"sleep", "1000"}})
	e.must(p.Kill(e.ctx()), "kill")
	e.must(p.Kill(e.ctx()), "kill again")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
}

func killReader(e *env) {
	s := e.sandbox()
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	p := e.start(s, cove.Command{Argv: []string{"cat"}, Stdin: r})
	e.must(p.Kill(e.ctx()), "kill")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
}

func killOthers(e *env) {
	s := e.sandbox()
	a := e.interact(s, cove.Command{Argv: []string{"cat"}})
	b := e.start(s, cove.Command{Argv: []string{"sleep", "1000"}})
	e.must(b.Kill(e.ctx()), "kill")
	e.wait(b)
	a.send("still here\n")
	a.out.until("still here\n")
	e.must(a.in.Close(), "close the input")
	e.ended(e.wait(a), cove.Exited, 0, "")
}

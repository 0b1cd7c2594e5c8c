package providertest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

func leakTests() []test {
	return []test{
		{"nothing_is_left_after_close", leakNothing},
		{"twenty_rounds_do_not_add_up", leakRounds},
	}
}

// holdings is what this process has of each kind.
type holdings struct{ goroutines, descriptors, children int }

func measure() holdings {
	fds, _ := os.ReadDir("/proc/self/fd") // none where there is no /proc
	return holdings{runtime.NumGoroutine(), len(fds), children()}
}

// children counts the processes whose parent is this one.
func children() int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	n := 0
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		// The name of the program stands in parentheses and may hold anything.
		_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

func (h holdings) within(most holdings) bool {
	return h.goroutines <= most.goroutines && h.descriptors <= most.descriptors && h.children <= most.children
}

// settles waits until no more is held than before.
func (e *env) settles(before holdings) {
	e.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		now := measure()
		if now.within(before) {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			stacks := make([]byte, 1<<16)
			e.Fatalf("held before %+v, held now %+v (goroutines, descriptors, children)\n%s", before, now, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// busy uses a sandbox in every way that opens something, and leaves it to
// Destroy to end what runs.
func (e *env) busy(p cove.Provider) {
	e.Helper()
	s, err := p.Create(e.ctx(), cove.NewID(), e.spec())
	e.must(err, "create")
	e.write(s, "dir/file", "x")
	e.prints(s, "x", "cat dir/file | cat")
	for _, script := range []string{"sleep 1000", "sleep 1000 & sleep 1000 | cat & wait", "exec 3> open; sleep 1000", "while :; do :; done"} {
		_, err := s.Start(e.ctx(), shell(script))
		e.must(err, "start")
	}
	if e.hasPower(cove.PowerTerminal) {
		_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"cat"}, Stdin: reader("line\n"), TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
		e.must(err, "start on a terminal")
	}
	e.archive(s, ".")
	e.must(s.Destroy(e.ctx()), "destroy")
}

func leakNothing(e *env) {
	e.must(e.p.Close(), "close")
	before := measure()
	p := e.open(e.T)
	e.busy(p)
	e.must(p.Close(), "close")
	e.settles(before)
}

func leakRounds(e *env) {
	e.busy(e.p) // what is made once and kept is made now
	e.settles(measure().roomy())
	before := measure()
	for range 20 {
		e.busy(e.p)
	}
	e.settles(before.roomy())
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

// roomy allows for what a provider may keep at hand.
func (h holdings) roomy() holdings {
	return holdings{h.goroutines + 8, h.descriptors + 8, h.children + 2}
}

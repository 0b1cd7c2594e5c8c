package providertest

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// What is demanded of children that outlive their program: they may live on
// until Kill or Destroy, as on any machine, but they do not hold up the caller.
// Wait returns when the program itself has ended and what it wrote has been
// delivered; what a child writes to the caller's streams after that is lost.
func backgroundTests() []test {
	return []test{
		{"child_that_holds_the_output_does_not_block", backgroundHolds},
		{"output_before_the_end_is_kept", backgroundOutput},
		{"child_that_writes_later_harms_nobody", backgroundLater},
		{"destroy_ends_children", backgroundDestroy},
	}
}

func backgroundHolds(e *env) {
	s := e.sandbox()
	r := e.sh(s, "sleep 1000 & echo started; exit 3")
	equal(e, r.stdout, "started\n", "the output")
	e.ended(r.Result, cove.Exited, 3, "")
}

func backgroundOutput(e *env) {
	s := e.sandbox()
	r := e.sh(s, "(echo from the child) & wait; echo from the parent; sleep 1000 &")
	equal(e, r.stdout, "from the child\nfrom the parent\n", "the output")
	e.ended(r.Result, cove.Exited, 0, "")
}

func backgroundLater(e *env) {
	s := e.sandbox()
	out := e.live()
	p := e.start(s, cove.Command{Argv: []string{"sh", "-c", "(while :; do echo late; sleep 0.01; done) & echo on time"}, Stdout: out})
	e.ended(e.wait(p), cove.Exited, 0, "")
	before := out.String()
	if !strings.Contains(before, "on time\n") {
		e.Errorf("the output is %q", before)
	}
	e.prints(s, "", "sleep 0.1")
	equal(e, out.String(), before, "the output after Wait")
}

func backgroundDestroy(e *env) {
	s := e.sandbox()
	e.sh(s, "sleep 1000 & setsid sleep 1000 & exit 0")
	e.must(s.Destroy(e.ctx()), "destroy")
}

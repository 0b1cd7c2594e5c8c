package policy_test

import (
	"reflect"
	"testing"

	"github.com/cove-sandbox/cove"
)

// FuzzLine judges any line as a line and as an argument: the answer is complete, and
// the same each time. What the kernel makes of a line that passes is fuzzed in
// provider/local (FuzzSpecialVariables).
func FuzzLine(f *testing.F) {
	for _, line := range honest {
		f.Add(line)
	}
	for _, e := range refused {
		f.Add(e.line)
	}
	p := agentBash(f)
	f.Fuzz(func(t *testing.T, line string) {
		for _, req := range []cove.ExecRequest{{Line: line}, {Argv: []string{"find", ".", "-exec", line, ";"}}} {
			a := run("")
			a.Exec = &req
			d := p.Decide(a)
			switch {
			case d.Programs == nil:
				t.Errorf("%q: the decision carries no programs", line)
			case d.Effect == cove.Deny && (d.Refusal == nil || d.Refusal.Rule == "" || d.Refusal.Reason == "" || len(d.Programs.Names) > 0):
				t.Errorf("%q: the refusal is not complete: %+v", line, d)
			case !reflect.DeepEqual(d, p.Decide(a)):
				t.Errorf("%q: judged a second time, it is something else", line)
			}
		}
	})
}

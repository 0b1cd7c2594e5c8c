package clustertest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/clustertest"
	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// TestExecutions reads what programs came to: one that did not tell its sandbox, or
// did not come to its end, is an error that the rules see.
func TestExecutions(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want history.Event
		bad  bool
	}{
		"read":       {body: `{"session_id":"a","outcome":"exited","stdout":"uuid\nn=1\nn"}`, want: history.Event{Session: "a", File: "f", Token: "uuid", Value: "n=1"}},
		"absent":     {body: `{"session_id":"a","outcome":"exited","exit_code":44,"stdout":"uuid\n"}`, want: history.Event{Session: "a", File: "f", Token: "uuid", Absent: true}},
		"no token":   {body: `{"session_id":"a","outcome":"exited","exit_code":44,"stdout":""}`, want: history.Event{Session: "a", File: "f", Absent: true}, bad: true},
		"another's":  {body: `{"session_id":"b","outcome":"exited","exit_code":44,"stdout":"uuid\n"}`, want: history.Event{Session: "a", File: "f", Token: "uuid", Absent: true, Other: "b"}},
		"no sandbox": {body: `{"session_id":"a","outcome":"exited","exit_code":90}`, want: history.Event{Session: "a"}, bad: true},
		"killed":     {body: `{"session_id":"a","outcome":"killed","exit_code":137}`, want: history.Event{Session: "a"}, bad: true},
		"no JSON":    {body: `exited`, want: history.Event{Session: "a", File: "f"}, bad: true},
	} {
		e := history.Event{Op: history.Exec, Session: "a", File: "f"}
		tt.want.Op = history.Exec
		if err := clustertest.Understand(&e, []byte(tt.body)); (err != nil) != tt.bad {
			t.Errorf("%s: %v", name, err)
		}
		if !cmp.Equal(e, tt.want) {
			t.Errorf("%s: %s", name, cmp.Diff(tt.want, e))
		}
	}
}

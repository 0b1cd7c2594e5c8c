package telemetry_test

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

// BenchmarkAction is what looking on costs an action: metrics and an event,
// without traces.
func BenchmarkAction(b *testing.B) {
	t, err := telemetry.New(telemetry.Config{Providers: []string{"fake"}})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	e := cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited, Began: now, Decided: now, Intended: now, Done: now, Ended: now}
	b.ReportAllocs()
	for b.Loop() {
		_, end := t.Begin(b.Context(), e.Observed)
		end(e)
	}
}

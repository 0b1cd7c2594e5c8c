package cove_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

func TestPricesOf(t *testing.T) {
	used := cove.Consumption{
		Held: 2 * time.Hour, MemoryTime: cove.MemoryTimeOf(4*cove.GiB, 2*time.Hour), CPU: 30 * time.Minute,
		Executions: 10, Up: cove.GiB / 2, Down: 3 * cove.GiB,
	}
	if got := (cove.Prices{CPUHour: 1}).Of(used); got != nil {
		t.Errorf("prices without a currency give %+v", got)
	}
	for name, c := range map[string]struct {
		prices cove.Prices
		want   float64
	}{
		"nothing":   {cove.Prices{}, 0},
		"session":   {cove.Prices{SessionHour: 1}, 2},
		"memory":    {cove.Prices{MemoryHour: 1}, 8},
		"cpu":       {cove.Prices{CPUHour: 1}, 0.5},
		"execution": {cove.Prices{Execution: 0.5}, 5},
		"up":        {cove.Prices{UpGB: 1}, 0.5},
		"down":      {cove.Prices{DownGB: 1}, 3},
		"all":       {cove.Prices{SessionHour: 1, MemoryHour: 1, CPUHour: 1, Execution: 1, UpGB: 1, DownGB: 1}, 24},
	} {
		c.prices.Currency = "EUR"
		if diff := cmp.Diff(&cove.Cost{Amount: c.want, Currency: "EUR"}, c.prices.Of(used)); diff != "" {
			t.Errorf("%s -want +got:\n%s", name, diff)
		}
	}
}

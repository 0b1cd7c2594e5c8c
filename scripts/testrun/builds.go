package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// builds adds up what go test did besides running tests, as its action graph says.
type builds struct{ compile, link time.Duration }

// add reads an action graph. Actions run at the same time: their sum is more than
// the time that passed.
func (b *builds) add(file string) error {
	data, err := os.ReadFile(file) //nolint:gosec // the caller made it
	if err != nil {
		return fmt.Errorf("read the action graph: %w", err)
	}
	var actions []struct {
		Mode                string
		TimeStart, TimeDone time.Time
	}
	if err := json.Unmarshal(data, &actions); err != nil {
		return fmt.Errorf("read the action graph: %w", err)
	}
	for _, a := range actions {
		switch took := a.TimeDone.Sub(a.TimeStart); a.Mode {
		case "build", "cover", "built-in package":
			b.compile += took
		case "link":
			b.link += took
		}
	}
	return nil
}

//go:build !lean

package daemon

import (
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/console"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/wire"
)

// consoleOf returns the console that the settings name or that this program has
// inside; nil where there is none.
func consoleOf(cfg config.Config) (httpapi.Console, error) {
	if named := cfg.Server.Console; named != "" {
		pages, err := console.Open(named)
		if err != nil {
			return nil, cove.InvalidField("COVE_CONSOLE", "%.200q cannot be used: %v", named, err).Remedy("unset it, or set it to what scripts/web.sh prints")
		}
		return pages, nil
	}
	pages, err := console.Embedded()
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the console inside cannot be used")
	}
	if pages == nil {
		return nil, nil //nolint:nilnil // a build need have none
	}
	return pages, nil
}

// journalCheck returns what /api/events/verify does: one check at a time, because
// it reads all that was ever written.
func journalCheck(home Home) func(context.Context) (wire.JournalCheck, error) {
	var one sync.Mutex
	return func(ctx context.Context) (wire.JournalCheck, error) {
		if !one.TryLock() {
			return wire.JournalCheck{}, cove.Errorf(cove.Conflict, "the journal is being checked for another caller").Remedy("wait a moment and ask again")
		}
		defer one.Unlock()
		v, err := Journal{Name: MainJournal, dir: home.Journal(), sign: home.database()}.Verify(ctx)
		return wire.JournalCheck{Lines: v.Lines, Problems: v.Problems}, err
	}
}

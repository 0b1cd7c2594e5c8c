package local

import (
	"context"
	"errors"
	"os"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// clearGroups removes the control groups of a provider whose directory was removed: no
// server will look for them there. Its keeper does this when it ends, and its sandboxes
// end with it, and what other providers of that server left empty beside them goes, too.
// While the directory exists, or is there again, the next server does it.
func clearGroups(dir, name, around string) {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) { //nolint:gosec // the argument of whoever started us
		return
	}
	groups, err := cgroup.Open(cgroup.Config{Name: name, Around: around})
	if err != nil {
		return // there are none
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	names, _ := groups.List()
	for _, name := range names {
		if g, err := groups.Group(name); err == nil {
			_ = g.Kill(ctx)   // what is left of a sandbox
			_ = g.Remove(ctx) // there is no caller to tell what stays
		}
	}
	_ = groups.CloseAround()
}

package local_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// TestVolumeSwapped swaps a volume and a link to what was not allowed while
// sandboxes are made: they show what was allowed, or nothing.
func TestVolumeSwapped(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	dir, other := offered(t, "shown/", "shown/f"), offered(t, "f")
	must(t, os.WriteFile(other+"/f", []byte("canary"), 0o600))
	must(t, os.Chmod(other+"/f", 0o666))
	must(t, os.Symlink(other, dir+"/link"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/shown", unix.AT_FDCWD, dir+"/link", unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	const often, enough = 200, 5
	made := 0
	for range often {
		if made == enough {
			break
		}
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir + "/shown", Target: "/data"}}})
		if err != nil {
			wants(t, cove.Invalid, err, "a volume that is a link by then")
			continue
		}
		made++
		if got := output(t, s, "cat /data/f /data/*"); strings.Contains(got, "canary") {
			t.Errorf("it shows %q", got)
		}
		must(t, s.Destroy(t.Context()))
	}
	t.Logf("%d sandboxes were made", made)
}

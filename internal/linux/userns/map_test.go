//go:build linux

package userns_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

func TestSwap(t *testing.T) {
	for name, c := range map[string]struct {
		inside, outside uint32
		want            []userns.Mapping
	}{
		"up":   {3, 7, []userns.Mapping{{3, 7, 1}, {0, 0, 3}, {4, 4, 3}, {8, 8, 2}}},
		"down": {7, 3, []userns.Mapping{{7, 3, 1}, {0, 0, 3}, {4, 4, 3}, {8, 8, 2}}},
		"side": {0, 1, []userns.Mapping{{0, 1, 1}, {2, 2, 8}}},
		"last": {9, 0, []userns.Mapping{{9, 0, 1}, {1, 1, 8}}},
		"same": {3, 3, []userns.Mapping{{0, 0, 10}}},
	} {
		if diff := cmp.Diff(c.want, userns.Swap(c.inside, c.outside, 10)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNew(t *testing.T) {
	linuxtest.NeedRoot(t)
	linuxtest.NoLeaks(t, "")
	m := userns.Swap(1000, 70_000, 80_000)
	f, err := userns.New(m, m)
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(f.Fd()))))
	own, _ := os.Readlink("/proc/self/ns/user")
	if err != nil || name == own || name[:6] != "user:[" {
		t.Errorf("%q %v", name, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := userns.New([]userns.Mapping{{0, 0, 0}}, m); err == nil {
		t.Error("nobody was mapped")
	}
}

package kernel_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// nodejs is a Node that the driver is tested on.
type nodejs struct {
	major int    // 0: that of the host, whatever it is
	bin   string // the directory it is in
}

// nodes runs a test on the Node of the host and on those that scripts/setup.sh
// fetches. One that is missing is skipped, or fails where COVE_REQUIRE names node.
func nodes(t *testing.T, test func(t *testing.T, js nodejs)) {
	t.Helper()
	fetched, err := filepath.Abs("../../.cache/node")
	if err != nil {
		t.Fatal(err)
	}
	for name, js := range map[string]nodejs{
		"host": {0, "/usr/bin"},
		"22":   {22, filepath.Join(fetched, "22/bin")},
		"24":   {24, filepath.Join(fetched, "24/bin")},
	} {
		t.Run(name, func(t *testing.T) {
			if js.major != 0 {
				tier.Full(t, "the Node of the host runs the same test")
			}
			t.Parallel()
			if _, err := os.Stat(filepath.Join(js.bin, "node")); err != nil {
				if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "node") {
					t.Fatalf("COVE_REQUIRE names node, and: %v; scripts/setup.sh test-all fetches it", err)
				}
				t.Skipf("%v; scripts/setup.sh test-all fetches it", err)
			}
			test(t, js)
		})
	}
}

func (js nodejs) host(t *testing.T) *host {
	t.Helper()
	return &host{Host: talktest.New(t), bin: js.bin}
}

// open starts an interpreter for code without types.
func (js nodejs) open(t *testing.T) *bench {
	t.Helper()
	return openIn(t, js.host(t), cove.KernelSpec{Language: "node"})
}

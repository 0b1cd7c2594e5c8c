package local_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestNodes runs TypeScript in sandboxes that have a newer Node than most hosts.
func TestNodes(t *testing.T) {
	tier.Full(t, "internal/kernel tests TypeScript with the Node of the host, and TestInterpreters runs Node in sandboxes")
	p := provider(t, config(t.TempDir()))
	for _, major := range []string{"22", "24"} {
		t.Run(major, func(t *testing.T) {
			bin, err := filepath.EvalSymlinks("../../.cache/node/" + major + "/bin")
			if err != nil && !slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "node") {
				t.Skipf("%v; scripts/setup.sh test-all fetches it", err)
			}
			must(t, err)
			bin, err = filepath.Abs(bin)
			must(t, err)
			s := shows(t, p, cove.Volume{Source: bin, Target: "/opt/node"})
			k, err := kernel.New().Open(t.Context(), s, cove.KernelSpec{Language: "typescript", Env: map[string]string{"PATH": "/opt/node:/usr/bin:/bin"}})
			must(t, err)
			for code, want := range map[string]string{
				"enum E { A = 5 }; (E.A as number) + 1": "6",
				"import {userInfo} from 'node:os'; const {uid}: {uid: number} = userInfo(); [uid, process.versions.node.split('.')[0]].join()": "'1000," + major + "'",
				"require('child_process').execSync('echo $((40 + 2))').toString()":                                                             `'42\n'`,
			} {
				r, err := k.Run(t.Context(), cove.KernelRun{Code: code, Limits: cove.Limits{Wall: time.Minute}})
				must(t, err)
				if r.Error != nil || len(r.Results) != 1 || r.Results[0]["text/plain"] != want {
					t.Errorf("%q has the values %v and the error %+v, want %s", code, r.Results, r.Error, want)
				}
			}
			r, err := k.Run(t.Context(), cove.KernelRun{Code: "const kept: number = 1; for (;;) {}", Limits: cove.Limits{Wall: 300 * time.Millisecond}})
			must(t, err)
			if r.Outcome != cove.TimedOut || !k.Alive() {
				t.Errorf("an endless loop is %s, and the interpreter is alive: %v", r.Outcome, k.Alive())
			}
			must(t, k.Close(context.Background()))
			must(t, s.Destroy(t.Context()))
		})
	}
}

// TestNodeOrphans: what programs leave behind does not pile up, and an interrupt needs
// no room for another process.
func TestNodeOrphans(t *testing.T) {
	if _, err := os.Stat("/usr/bin/node"); err != nil {
		t.Skip(err)
	}
	s, err := provider(t, config(t.TempDir())).Create(t.Context(), cove.NewID(), cove.Spec{Resources: cove.Resources{PIDs: 48}})
	must(t, err)
	k, err := kernel.New().Open(t.Context(), s, cove.KernelSpec{Language: "node"})
	must(t, err)
	run := func(code string, wall time.Duration) *cove.CodeResult {
		r, err := k.Run(t.Context(), cove.KernelRun{Code: code, Limits: cove.Limits{Wall: wall}})
		must(t, err)
		return r
	}
	// More than there is room for, were they all kept.
	r := run(`const {execSync, spawn} = require('child_process'); let n = 0
		const orphans = () => fs.readdirSync('/proc').filter((p) => { try { return /\) Z /.test(fs.readFileSync('/proc/' + p + '/stat')) } catch { return false } }).length
		for (; n < 60; n++) execSync('true &')
		while (orphans() > 0) execSync('true')
		n`, time.Minute)
	if r.Error != nil || len(r.Results) != 1 || r.Results[0]["text/plain"] != "60" {
		t.Fatalf("60 programs in the background: %v, %+v", r.Results, r.Error)
	}
	r = run("for (let i = 0; ; i++) if (i < 100) spawn('sleep', ['1000']).on('error', () => {})", time.Second)
	if r.Outcome != cove.TimedOut || !k.Alive() {
		t.Errorf("code that starts all it can is %s, and the interpreter is alive: %v (%+v)", r.Outcome, k.Alive(), r.Error)
	}
	must(t, k.Close(context.Background()))
	must(t, s.Destroy(t.Context()))
}

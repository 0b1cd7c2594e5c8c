package kernel_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
)

// ahead is a host whose interpreters have done something before their driver begins,
// as those have that are forked.
type ahead struct {
	host

	code string
}

func (a *ahead) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if cmd.Argv[0] == "python3" {
		cmd.Argv = slices.Clone(cmd.Argv)
		cmd.Argv[3] = a.code + cmd.Argv[3]
	}
	return a.host.Start(ctx, cmd)
}

// TestPythonImportedAhead: what was imported before the driver is as if its code had
// imported it.
func TestPythonImportedAhead(t *testing.T) {
	need(t, "/usr/bin/python3")
	in := &ahead{host: host{Host: talktest.New(t)}, code: "try: import subprocess, matplotlib.pyplot\nexcept ImportError: pass\n"}
	k, err := kernel.New().Open(t.Context(), in, cove.KernelSpec{Language: "python", Dir: "/", Warm: true, Preload: []string{"matplotlib.pyplot"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, host: &in.host, k: k}
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := k.Adopt(t.Context(), in.Dir, nil); err != nil {
		t.Fatal(err)
	}
	b.prints("import subprocess, _posixsubprocess as p\nprint(subprocess._fork_exec is p.fork_exec)", "True\n")
	if r, _ := b.run("import matplotlib"); r.Error != nil {
		t.Skipf("not installed: %s", r.Error.Value)
	}
	r, h := b.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.plot([2, 1])\nplt.show()\n5")
	if r.Error != nil || len(r.Results) != 3 || r.Results[2]["text/plain"] != "5" || h.all.String() != "" {
		t.Errorf("it shows %d values, wrote %q and failed with %+v", len(r.Results), h.all.String(), r.Error)
	}
}

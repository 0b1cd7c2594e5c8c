package cli_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
)

// emptying is a cluster whose list is another one each time. Its nodes are heard of
// between two looks, unless they are silent.
type emptying struct {
	cove.Nodes

	looks  [][]cove.Node
	silent bool
	n      int
}

func (e *emptying) List(context.Context) ([]cove.Node, error) {
	list := slices.Clone(e.looks[min(e.n, len(e.looks)-1)])
	e.n++
	for i := range list {
		if !e.silent {
			list[i].SeenAt = time.Unix(int64(e.n), 0)
		}
	}
	return list, nil
}

func TestWaitForADrainedNode(t *testing.T) {
	has := func(state cove.NodeState, sandboxes int) []cove.Node {
		return []cove.Node{{ID: "other", Used: cove.Bounds{Sessions: 9}}, {ID: "n", State: state, Used: cove.Bounds{Sessions: sandboxes}, Sessions: 7}}
	}
	cordoned := cove.NodeCordoned
	for name, tc := range map[string]struct {
		first int
		looks [][]cove.Node
		code  cove.Code // "" where it gets there
		after time.Duration
	}{
		"it has none":       {0, [][]cove.Node{has(cordoned, 0)}, "", 2 * time.Second},
		"it took one since": {0, [][]cove.Node{has(cordoned, 0), has(cordoned, 1), has(cordoned, 0)}, "", 3 * time.Second},
		"it is starting":    {0, [][]cove.Node{has(cordoned, 0), has(cove.NodeAway, 0), has(cordoned, 0)}, "", 3 * time.Second},
		"it says nothing":   {0, [][]cove.Node{has(cordoned, 0)}, cove.Timeout, time.Minute},
		"after a while":     {3, [][]cove.Node{has(cordoned, 3), has(cove.NodeAway, 1), has(cordoned, 0)}, "", 3 * time.Second},
		"too late":          {3, [][]cove.Node{has(cordoned, 2)}, cove.Timeout, time.Minute},
		"the node is gone":  {3, [][]cove.Node{has(cordoned, 2), has(cove.NodeGone, 2)}, cove.Unavailable, 2 * time.Second},
		"it is not known":   {3, [][]cove.Node{has(cordoned, 2)[:1]}, cove.NotFound, time.Second},
		"nobody waits here": {3, [][]cove.Node{has(cordoned, 2)}, cove.Canceled, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.code == cove.Canceled {
					var leave context.CancelFunc
					ctx, leave = context.WithCancel(ctx)
					time.AfterFunc(tc.after, leave)
				}
				began := time.Now()
				n, err := cli.Drained(ctx, cli.System{Stderr: io.Discard}, &emptying{looks: tc.looks, silent: name == "it says nothing"}, &has(cordoned, tc.first)[1], time.Minute)
				if tc.code == "" && (err != nil || n.ID != "n" || n.Used.Sessions != 0) || tc.code != "" && !errors.Is(err, tc.code) && cove.CodeOf(err) != tc.code {
					t.Errorf("%+v, %v", n, err)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

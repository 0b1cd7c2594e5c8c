package platformtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove"
)

func watchCases() []testCase {
	return []testCase{
		{"changes", watchChanges},
		{"ends_with_its_caller", watchEnds},
		{"ends_with_the_session", watchEndsWithSession},
		{"that_nobody_reads", watchUnread},
	}
}

// watched starts a watch and waits until it is in place.
func (r *rig) watched(ctx context.Context, p cove.Platform, id cove.ID, dir string) (<-chan cove.Change, <-chan error) {
	r.t.Helper()
	changes, end := make(chan cove.Change, 100), make(chan error, 1)
	go func() {
		for c, err := range p.Files(id).Watch(ctx, dir) {
			if err != nil {
				end <- err
				return
			}
			select {
			case changes <- c:
			case <-r.ctx.Done():
				return
			}
		}
		end <- nil
	}()
	select {
	case c := <-changes:
		if c.Kind != cove.Watching {
			r.t.Fatalf("the first change is %+v", c)
		}
	case err := <-end:
		r.t.Fatalf("the watch ended at once: %v", err)
	case <-r.ctx.Done():
		r.t.Fatal("the watch never was in place")
	}
	return changes, end
}

// sees waits for a change of one file.
func (r *rig) sees(changes <-chan cove.Change, path string, kinds ...cove.ChangeKind) {
	r.t.Helper()
	for {
		c := receive(r, changes, "a change of "+path)
		if c.Kind == cove.Overflow {
			r.t.Fatal("a handful of changes was too many for the watch")
		}
		for _, k := range kinds {
			if c.Path == path && c.Kind == k {
				return
			}
		}
	}
}

func watchChanges(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Mkdir(r.ctx, "w/sub"), "mkdir")
	ctx, leave := context.WithCancel(r.ctx)
	defer leave()
	changes, _ := r.watched(ctx, p, id, "w")
	r.write(p, id, "unseen", "x")
	r.write(p, id, "w/f", "one")
	r.sees(changes, "/workspace/w/f", cove.Created, cove.Modified)
	r.sh(p, id, "echo x > w/sub/g")
	r.sees(changes, "/workspace/w/sub/g", cove.Created, cove.Modified)
	r.must(p.Files(id).Remove(r.ctx, "w/f"), "remove")
	r.sees(changes, "/workspace/w/f", cove.Removed)
	r.sh(p, id, "mv w/sub/g w/h; chmod 600 w/h")
	for _, want := range []cove.Change{
		{Kind: cove.Removed, Path: "/workspace/w/sub/g", Moved: true},
		{Kind: cove.Created, Path: "/workspace/w/h"},
		{Kind: cove.Modified, Path: "/workspace/w/h", Attributes: true},
	} {
		for receive(r, changes, fmt.Sprintf("the change %+v", want)) != want {
			continue // with what else was told
		}
	}
}

func watchEnds(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	ctx, leave := context.WithCancel(r.ctx)
	_, end := r.watched(ctx, p, id, ".")
	leave()
	if err := receive(r, end, "the end of a watch whose caller went away"); err != nil && cove.CodeOf(err) != cove.Canceled {
		t.Errorf("a watch whose caller went away ended with %v", err)
	}
	r.must(first(p.Files(id).Watch(r.ctx, ".")), "leave a watch early")
}

func watchEndsWithSession(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	_, end := r.watched(r.ctx, p, id, ".")
	r.closeNow(p, id)
	_ = receive(r, end, "the end of a watch whose session was closed")
}

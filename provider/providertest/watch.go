package providertest

import (
	"context"
	"slices"

	"github.com/cove-sandbox/cove"
)

func watchTests() []test {
	return []test{
		{"sees_files_of_the_api_and_of_programs", watchSees},
		{"sees_below_and_not_beside", watchBelow},
		{"ends_with_its_context", watchEnds},
		{"ends_with_the_sandbox", watchDestroyed},
	}
}

// watched follows a directory until its test is done. It returns when the
// watch is in place.
func (e *env) watched(ctx context.Context, s cove.Sandbox, dir string) <-chan cove.Change {
	e.Helper()
	changes := make(chan cove.Change, 10000)
	ready := make(chan struct{})
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	e.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		defer close(changes)
		first := true
		for c, err := range s.Files().Watch(ctx, dir) {
			if err != nil {
				if !first || cove.CodeOf(err) != cove.NotFound {
					return
				}
				e.Errorf("watch: %v", err)
				return
			}
			if first {
				equal(e, c.Kind, cove.Watching, "the first change")
				close(ready)
				first = false
				continue
			}
			changes <- c
		}
	}()
	select {
	case <-ready:
	case <-done:
		e.Fatal("the watch ended before it was in place")
	case <-e.ctx().Done():
		e.Fatal("the watch never was in place")
	}
	return changes
}

// sees waits for a change to a file, of one of the kinds.
func (e *env) sees(changes <-chan cove.Change, path string, kinds ...cove.ChangeKind) {
	e.Helper()
	ctx := e.ctx()
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				e.Fatalf("the watch ended before %s was %v", path, kinds)
			}
			if c.Path == path && slices.Contains(kinds, c.Kind) {
				return
			}
		case <-ctx.Done():
			e.Fatalf("nobody said that %s was %v", path, kinds)
		}
	}
}

func watchSees(e *env) {
	s := e.sandbox()
	changes := e.watched(e.ctx(), s, ".")
	e.write(s, "api", "1")
	e.sees(changes, "/workspace/api", cove.Created)
	e.prints(s, "", "echo more >> api")
	e.sees(changes, "/workspace/api", cove.Modified)
	e.must(s.Files().Remove(e.ctx(), "api"), "remove")
	e.sees(changes, "/workspace/api", cove.Removed)
	e.prints(s, "", "echo x > program; mv program moved; rm moved")
	e.sees(changes, "/workspace/program", cove.Created)
	e.sees(changes, "/workspace/program", cove.Removed)
	e.sees(changes, "/workspace/moved", cove.Created)
	e.sees(changes, "/workspace/moved", cove.Removed)
	e.tells(s, changes)
}

// tells demands that what has another name is told from what is gone, and other
// attributes from other content.
func (e *env) tells(s cove.Sandbox, changes <-chan cove.Change) {
	e.Helper()
	e.must(s.Files().Mkdir(e.ctx(), "dir"), "mkdir")
	e.write(s, "f", "1")
	e.prints(s, "", "chmod 600 f; mv f g; mv dir other; rm g; touch last")
	want := []cove.Change{
		{Kind: cove.Modified, Path: "/workspace/f", Attributes: true},
		{Kind: cove.Removed, Path: "/workspace/f", Moved: true},
		{Kind: cove.Created, Path: "/workspace/g"},
		{Kind: cove.Removed, Path: "/workspace/dir", Moved: true},
		{Kind: cove.Created, Path: "/workspace/other"},
		{Kind: cove.Removed, Path: "/workspace/g"},
		{Kind: cove.Created, Path: "/workspace/last"},
	}
	ctx := e.ctx()
	for len(want) > 0 {
		select {
		case c, ok := <-changes:
			if !ok {
				e.Fatalf("the watch ended before %+v", want[0])
			}
			if c == want[0] {
				want = want[1:]
			}
		case <-ctx.Done():
			e.Fatalf("nobody told %+v", want[0])
		}
	}
}

func watchBelow(e *env) {
	s := e.sandbox()
	e.must(s.Files().Mkdir(e.ctx(), "in/deep"), "mkdir")
	e.must(s.Files().Mkdir(e.ctx(), "beside"), "mkdir")
	changes := e.watched(e.ctx(), s, "in")
	e.write(s, "beside/f", "")
	e.write(s, "in/deep/f", "")
	ctx := e.ctx()
	for {
		select {
		case c := <-changes:
			if c.Path == "/workspace/in/deep/f" {
				return
			}
			if c.Path == "/workspace/beside/f" {
				e.Fatal("a change beside the directory was seen")
			}
		case <-ctx.Done():
			e.Fatal("a change below the directory was not seen")
		}
	}
}

func watchEnds(e *env) {
	s := e.sandbox()
	ctx, cancel := context.WithCancel(e.ctx())
	changes := e.watched(ctx, s, ".")
	cancel()
	e.closes(changes)
}

func watchDestroyed(e *env) {
	s := e.sandbox()
	changes := e.watched(e.ctx(), s, ".")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.closes(changes)
}

// closes waits for the end of a watch.
func (e *env) closes(changes <-chan cove.Change) {
	e.Helper()
	ctx := e.ctx()
	for {
		select {
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-ctx.Done():
			e.Fatal("the watch did not end")
		}
	}
}

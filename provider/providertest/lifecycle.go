package providertest

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func lifecycleTests() []test {
	return []test{
		{"create_lists_and_destroys", createListsAndDestroys},
		{"id_that_exists_is_conflict", idThatExists},
		{"id_that_is_none_is_invalid", idThatIsNone},
		{"id_is_free_again_after_destroy", idIsFreeAgain},
		{"destroy_twice", destroyTwice},
		{"everything_is_not_found_after_destroy", notFoundAfterDestroy},
		{"remove_live_and_unknown", removeLiveAndUnknown},
		{"canceled_create_leaves_nothing", canceledCreate},
		{"failed_create_leaves_nothing", failedCreate},
		{"many_at_once", manySandboxes},
		{"probe_is_stable_and_complete", probeIsStable},
		{"close_twice", closeTwice},
	}
}

func createListsAndDestroys(e *env) {
	id := cove.NewID()
	s, err := e.p.Create(e.ctx(), id, e.spec())
	e.must(err, "create")
	e.destroyLater(s)
	equal(e, s.ID(), id, "the id")
	if !slices.Contains(e.ids(), id) {
		e.Errorf("List does not hold the new sandbox")
	}
	e.must(s.Destroy(e.ctx()), "destroy")
	if slices.Contains(e.ids(), id) {
		e.Errorf("List holds a sandbox that was destroyed")
	}
}

func idThatExists(e *env) {
	s := e.sandbox()
	e.write(s, "kept", "kept")
	_, err := e.p.Create(e.ctx(), s.ID(), e.spec())
	e.wants(cove.Conflict, err, "creating an id that exists")
	equal(e, e.read(s, "kept"), "kept", "a file of the first sandbox")
}

func idThatIsNone(e *env) {
	for _, id := range []cove.ID{"", "short", "../../../../../../etc", cove.ID(strings.Repeat("/", 26))} {
		_, err := e.p.Create(e.ctx(), id, e.spec())
		e.wants(cove.Invalid, err, "creating id "+string(id))
		_, err = e.p.Attach(e.ctx(), id)
		e.wants(cove.NotFound, err, "attaching id "+string(id))
		e.check(e.p.Remove(e.ctx(), id), "removing id "+string(id))
	}
	if n := len(e.ids()); n != 0 {
		e.Errorf("List holds %d sandboxes; want none", n)
	}
}

func idIsFreeAgain(e *env) {
	s := e.sandbox()
	e.write(s, "old", "old")
	e.must(s.Destroy(e.ctx()), "destroy")
	again, err := e.p.Create(e.ctx(), s.ID(), e.spec())
	e.must(err, "create again")
	_, err = again.Files().Stat(e.ctx(), "old")
	e.wants(cove.NotFound, err, "a file of the sandbox before")
}

func destroyTwice(e *env) {
	s := e.sandbox()
	e.must(s.Destroy(e.ctx()), "destroy")
	e.check(s.Destroy(e.ctx()), "destroy again")
}

func notFoundAfterDestroy(e *env) {
	s := e.sandbox()
	e.must(s.Destroy(e.ctx()), "destroy")
	_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
	e.wants(cove.NotFound, err, "Start")
	_, err = s.Usage(e.ctx())
	e.wants(cove.NotFound, err, "Usage")
	_, err = e.p.Attach(e.ctx(), s.ID())
	e.wants(cove.NotFound, err, "Attach")
	for name, call := range everyFileCall(e, s.Files()) {
		e.wants(cove.NotFound, call(e.ctx()), "Files."+name)
	}
}

// everyFileCall is each method of Files with arguments that are fine.
func everyFileCall(e *env, f cove.Files) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Stat":   func(ctx context.Context) error { _, err := f.Stat(ctx, "."); return err },
		"Write":  func(ctx context.Context) error { return f.Write(ctx, "a", strings.NewReader("x"), 0o644) },
		"Mkdir":  func(ctx context.Context) error { return f.Mkdir(ctx, "d") },
		"Move":   func(ctx context.Context) error { return f.Move(ctx, "a", "b") },
		"Remove": func(ctx context.Context) error { return f.Remove(ctx, "a") },
		"Unpack": func(ctx context.Context) error { return f.Unpack(ctx, ".", strings.NewReader("")) },
		"Read": func(ctx context.Context) error {
			r, err := f.Read(ctx, "a", 0, 0)
			return drained(e, r, err)
		},
		"Archive": func(ctx context.Context) error {
			r, err := f.Archive(ctx, ".")
			return drained(e, r, err)
		},
		"List": func(ctx context.Context) error {
			for _, err := range f.List(ctx, ".", 1) {
				return err
			}
			return nil
		},
		"Watch": func(ctx context.Context) error {
			for _, err := range f.Watch(ctx, ".") {
				return err
			}
			return nil
		},
	}
}

// drained reads a stream to its end. What a call cannot say at once may come
// with the first read.
func drained(e *env, r io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	e.check(r.Close(), "close")
	return err
}

func removeLiveAndUnknown(e *env) {
	s := e.sandbox()
	e.must(e.p.Remove(e.ctx(), s.ID()), "remove")
	_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
	e.wants(cove.NotFound, err, "Start in a removed sandbox")
	e.check(s.Destroy(e.ctx()), "destroy after remove")
	e.check(e.p.Remove(e.ctx(), s.ID()), "remove again")
	e.check(e.p.Remove(e.ctx(), cove.NewID()), "remove an unknown id")
	_, err = e.p.Attach(e.ctx(), cove.NewID())
	e.wants(cove.NotFound, err, "attaching an unknown id")
}

func canceledCreate(e *env) {
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	_, err := e.p.Create(ctx, cove.NewID(), e.spec())
	e.wants(cove.Canceled, err, "creating with a context that has ended")
	if n := len(e.ids()); n != 0 {
		e.Errorf("List holds %d sandboxes; want none", n)
	}
}

func failedCreate(e *env) {
	for what, change := range map[string]func(*cove.Spec){
		"an unknown template": func(s *cove.Spec) { s.Template = "no-such-template" },
		"a snapshot that does not exist": func(s *cove.Spec) {
			s.Snapshot = cove.NewID()
		},
		"a volume that does not exist": func(s *cove.Spec) {
			s.Volumes = []cove.Volume{{Source: e.TempDir() + "/missing", Target: "/data"}}
		},
	} {
		id := cove.NewID()
		if _, err := e.p.Create(e.ctx(), id, e.spec(change)); err == nil {
			e.Errorf("creating with %s is no error", what)
		}
		if slices.Contains(e.ids(), id) {
			e.Errorf("creating with %s left something", what)
		}
		_, err := e.p.Attach(e.ctx(), id)
		e.wants(cove.NotFound, err, "attaching what was not created with "+what)
	}
}

func manySandboxes(e *env) {
	const many = 12
	made := make(chan cove.Sandbox, many)
	for range many {
		go func() {
			s, err := e.p.Create(e.ctx(), cove.NewID(), e.spec())
			e.check(err, "create")
			made <- s
		}()
	}
	var all []cove.Sandbox
	for range many {
		if s := <-made; s != nil {
			e.destroyLater(s)
			all = append(all, s)
		}
	}
	ids := e.ids()
	for _, s := range all {
		if !slices.Contains(ids, s.ID()) {
			e.Errorf("List lacks %s", s.ID())
		}
		e.prints(s, "in\n", "echo in")
	}
	for _, s := range all {
		e.check(s.Destroy(e.ctx()), "destroy")
	}
	if n := len(e.ids()); n != 0 {
		e.Errorf("List holds %d sandboxes; want none", n)
	}
}

func probeIsStable(e *env) {
	c := e.caps
	if e.p.Name() == "" {
		e.Errorf("the provider has no name")
	}
	if !slices.Contains(cove.Boundaries(), c.Isolation.Boundary) {
		e.Errorf("the boundary is %q", c.Isolation.Boundary)
	}
	if len(c.Workspaces) == 0 || len(c.Networks) == 0 || len(c.Templates) == 0 {
		e.Errorf("a provider that is ready offers workspaces, networks and templates: %+v", c)
	}
	for _, l := range cove.LimitNames() {
		for kind := range c.Workspaces {
			if how := c.For(kind).Of(l); how != cove.Hard && how != cove.Soft && how != cove.Absent {
				e.Errorf("the limit on %s is %q", l, how)
			}
		}
	}
	again, err := e.p.Probe(e.ctx())
	e.must(err, "probe again")
	equal(e, again.Ready, c.Ready, "Ready of a second probe")
	if n := len(e.ids()); n != 0 {
		e.Errorf("probing left %d sandboxes", n)
	}
}

func closeTwice(e *env) {
	e.must(e.p.Close(), "close")
	e.check(e.p.Close(), "close again")
}

package platformtest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// strangeNames are those that programs choose and people do not expect.
func strangeNames() []string {
	return []string{
		strings.Repeat("n", 255), strings.Repeat("é", 127), "new\nline", "tab\tand\x01", "invalid \xff\xfe", " leading", "-dash", `'quote"`, `back\slash`, "\u202egpj.exe", "a?b#c%2f&d=e",
	}
}

// strangeRoundTrip: a name that can be written can be listed, read, watched,
// archived, stopped with and removed.
func strangeRoundTrip(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.must(p.Files(id).Mkdir(r.ctx, "d"), "mkdir")
	ctx, leave := context.WithCancel(r.ctx)
	defer leave()
	changes, _ := r.watched(ctx, p, id, "d")
	var want []string
	for _, name := range strangeNames() {
		r.write(p, id, "d/"+name, name)
		r.sees(changes, "/workspace/d/"+name, cove.Created, cove.Modified)
		want = append(want, "/workspace/d/"+name)
	}
	slices.Sort(want)
	same(t, "the names in the archive", archivedNames(r, p, id, "d"), base(want))
	r.stop(p, id)
	_, err := p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	var listed []string
	for _, info := range all(r, p.Files(id).List(r.ctx, "d", 1)) {
		listed = append(listed, info.Path)
	}
	slices.Sort(listed)
	same(t, "the listed names", listed, want)
	for _, name := range strangeNames() {
		same(t, "what a file holds", r.read(p, id, "d/"+name), name)
		r.must(p.Files(id).Remove(r.ctx, "d/"+name), "remove")
	}
	same(t, "what is left", len(all(r, p.Files(id).List(r.ctx, "d", 1))), 0)
}

func base(paths []string) []string {
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimPrefix(p, "/workspace/d/"))
	}
	slices.Sort(names)
	return names
}

func archivedNames(r *rig, p cove.Platform, id cove.ID, dir string) []string {
	r.t.Helper()
	stream, err := p.Files(id).Archive(r.ctx, dir)
	r.must(err, "archive")
	var names []string
	for in := tar.NewReader(stream); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		r.must(err, "read the archive")
		names = append(names, h.Name)
	}
	r.must(stream.Close(), "close the archive")
	slices.Sort(names)
	return names
}

// watchUnread: who watches and never reads holds up nobody, and learns that it
// missed something.
func watchUnread(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	ctx, leave := context.WithCancel(r.ctx)
	stuck, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for range p.Files(id).Watch(ctx, ".") {
			select {
			case <-stuck:
			default:
				close(stuck)
			}
			<-ctx.Done()
		}
	}()
	receive(r, stuck, "the beginning of a watch")
	changes, _ := r.watched(ctx, p, id, ".")
	r.sh(p, id, "i=0; while [ $i -lt 3000 ]; do echo $i > f$i; i=$((i+1)); done")
	seen := false
	for !seen {
		c := receive(r, changes, "a change")
		seen = c.Kind == cove.Overflow || c.Path == "/workspace/f2999"
	}
	same(t, "a file", r.read(p, id, "f2999"), "2999\n")
	leave()
	receive(r, over, "the end of the watch that nobody read")
}

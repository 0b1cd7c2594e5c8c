package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

// Run runs the suite. open returns archives in a new place, and closes them when
// the test ends.
func Run(t *testing.T, open func(t *testing.T) cove.Archives) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, cove.Archives){
		"keeps":          keeps,
		"whole or not":   wholeOrNot,
		"gives up":       givesUp,
		"streams":        streams,
		"large":          large,
		"put together":   putTogether,
		"put and delete": putAndDelete,
		"bad ids":        badIDs,
		"ended":          ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, a cove.Archives, id cove.ID, text string) {
	t.Helper()
	n, err := a.Put(t.Context(), id, strings.NewReader(text))
	check(t, err)
	if int(n) != len(text) {
		t.Fatalf("wrote %d bytes of %d", n, len(text))
	}
}

// Content reads an archive to its end.
func Content(t *testing.T, a cove.Archives, id cove.ID) string {
	t.Helper()
	r, err := a.Get(t.Context(), id)
	check(t, err)
	data, err := io.ReadAll(r)
	check(t, errors.Join(err, r.Close()))
	return string(data)
}

// List returns all ids.
func List(t *testing.T, a cove.Archives) []cove.ID {
	t.Helper()
	var ids []cove.ID
	for id, err := range a.List(t.Context()) {
		check(t, err)
		ids = append(ids, id)
	}
	return ids
}

func keeps(t *testing.T, d cove.Archives) {
	a, b, c := cove.NewID(), cove.NewID(), cove.NewID()
	if got := List(t, d); len(got) != 0 {
		t.Errorf("new archives have %q", got)
	}
	for _, id := range []cove.ID{c, a, b} {
		put(t, d, id, "files of "+string(id))
	}
	put(t, d, b, "")
	put(t, d, c, "new files")
	want := []cove.ID{a, b, c}
	slices.Sort(want)
	if got := List(t, d); !slices.Equal(got, want) {
		t.Errorf("list is %q, want %q", got, want)
	}
	for id, text := range map[cove.ID]string{a: "files of " + string(a), b: "", c: "new files"} {
		if got := Content(t, d, id); got != text {
			t.Errorf("%s holds %q, want %q", id, got, text)
		}
	}
	for range 2 {
		check(t, d.Delete(t.Context(), a))
	}
	if _, err := d.Get(t.Context(), a); !errors.Is(err, cove.NotFound) {
		t.Errorf("deleted: %v", err)
	}
	if got := List(t, d); len(got) != 2 {
		t.Errorf("after a delete the list is %q", got)
	}
	for range d.List(t.Context()) {
		break
	}
}

// endless is a stream that never ends by itself.
type endless struct{ each func() error }

func (e endless) Read(p []byte) (int, error) { return len(p), e.each() }

func wholeOrNot(t *testing.T, d cove.Archives) {
	old := cove.NewID()
	put(t, d, old, "old")
	for name, c := range map[string]struct {
		r    io.Reader
		want cove.Code
	}{
		"at once":        {iotest.ErrReader(errors.New("gone")), cove.Internal},
		"later":          {io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), iotest.ErrReader(cove.Errorf(cove.NotFound, "no sandbox"))), cove.NotFound},
		"wrapped EOF":    {iotest.ErrReader(fmt.Errorf("short: %w", io.EOF)), cove.Internal},
		"unexpected EOF": {iotest.ErrReader(io.ErrUnexpectedEOF), cove.Internal},
		"canceled":       {endless{func() error { return context.Canceled }}, cove.Canceled},
	} {
		for _, id := range []cove.ID{old, cove.NewID()} {
			n, err := d.Put(t.Context(), id, c.r)
			if !errors.Is(err, c.want) || n != 0 || cove.MessageOf(err) == "" {
				t.Errorf("%s: got %d, %v, want %s", name, n, err, c.want)
			}
		}
		if got := Content(t, d, old); got != "old" {
			t.Errorf("%s: the old archive holds %q", name, got)
		}
	}
	if got := List(t, d); !slices.Equal(got, []cove.ID{old}) {
		t.Errorf("list is %q", got)
	}
}

func givesUp(t *testing.T, d cove.Archives) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := d.Put(ctx, cove.NewID(), endless{func() error {
		cancel()
		return nil
	}})
	if !errors.Is(err, cove.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := List(t, d); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// streams reads an archive while it is replaced and deleted.
func streams(t *testing.T, d cove.Archives) {
	id := cove.NewID()
	put(t, d, id, "first")
	r, err := d.Get(t.Context(), id)
	check(t, err)
	half := make([]byte, 2)
	_, err = io.ReadFull(r, half)
	check(t, err)
	put(t, d, id, "second")
	check(t, d.Delete(t.Context(), id))
	rest, err := io.ReadAll(r)
	check(t, errors.Join(err, r.Close()))
	if got := string(half) + string(rest); got != "first" {
		t.Errorf("read %q", got)
	}
	put(t, d, id, "first")
	if r, err = d.Get(t.Context(), id); err != nil || r.Close() != nil {
		t.Errorf("one that nobody reads: %v", err)
	}
}

func large(t *testing.T, d cove.Archives) {
	id := cove.NewID()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	n, err := d.Put(t.Context(), id, iotest.HalfReader(bytes.NewReader(data)))
	check(t, err)
	if int(n) != len(data) || Content(t, d, id) != string(data) {
		t.Errorf("%d bytes of %d came back, or others", n, len(data))
	}
}

func putTogether(t *testing.T, d cove.Archives) {
	id := cove.NewID()
	texts := map[string]bool{}
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		text := strings.Repeat(fmt.Sprintf("%02d", i/2), 50_000) // by two each
		texts[text] = true
		wg.Go(func() { _, errs[i] = d.Put(t.Context(), id, strings.NewReader(text)) })
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	if !texts[Content(t, d, id)] {
		t.Error("the archive is a mixture")
	}
}

// putAndDelete has one session come and go while others with the same files stay.
func putAndDelete(t *testing.T, d cove.Archives) {
	const text = "the same files"
	stays := make([]cove.ID, 4)
	errs := make([]error, 2*len(stays))
	var wg sync.WaitGroup
	for i := range stays {
		stays[i] = cove.NewID()
		wg.Go(func() { _, errs[i] = d.Put(t.Context(), stays[i], strings.NewReader(text)) })
		wg.Go(func() {
			goes := cove.NewID()
			_, err := d.Put(t.Context(), goes, strings.NewReader(text))
			errs[len(stays)+i] = errors.Join(err, d.Delete(t.Context(), goes))
		})
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	for _, id := range stays {
		if got := Content(t, d, id); got != text {
			t.Errorf("%s holds %q", id, got)
		}
	}
	if got := List(t, d); len(got) != len(stays) {
		t.Errorf("list is %q", got)
	}
}

func badIDs(t *testing.T, d cove.Archives) {
	for _, id := range []cove.ID{
		"", ".", "..", "../secret", "/etc/passwd", "a/b", "secret\x00", cove.NewID() + "x", cove.ID(strings.ToUpper(string(cove.NewID()))),
		"../../../../../../../../..", cove.ID(strings.Repeat("a", 10_000)), "\xff\xfe", cove.NewID()[:25] + "/", cove.NewID()[:24] + "%2", "?list-type=2",
	} {
		_, put := d.Put(t.Context(), id, strings.NewReader("x"))
		_, get := d.Get(t.Context(), id)
		for name, err := range map[string]error{"put": put, "get": get, "delete": d.Delete(t.Context(), id)} {
			if !errors.Is(err, cove.Invalid) {
				t.Errorf("%s %.40q: %v", name, string(id), err)
			}
		}
	}
	if got := List(t, d); len(got) != 0 {
		t.Errorf("list is %q", got)
	}
}

func ended(t *testing.T, d cove.Archives) {
	id := cove.NewID()
	put(t, d, id, "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range d.List(ctx) {
		cancel()
	}
	cancel()
	_, put := d.Put(ctx, id, strings.NewReader("y"))
	_, get := d.Get(ctx, id)
	var listed error
	for _, err := range d.List(ctx) {
		listed = err
	}
	for name, err := range map[string]error{"put": put, "get": get, "delete": d.Delete(ctx, id), "list": listed} {
		if !errors.Is(err, cove.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := Content(t, d, id); got != "x" {
		t.Errorf("changed to %q", got)
	}
}

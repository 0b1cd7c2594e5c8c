package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

const (
	loaded   = 6       // sessions under load
	names    = 4       // files that are written again and again in each
	fileSize = 1 << 20 // of each
)

// version is the n-th content of a file: its number, noise made of it, and a sum
// over both, so that a part, or a mixture of two, is none.
func version(n int) []byte {
	text := make([]byte, 8, fileSize)
	binary.BigEndian.PutUint64(text, uint64(n))
	for len(text) < fileSize-sha256.Size {
		sum := sha256.Sum256(text[max(0, len(text)-64):])
		text = append(text, bytes.Repeat(sum[:], 32)...)
	}
	text = text[:fileSize-sha256.Size]
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

// versionOf returns which version a content is.
func versionOf(text []byte) (int, error) {
	if len(text) != fileSize {
		return 0, fmt.Errorf("%d bytes are no version", len(text))
	}
	sum := sha256.Sum256(text[:fileSize-sha256.Size])
	if !bytes.Equal(sum[:], text[fileSize-sha256.Size:]) {
		return 0, errors.New("the content is not whole")
	}
	return int(binary.BigEndian.Uint64(text)), nil
}

// progress is what was asked of a thing and what was answered.
type progress struct {
	mu           sync.Mutex
	asked, acked int // the last of each; guarded by mu
}

func (p *progress) ask() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.asked
}

func (p *progress) ack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = max(p.acked, n)
}

func (p *progress) both() (asked, acked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.acked
}

// burdened is a session under load.
type burdened struct {
	*living

	execs, downloads progress
	files            [names]progress
}

func nameOf(i int) string { return "file" + strconv.Itoa(i) }

// bear puts load on a session until something goes wrong, which the end of the
// server is.
func (b *burdened) bear(ctx context.Context, t *testing.T, c *client.Client, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			n := b.execs.ask()
			x, err := c.Processes(b.id).Exec(ctx, cove.ExecRequest{Line: fmt.Sprintf("echo %d >>done; echo %d", n, n)})
			if err != nil {
				return
			}
			if got := string(x.Stdout.Data); x.ExitCode != 0 || got != strconv.Itoa(n)+"\n" {
				t.Errorf("%s: the answer to %d is %q with exit code %d", b.id, n, got, x.ExitCode)
			}
			b.execs.ack(n)
		}
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			f := &b.files[i%names]
			n := f.ask()
			if err := c.Files(b.id).Write(ctx, nameOf(i%names), bytes.NewReader(version(n)), 0); err != nil {
				return
			}
			f.ack(n)
		}
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			_, before := b.files[i%names].both()
			got, err := b.read(ctx, c, nameOf(i%names))
			if errors.Is(err, cove.NotFound) && before == 0 {
				continue // nobody wrote it yet
			}
			if err != nil {
				return
			}
			// What came without an error is whole, and no older than what was answered.
			n, err := versionOf(got)
			if asked, _ := b.files[i%names].both(); err != nil || n < before || n > asked {
				t.Errorf("%s: read version %d of %s, and %d to %d are right: %v", b.id, n, nameOf(i%names), before, asked, err)
			}
			b.downloads.ack(b.downloads.ask())
		}
	})
}

func (b *burdened) read(ctx context.Context, c *client.Client, name string) ([]byte, error) {
	r, err := c.Files(b.id).Read(ctx, name, 0, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// enough reports whether there was so much of everything that a kill hits
// something in the middle.
func (b *burdened) enough() bool {
	_, execs := b.execs.both()
	_, downloads := b.downloads.both()
	_, last := b.files[names-1].both()
	return execs >= 10 && downloads >= names && last >= 2
}

// check demands that what was answered is there, and that the rest is there whole
// or not at all.
func (b *burdened) check(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	text, err := b.read(ctx, c, "done")
	if err != nil {
		t.Errorf("%s: %v", b.id, err)
	}
	asked, acked := b.execs.both()
	lines := strings.Fields(string(text))
	if len(lines) != acked && len(lines) != asked || !bytes.HasSuffix(text, []byte("\n")) {
		t.Errorf("%s: %d programs left their mark, %d were asked for and %d answered", b.id, len(lines), asked, acked)
	}
	for i, l := range lines {
		if l != strconv.Itoa(i+1) {
			t.Fatalf("%s: mark %d is %q", b.id, i+1, l)
		}
	}
	right := map[string]bool{"done": true, "counted": true}
	for i := range b.files {
		name := nameOf(i)
		right[name] = true
		asked, acked := b.files[i].both()
		got, err := b.read(ctx, c, name)
		if errors.Is(err, cove.NotFound) && acked == 0 {
			continue
		}
		n := 0
		if err == nil {
			n, err = versionOf(got)
		}
		if err != nil || n != acked && n != asked {
			t.Errorf("%s: %s is version %d, and %d was answered and %d asked for last: %v", b.id, name, n, acked, asked, err)
		}
	}
	x, err := c.Processes(b.id).Exec(ctx, cove.ExecRequest{Argv: []string{"ls", "-A"}})
	if err != nil {
		t.Fatalf("%s: %v", b.id, err)
	}
	for name := range strings.FieldsSeq(string(x.Stdout.Data)) {
		if !right[name] {
			t.Errorf("%s: %s is left of something", b.id, name)
		}
	}
}

// visitors open and close sessions until something goes wrong.
type visitors struct {
	mu     sync.Mutex
	open   map[cove.ID]bool // answered as opened, and not asked to close; guarded by mu
	closed map[cove.ID]bool // answered as closed; guarded by mu
}

func (v *visitors) come(ctx context.Context, c *client.Client, wg *sync.WaitGroup) {
	wg.Go(func() {
		for i := 0; ; i++ {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}}})
			if err != nil {
				return
			}
			if i%4 == 0 && i < 20 {
				v.note(v.open, s.ID)
				continue
			}
			if _, err := c.Sessions().Close(ctx, s.ID, false); err != nil {
				return
			}
			v.note(v.closed, s.ID)
		}
	})
}

func (v *visitors) note(set map[cove.ID]bool, id cove.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	set[id] = true
}

func (v *visitors) enough() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open) > 0 && len(v.closed) > 2
}

// check demands that sessions are there as was answered, and that all that are
// there work.
func (v *visitors) check(t *testing.T, c *client.Client) (all []*living) {
	t.Helper()
	there := map[cove.ID]bool{}
	for s, err := range c.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		there[s.ID] = true
		if x, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"true"}}); err != nil || x.ExitCode != 0 {
			t.Errorf("%s is listed and does not work: %v", s.ID, err)
		}
	}
	for id := range v.open {
		if !there[id] {
			t.Errorf("%s was answered as opened and is not there", id)
		}
	}
	for id := range v.closed {
		if _, err := c.Sessions().Get(t.Context(), id); there[id] || !errors.Is(err, cove.NotFound) {
			t.Errorf("%s was answered as closed and is there: %v", id, err)
		}
	}
	for id := range maps.Keys(there) {
		all = append(all, &living{id: id})
	}
	return all
}

// A server is killed while programs run, files go in and out and sessions come and
// go. After a restart every answer it gave is true.
func TestNoAnswerLiesAfterAKill(t *testing.T) {
	needLocal(t)
	home := filepath.Join(t.TempDir(), "home")
	end := server(t, home, "local")
	c := connect(t, home)
	var all []*burdened
	for range loaded {
		all = append(all, &burdened{living: begin(t, c, home)})
	}
	guests := &visitors{open: map[cove.ID]bool{}, closed: map[cove.ID]bool{}}
	var wg sync.WaitGroup
	for _, b := range all {
		b.bear(t.Context(), t, c, &wg)
	}
	guests.come(t.Context(), c, &wg)
	ready := func() bool {
		return guests.enough() && !slices.ContainsFunc(all, func(b *burdened) bool { return !b.enough() })
	}
	if !eventually(time.Minute, ready) {
		t.Error("the load does not get going")
	}
	end(syscall.SIGKILL)
	wg.Wait()

	end = server(t, home, "local")
	c = connect(t, home)
	there := guests.check(t, c)
	for _, b := range all {
		b.check(t, c)
		b.count(t, c, 0, 100) // its program goes on, without a gap
		b.finish(t, c)
	}
	for _, l := range there {
		if _, err := c.Sessions().Close(t.Context(), l.id, false); err != nil {
			t.Error(err)
		}
	}
	end(syscall.SIGTERM)
	nothingLeft(t, home, there)

	verify := exec.CommandContext(t.Context(), "cove", "audit", "verify")
	verify.Env = append(os.Environ(), "COVE_HOME="+home)
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "all good") {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

package ticket_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/ticket"
)

func newKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func grant(kind cove.GrantKind) cove.Grant {
	return cove.Grant{
		Kind: kind, Principal: "key", Tenant: "acme", Session: cove.NewID(), Path: "/workspace/a\xff<b>", Port: 8080,
		ExpiresAt: time.Now().Add(time.Minute).UTC().Truncate(time.Second),
	}
}

// somebody is a principal who may do all, of the tenant acme.
func somebody(_ context.Context, name string) (cove.Principal, func(), error) {
	return cove.Principal{Name: name, Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}}, func() {}, nil
}

func refused(t *testing.T, d *ticket.Desk, text string, kind cove.GrantKind, why string) {
	t.Helper()
	g, p, done, err := d.Redeem(t.Context(), text, kind)
	if !errors.Is(err, cove.Unauthenticated) || g != (cove.Grant{}) || p.Name != "" || done == nil {
		t.Fatalf("%s: %+v of %+v, %v", why, g, p, err)
	}
	if strings.Contains(err.Error(), text) && len(text) > 3 {
		t.Errorf("%s: the error holds the ticket", why)
	}
}

func TestThereAndBack(t *testing.T) {
	for kind, want := range map[cove.GrantKind][]cove.Scope{
		cove.GrantDownload: {cove.ScopeFileRead}, cove.GrantUpload: {cove.ScopeFileWrite}, cove.GrantPort: {cove.ScopeExec},
		cove.GrantLogin: {cove.ScopeAll}, cove.GrantConsole: {cove.ScopeAll},
	} {
		b := ticket.New(newKey(1))
		d := ticket.NewDesk(b, somebody)
		sent := grant(kind)
		for range 2 {
			got, p, done, err := d.Redeem(t.Context(), b.Issue(sent), kind)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			done()
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Errorf("%s (-sent +got):\n%s", kind, diff)
			}
			if diff := cmp.Diff(want, p.Scopes); diff != "" || p.Name != "key" {
				t.Errorf("%s acts for %+v:\n%s", kind, p, diff)
			}
		}
	}
}

// TestEveryLetterCounts: whatever is changed, added or taken away, no ticket comes
// out.
func TestEveryLetterCounts(t *testing.T) {
	b := ticket.New(newKey(1))
	d := ticket.NewDesk(b, somebody)
	text := b.Issue(grant(cove.GrantDownload))
	for i := range text {
		for _, c := range []byte{text[i] ^ 1, 'A', '=', '.', 0} {
			if c != text[i] {
				refused(t, d, text[:i]+string(c)+text[i+1:], cove.GrantDownload, "changed")
			}
		}
		refused(t, d, text[:i], cove.GrantDownload, "cut off")
	}
	for _, other := range []string{"", ".", text + "A", text + "=", text + ".", " " + text, text + "\n", strings.Repeat("A", 1<<20)} {
		refused(t, d, other, cove.GrantDownload, "another text")
	}
}

func TestOfAnotherKindOrServer(t *testing.T) {
	b, other := ticket.New(newKey(1)), ticket.New(newKey(2))
	d := ticket.NewDesk(b, somebody)
	kinds := []cove.GrantKind{cove.GrantDownload, cove.GrantUpload, cove.GrantPort, cove.GrantLogin, cove.GrantConsole}
	for _, made := range kinds {
		for _, shown := range kinds {
			if made != shown {
				refused(t, d, b.Issue(grant(made)), shown, string(made)+" as "+string(shown))
			}
		}
		refused(t, d, other.Issue(grant(made)), made, "of another key")
	}
	// After a restart links are good. Sign-ins are not where nobody wrote down who signed out.
	again := ticket.NewDesk(ticket.New(newKey(1)), somebody)
	if _, _, _, err := again.Redeem(t.Context(), b.Issue(grant(cove.GrantPort)), cove.GrantPort); err != nil {
		t.Errorf("a link after a restart: %v", err)
	}
	refused(t, again, b.Issue(grant(cove.GrantLogin)), cove.GrantLogin, "a login after a restart")
	refused(t, again, b.Issue(grant(cove.GrantConsole)), cove.GrantConsole, "a sign-in after a restart")
}

func TestTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ticket.New(newKey(1))
		d := ticket.NewDesk(b, somebody)
		text := b.Issue(grant(cove.GrantPort))
		<-time.After(59 * time.Second)
		if _, _, _, err := d.Redeem(t.Context(), text, cove.GrantPort); err != nil {
			t.Errorf("before its time: %v", err)
		}
		<-time.After(time.Second)
		refused(t, d, text, cove.GrantPort, "expired")
	})
}

func TestWhoItActsFor(t *testing.T) {
	b := ticket.New(newKey(1))
	text := b.Issue(grant(cove.GrantDownload))
	over := 0
	as := func(p cove.Principal, err error) *ticket.Desk {
		return ticket.NewDesk(b, func(context.Context, string) (cove.Principal, func(), error) { return p, func() { over++ }, err })
	}
	refused(t, as(cove.Principal{}, cove.Errorf(cove.Unauthenticated, "revoked")), text, cove.GrantDownload, "revoked")
	refused(t, as(cove.Principal{Tenant: "globex"}, nil), text, cove.GrantDownload, "moved to another tenant")
	if over != 1 {
		t.Errorf("the request of a refused one was ended %d times", over)
	}
	_, _, _, err := as(cove.Principal{}, cove.Errorf(cove.Exhausted, "slow down")).Redeem(t.Context(), text, cove.GrantDownload)
	if !errors.Is(err, cove.Exhausted) {
		t.Errorf("over its rate: %v", err)
	}
	_, p, _, err := as(cove.Principal{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}}, nil).Redeem(t.Context(), text, cove.GrantDownload)
	if err != nil || len(p.Scopes) != 0 {
		t.Errorf("a principal that has lost the scope has %v, %v", p.Scopes, err)
	}
}

func TestLoginOnce(t *testing.T) {
	b := ticket.New(newKey(1))
	d := ticket.NewDesk(b, somebody)
	text := b.Issue(grant(cove.GrantLogin))
	if _, _, _, err := d.Redeem(t.Context(), text, cove.GrantLogin); err != nil {
		t.Fatalf("looking at it: %v", err)
	}
	var good atomic.Int32
	var console atomic.Value
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if c, g, err := d.Enter(t.Context(), text); err == nil && g.Kind == cove.GrantConsole {
				good.Add(1)
				console.Store(c)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Fatalf("%d of 20 came in with one ticket", good.Load())
	}
	refused(t, d, text, cove.GrantLogin, "used")
	in := console.Load().(string)
	if _, p, _, err := d.Redeem(t.Context(), in, cove.GrantConsole); err != nil || p.Name != "key" {
		t.Fatalf("signed in as %+v, %v", p, err)
	}
	if err := d.Leave(t.Context(), in); err != nil {
		t.Error(err)
	}
	if err := d.Leave(t.Context(), in); err != nil {
		t.Errorf("leaving twice: %v", err)
	}
	refused(t, d, in, cove.GrantConsole, "signed out")
	if err := d.Leave(t.Context(), "x"); !errors.Is(err, cove.Unauthenticated) {
		t.Errorf("leaving without a ticket: %v", err)
	}
	if _, _, err := d.Enter(t.Context(), in); !errors.Is(err, cove.Unauthenticated) {
		t.Errorf("entering with another kind: %v", err)
	}
}

// TestManySignIns: what is remembered is bounded, and forgotten when it is over.
// Who signs in and out all day keeps nobody else from it.
func TestManySignIns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ticket.New(newKey(1))
		d := ticket.NewDesk(b, somebody)
		enter := func(who string) (console string, err error) {
			g := grant(cove.GrantLogin)
			g.Principal = who
			console, _, err = d.Enter(t.Context(), b.Issue(g))
			return console, err
		}
		for i := range 500 {
			console, err := enter("busy")
			if err == nil {
				err = d.Leave(t.Context(), console)
			}
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		if _, err := enter("busy"); !errors.Is(err, cove.Exhausted) {
			t.Errorf("one too many: %v", err)
		}
		console, err := enter("another")
		if err == nil {
			err = d.Leave(t.Context(), console)
		}
		if err != nil {
			t.Errorf("another key: %v", err)
		}
		<-time.After(time.Minute)
		if _, err := enter("busy"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link.key")
	b, err := ticket.Open(path, filepath.Join(filepath.Dir(path), "signed-out"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 2 {
		t.Errorf("%d files are there", len(names))
	}
	again, err := ticket.Open(path, filepath.Join(filepath.Dir(path), "signed-out"))
	if err != nil {
		t.Fatal(err)
	}
	text := b.Issue(grant(cove.GrantPort))
	if _, _, _, err := ticket.NewDesk(again, somebody).Redeem(t.Context(), text, cove.GrantPort); err != nil {
		t.Errorf("with the same file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fresh, err := ticket.Open(path, filepath.Join(filepath.Dir(path), "signed-out"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, ticket.NewDesk(fresh, somebody), text, cove.GrantPort, "with a new file")
}

func TestBadKeyFiles(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		make func(path string) error
		code cove.Code
	}{
		"empty":     {func(p string) error { return os.WriteFile(p, nil, 0o600) }, cove.Invalid},
		"short":     {func(p string) error { return os.WriteFile(p, []byte(good[2:]), 0o600) }, cove.Invalid},
		"long":      {func(p string) error { return os.WriteFile(p, []byte(good+"ab"), 0o600) }, cove.Invalid},
		"not hex":   {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("z", 64)), 0o600) }, cove.Invalid},
		"readable":  {func(p string) error { return os.WriteFile(p, []byte(good), 0o644) }, cove.Invalid},
		"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, cove.Invalid},
		"nowhere":   {func(p string) error { return os.Remove(filepath.Dir(p)) }, cove.Unavailable},
		"a link":    {func(p string) error { return os.Symlink("/dev/zero", p) }, cove.Invalid},
		"below a file": {func(p string) error {
			return errors.Join(os.Remove(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), nil, 0o600))
		}, cove.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d", "link.key")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tc.make(path); err != nil {
				t.Fatal(err)
			}
			_, err := ticket.Open(path, filepath.Join(filepath.Dir(path), "signed-out"))
			if cove.CodeOf(err) != tc.code || strings.Contains(err.Error(), good[:10]) {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzRedeem: no text that the book did not write is a ticket.
func FuzzRedeem(f *testing.F) {
	b := ticket.New(newKey(1))
	d := ticket.NewDesk(b, somebody)
	real := b.Issue(grant(cove.GrantPort))
	f.Add(real)
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"v":1,"kind":"port"}`)) + ".AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, _, err := d.Redeem(t.Context(), text, cove.GrantPort); err == nil && text != real {
			t.Errorf("%q is a ticket", text)
		}
	})
}

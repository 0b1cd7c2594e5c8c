package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

// maxResident bounds the memory of a server whose clients do what overload does.
const maxResident = 300 << 20

// overloading is how long the test lasts: five minutes in the full tier.
func overloading() time.Duration {
	if testing.Short() {
		return 5 * time.Second
	}
	return 5 * time.Minute
}

// TestTenantsBesideAnOverload: two tenants go on without an error of the server while a
// third fills its disk quota and two keys of a fourth send large and half-sent bodies, and
// the server stays within its memory.
func TestTenantsBesideAnOverload(t *testing.T) {
	needLocal(t)
	home := filepath.Join(t.TempDir(), "home")
	end := serverOf(t, program.Cove(t), home, "local")
	at, _ := serving(home)
	admin := connect(t, home)
	if err := admin.Admin().SetTenant(t.Context(), cove.Tenant{Name: "full", Quota: cove.Bounds{Disk: 24 * cove.MiB}}); err != nil {
		t.Fatal(err)
	}
	one, two, full := newTenant(t, admin, at.Address, "acme"), newTenant(t, admin, at.Address, "globex"), newTenant(t, admin, at.Address, "full")
	ctx, stop := context.WithTimeout(t.Context(), overloading())
	defer stop()
	var others sync.WaitGroup
	var refused atomic.Int64
	others.Go(func() { refused.Store(full.fill(ctx, t)) })
	senders := []*sender{newSender(t, admin, at.Address, cove.ScopeRead), newSender(t, admin, at.Address, cove.ScopeWrite, cove.ScopeExec)}
	for _, s := range senders {
		s.start(ctx, &others)
	}
	hammer(ctx, t, one, two)
	others.Wait()
	if refused.Load() == 0 {
		t.Error("the tenant that fills its quota was never refused")
	}
	for _, s := range senders {
		s.check(t)
	}
	switch peak, err := peakResident(at.PID); {
	case err != nil:
		t.Error(err)
	case peak > maxResident:
		t.Errorf("the server used %d MiB of memory, more than %d", peak>>20, maxResident>>20)
	default:
		t.Logf("the server used at most %d MiB; %d requests over the quota were refused", peak>>20, refused.Load())
	}
	afterwards(t, one, two)
	full.closeAll(t)
	end(syscall.SIGTERM)
	nothingLeft(t, home, []*living{{id: one.session}, {id: two.session}, {id: full.session}})
}

// peakResident is the most memory that a process had.
func peakResident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("the status of process %d has no VmHWM", pid)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10, err
}

// fill keeps output, snapshots and archives until ctx ends, and returns how often that was
// refused for the tenant's quota.
func (me *tenant) fill(ctx context.Context, t *testing.T) (refused int64) {
	keep := func(err error) {
		switch {
		case err == nil || ctx.Err() != nil:
		case cove.ReasonOf(err) == cove.ReasonTenantDisk:
			refused++
		case cove.CodeOf(err) != cove.Exhausted && cove.CodeOf(err) != cove.Conflict:
			t.Errorf("a tenant that fills its quota: %v", err)
		}
	}
	for ctx.Err() == nil {
		_, err := me.platform.Processes(me.session).Exec(ctx, cove.ExecRequest{Line: "head -c 8000000 /dev/zero | tr '\\0' x"})
		keep(err)
		err = me.platform.Files(me.session).Write(ctx, "large", io.LimitReader(zeros{}, 8<<20), 0)
		keep(err)
		_, err = me.platform.Snapshots().Snapshot(ctx, me.session, cove.SnapshotRequest{})
		keep(err)
		_, err = me.platform.Sessions().Stop(ctx, me.session)
		keep(err)
		_, err = me.platform.Sessions().Start(ctx, me.session)
		keep(err)
	}
	return refused
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sender is a key that sends bodies which cost the server memory.
type sender struct {
	url, key string
	wrong    atomic.Pointer[error]
	answered atomic.Int64
}

func newSender(t *testing.T, admin *client.Client, url string, scopes ...cove.Scope) *sender {
	t.Helper()
	_, secret, err := admin.Admin().CreateKey(t.Context(), cove.KeyRequest{Tenant: "sender", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return &sender{url: url, key: secret}
}

// start sends bodies of many elements, of one long string and half-sent ones until ctx
// ends.
func (s *sender) start(ctx context.Context, group *sync.WaitGroup) {
	path := "/api/sandboxes/" + string(cove.NewID())
	elements := []byte(`{"command":"true","args":[` + strings.Repeat(`"",`, 8<<20/3-20) + `""]}`)
	code := []byte(`{"language":"python","code":"` + strings.Repeat("x", 23<<20) + `"}`)
	for range 6 {
		group.Go(func() { s.repeat(ctx, path+"/execute", elements) })
		group.Go(func() { s.repeat(ctx, "/api/code", code) })
	}
	for range 20 {
		group.Go(func() { s.half(ctx, path+"/execute", elements) })
	}
}

func (s *sender) repeat(ctx context.Context, path string, body []byte) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
		if err != nil {
			s.wrong.Store(&err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+s.key)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			continue // the server may close a connection whose body it does not want
		}
		if resp.StatusCode < 400 || resp.StatusCode >= 500 && resp.StatusCode != http.StatusInsufficientStorage {
			err = fmt.Errorf("%s is answered %s", path, resp.Status)
			s.wrong.Store(&err)
		}
		s.answered.Add(1)
		_ = resp.Body.Close() // the status is all that counts
	}
}

// half announces a body, sends most of it and waits for the server to give up, or for a
// while.
func (s *sender) half(ctx context.Context, path string, body []byte) {
	const patience = 3 * time.Second
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			continue // its connections have a bound
		}
		_ = conn.SetDeadline(time.Now().Add(patience)) // a TCP connection has deadlines
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, s.key, len(body), body[:len(body)*3/4])
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			s.answered.Add(1)
		}
		_ = conn.Close() // it is not whole anyway
	}
}

func (s *sender) check(t *testing.T) {
	t.Helper()
	if err := s.wrong.Load(); err != nil {
		t.Error(*err)
	}
	if s.answered.Load() < 10 {
		t.Errorf("only %d bodies were answered", s.answered.Load())
	}
}

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

func TestURLsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "redis", "redis://", "localhost:6379", "http://localhost", "redis://host:99999999/0", "redis://h/x/y", "redis://h:6379/0?nonsense=1",
		"redis+sentinel://h:1", "redis+sentinel://h:1/", "redis+sentinel://h/m", "redis+sentinel://h:1,/m", "redis+sentinel://h:1,:2/m",
		"redis+sentinel://h:1/m?db=x", "redis+sentinel://h:1/m?db=-1", "redis+cluster://h:1/0", "redis+cluster://", "redis+cluster://%zz@h:1/", "unix://",
		"redis://user:hunter2@host:notaport/0",
	} {
		_, err := redis.Open(t.Context(), redis.Config{URL: url})
		if cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), "REDIS_URL: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, c := range []redis.Config{{Prefix: "a}b"}, {Prefix: strings.Repeat("x", 65)}, {Lease: time.Millisecond}, {Lease: -1}} {
		c.URL = "redis://127.0.0.1:1"
		if _, err := redis.Open(t.Context(), c); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// nobody wants the error of a directory that cannot be reached.
func nobody(t *testing.T, err error) {
	t.Helper()
	fails(t, err, cove.Unavailable, cove.ReasonNoDirectory)
	same(t, detail(t, err, "retry_after"), any(2))
	if cove.RemedyOf(err) == "" || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v has no remedy, or a password", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://:hunter2@127.0.0.1:1/0", "rediss://127.0.0.1:1", "unix:///nowhere/redis.sock",
		"redis+sentinel://u:hunter2@127.0.0.1:1,127.0.0.1:2/m", "redis+cluster://127.0.0.1:1,127.0.0.1:2",
	} {
		_, err := redis.Open(t.Context(), redis.Config{URL: url})
		nobody(t, err)
	}
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	ok(t, s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	server.Stop()
	nobody(t, s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	nobody(t, errOf(s.GetTenant(t.Context(), "acme")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fails(t, s.PutTenant(ctx, &cove.Tenant{Name: "acme"}), cove.Canceled, "")
	_, err := redis.Open(ctx, redis.Config{URL: server.URL()})
	fails(t, err, cove.Canceled, "")
	server.Restart(true)
	ok(t, errOf(s.GetTenant(t.Context(), "acme"))) // it needs no help to find it again
}

func TestPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "cove", "on", ">hunter2", "~{cove}:*", "&{cove}:*", "+@all", "-@dangerous", "+info")
	server.Do("ACL", "SETUSER", "weak", "on", ">hunter2", "~other:*", "+@all")
	server.Do("ACL", "SETUSER", "default", "resetpass", "-@all", "+acl|setuser")
	at := server.Addr()
	for _, url := range []string{"redis://" + at, "redis://cove:hunter3@" + at, "redis://weak:hunter2@" + at} {
		_, err := redis.Open(t.Context(), redis.Config{URL: url})
		nobody(t, err)
		if strings.Contains(cove.MessageOf(err), "cannot be reached") {
			t.Errorf("%q: %v says nothing of what is wrong", url, err)
		}
	}
	s := open(t, redis.Config{URL: "redis://cove:hunter2@" + at, Node: "a", Instance: "x", Lease: longLease})
	beat(t, s) // the rights that errors ask for are enough
	ok(t, s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Follow(ctx, func(cove.Notice) { cancel() })
	if !errors.Is(err, cove.Canceled) {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: "unix://" + server.Socket() + "?db=3"})
	ok(t, s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"}))
	ok(t, errOf(s.GetTenant(t.Context(), "acme")))
}

// TestOutOfMemory has a server that takes no more.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	server.Do("CONFIG", "SET", "maxmemory", "1")
	err := s.PutTenant(t.Context(), &cove.Tenant{Name: "acme"})
	nobody(t, err)
	if !strings.Contains(cove.MessageOf(err), "memory") {
		t.Error(err)
	}
}

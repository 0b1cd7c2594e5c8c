package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/store/redis"
)

// joined is a node with an engine that a test plays.
func joined(t *testing.T, cfg cluster.Config, url string) (*cluster.Member, *redis.Store) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	directory, err := redis.Open(ctx, redis.Config{URL: url, Node: "a", Instance: t.TempDir(), Lease: lease, Prefix: settled(t, url, 1)()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := directory.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg.Directory, cfg.Node, cfg.Address, cfg.Secret, cfg.Lease = directory, "a", "127.0.0.1:1", secret, lease
	m, err := cluster.Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Leave(ctx) })
	return m, directory
}

// TestDirectoryAwayDuringTheStart: a node that has its lease waits for a directory that
// does not answer. Other nodes would give up its sessions if it ended and came back late.
func TestDirectoryAwayDuringTheStart(t *testing.T) {
	tries := 0
	joined(t, cluster.Config{Announce: func(context.Context) error {
		if tries++; tries < 3 {
			return cove.Errorf(cove.Unavailable, "away").Reason(cove.ReasonNoDirectory)
		}
		return nil
	}}, newRedis(t).URL())
	if tries != 3 {
		t.Errorf("it told the directory %d times", tries)
	}
}

// unequal is an engine that cannot make its sessions and the directory agree.
type unequal struct{ cluster.Engine }

func (unequal) Self(context.Context) cove.Node { return cove.Node{} }
func (unequal) Cordon(bool)                    {}
func (unequal) Reconcile(context.Context) (int, error) {
	return 0, cove.Errorf(cove.Unavailable, "the directory settles").Reason(cove.ReasonNoDirectory)
}

// TestKeysComeBackBeforeSessions: a directory that lost all gets its keys back also while
// sessions cannot be compared with it, so that no caller is told that its key is wrong.
func TestKeysComeBackBeforeSessions(t *testing.T) {
	server, renewed := newRedis(t), make(chan struct{}, 1)
	m, _ := joined(t, cluster.Config{Renewed: func(context.Context) error {
		select {
		case renewed <- struct{}{}:
		default:
		}
		return nil
	}}, server.URL())
	if err := m.Serve(t.Context(), unequal{}); err != nil {
		t.Fatal(err)
	}
	server.Flush()
	if err := m.BeatNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-renewed:
	case <-time.After(lease):
		t.Error("the keys did not come back")
	}
}

// TestForgottenByTheDirectory: a session that has ended and that the directory forgot is
// not said to be at a node that does not answer.
func TestForgottenByTheDirectory(t *testing.T) {
	a, b := pair(t)
	p := a.member.As(somebody())
	cordon(t, a, b)
	s := open(t, p, cove.Spec{})
	say(t, p, s.ID, "true")
	if node, ok := a.member.Remembers(s.ID); !ok || node != "b" {
		t.Fatalf("it remembers %q", node)
	}
	if _, err := b.member.Here(somebody()).Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	b.must(b.directory.DeleteSession(t.Context(), s.ID))
	b.crash()
	if _, err := p.Files(s.ID).Stat(t.Context(), "file"); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("it says %v", err)
	}
}

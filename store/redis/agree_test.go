package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// A node that has another secret, or another lease, than those that live is refused; one
// that finds nobody says what all have.
func TestNodesAgree(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	join := func(node, same string, lease time.Duration) (*redis.Store, error) {
		s, err := redis.Open(t.Context(), redis.Config{URL: r.URL(), Node: node, Instance: node, Same: same, Lease: lease})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return s, err
	}
	first, err := join("a", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Beat(t.Context(), cove.Node{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := join("b", "one", time.Minute); err != nil {
		t.Errorf("one that has the same: %v", err)
	}
	for want, try := range map[string]func() (*redis.Store, error){
		"COVE_CLUSTER_SECRET": func() (*redis.Store, error) { return join("c", "two", time.Minute) },
		"COVE_NODE_LEASE_SEC": func() (*redis.Store, error) { return join("c", "one", time.Hour) },
	} {
		if _, err := try(); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("another %s: %v", want, err)
		}
	}
	if err := first.Leave(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := join("c", "two", time.Hour); err != nil {
		t.Errorf("when nobody is there: %v", err)
	}
}

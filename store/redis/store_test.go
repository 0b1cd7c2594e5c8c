package redis_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
	"github.com/cove-sandbox/cove/store/storetest"
)

// prefixes tells the stores of tests apart that share a server.
var prefixes atomic.Int64

func open(t *testing.T, c redis.Config) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// contract runs the suite on stores that are empty because their prefix is new.
func contract(t *testing.T, url string) {
	storetest.Run(t, func(t *testing.T) cove.Store {
		return open(t, redis.Config{URL: url, Prefix: fmt.Sprint("t", prefixes.Add(1))})
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	contract(t, redistest.Start(t).URL())
}

func TestStoreSentinel(t *testing.T) {
	tier.Full(t, "TestStore runs the suite on one Redis; TestFailover and TestTwoMasters use Sentinel")
	t.Parallel()
	contract(t, redistest.StartSentinels(t).URL())
}

func TestStoreCluster(t *testing.T) {
	tier.Full(t, "TestStore runs the suite on one Redis; TestMovedSlot uses a Redis cluster")
	t.Parallel()
	contract(t, redistest.StartCluster(t).URL())
}

// TestDurable has a server that is killed between openings.
func TestDurable(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	storetest.RunDurable(t, func(t *testing.T, dir string) cove.Store {
		t.Helper()
		server.Restart(true)
		return open(t, redis.Config{URL: server.URL(), Prefix: filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)})
	})
}

package redis

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// Store is a cove.Directory in a Redis. It is safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	where    string // for messages
	prefix   string // of every key
	node     string
	instance string
	lease    time.Duration
	watched  bool // by Sentinels, which may make another server the master
	log      *slog.Logger

	token  atomic.Int64 // of the lease; 0 before the first beat
	sent   atomic.Int64
	graves graves

	closing sync.Mutex     // nothing is begun while it is closed
	closed  chan struct{}  // once Close was called
	renewal sync.WaitGroup // of locks that are held
}

var _ cove.Directory = (*Store)(nil)

// Open returns the store in a Redis, which must be there: otherwise it is
// Unavailable with ReasonNoDirectory.
func Open(ctx context.Context, c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	silence()
	client, where, err := connect(c.URL)
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, where: where, prefix: "{" + c.Prefix + "}:", node: c.Node, instance: c.Instance,
		lease: c.Lease, watched: sentineled(c.URL), log: c.Logger, closed: make(chan struct{}),
	}
	client.AddHook(counter{&s.sent})
	if _, err := s.run(ctx, scripts.check); err != nil {
		_ = s.Close() // says the same once more, if anything
		return nil, err
	}
	err = s.oneMaster(ctx)
	if err == nil {
		err = s.agree(ctx, c.Same)
	}
	if err != nil {
		_ = s.Close() // nothing was begun
		return nil, err
	}
	return s, nil
}

// agree refuses a node that has not what all others have.
func (s *Store) agree(ctx context.Context, same string) error {
	if s.node == "" || same == "" {
		return nil
	}
	a, err := s.run(ctx, scripts.agree, same, s.lease.Milliseconds())
	switch {
	case err != nil:
		return err
	case a.is("secret", 0):
		return cove.InvalidField("COVE_CLUSTER_SECRET", "is another one than the nodes have that share this Redis; set theirs, or give this node a Redis of its own").
			Reason(cove.ReasonConfiguration)
	case a.is("lease", 1):
		return cove.InvalidField("COVE_NODE_LEASE_SEC", "is %g, and the nodes that share this Redis have %g; set the same on all", s.lease.Seconds(), float64(number(a[1]))/1000).
			Reason(cove.ReasonConfiguration)
	}
	return nil
}

// silence keeps the library from writing to the standard error, once for all:
// what matters comes back as an error.
var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends all connections. Every other method fails with Unavailable
// afterwards. It is idempotent.
func (s *Store) Close() error {
	if !s.close() {
		return nil
	}
	s.renewal.Wait()
	if err := s.client.Close(); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the connections to %s did not end well", s.where)
	}
	return nil
}

// close reports whether the store was open.
func (s *Store) close() bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	select {
	case <-s.closed:
		return false
	default:
		close(s.closed)
		return true
	}
}

// during runs do in the background, unless the store is closed. Close waits for it.
func (s *Store) during(do func()) bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	select {
	case <-s.closed:
		return false
	default:
		s.renewal.Go(do)
		return true
	}
}

// usable reports why nothing can be done.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return ended(err)
	}
	select {
	case <-s.closed:
		return cove.Errorf(cove.Unavailable, "the store is closed")
	default:
		return nil
	}
}

// Commands returns how many commands were sent so far.
func (s *Store) Commands() int64 { return s.sent.Load() }

// counter counts commands on their way out.
type counter struct{ sent *atomic.Int64 }

func (c counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// compound makes one name of several texts, so that no two lists have the same.
func compound(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		fmt.Fprintf(&b, "%d:%s,", len(t), t)
	}
	return b.String()
}

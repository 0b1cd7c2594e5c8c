package ticket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Shared is where many servers note together what was spent, such as the directory of
// a cluster. What it lost was never spent.
type Shared interface {
	// SpendOnce reports whether nobody spent a name before; it is remembered for a
	// while.
	SpendOnce(ctx context.Context, name string, remember time.Duration) (bool, error)
	// Spent reports whether a name was spent and is remembered.
	Spent(ctx context.Context, name string) (bool, error)
}

const (
	// trusted is how long a server believes that a browser is signed in without asking
	// again. So long one that signed out at another server may still be answered.
	trusted = time.Second
	// maxTrusted bounds the browsers that are remembered for that.
	maxTrusted = 10_000
	// clocks is how much the clocks of servers may differ. A login link that was used
	// is remembered for so much longer.
	clocks = time.Hour
)

// together is the register of a server among others. A browser is signed in while
// its name is noted as in and not as out, so that whatever the shared memory loses
// signs browsers out, and never in. No answer is no sign-in.
type together struct {
	shared Shared
	used   spent // what went through this server: a bound for each principal

	mu   sync.Mutex
	good map[string]time.Time // guarded by mu; by nonce, until when a browser is trusted
}

func newTogether(shared Shared) *together {
	return &together{shared: shared, good: map[string]time.Time{}}
}

// nameOf is what is noted of a ticket. Nobody can tell the ticket from it.
func nameOf(what string, t ticket) string {
	sum := sha256.Sum256([]byte(t.nonce))
	return "ticket:" + what + ":" + hex.EncodeToString(sum[:])
}

// The words before names.
const (
	wordUsed = "used"
	wordIn   = "in"
	wordOut  = "out"
)

func (s *together) check(ctx context.Context, t ticket) error {
	if s.used.contains(t) {
		return bad()
	}
	switch t.grant.Kind { //nolint:exhaustive // all others are good until their time is up
	case cove.GrantLogin:
		return s.wants(ctx, t, wordUsed, false)
	case cove.GrantConsole:
		return s.checkIn(ctx, t)
	}
	return nil
}

// checkIn asks whether a browser is signed in, unless it was asked just now.
func (s *together) checkIn(ctx context.Context, t ticket) error {
	asked := time.Now()
	if s.trusts(t, asked) {
		return nil
	}
	if err := s.wants(ctx, t, wordOut, false); err != nil {
		return err
	}
	if err := s.wants(ctx, t, wordIn, true); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.good) >= maxTrusted {
		clear(s.good)
	}
	s.good[t.nonce] = asked.Add(trusted)
	return nil
}

func (s *together) trusts(t ticket, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.good[t.nonce]
	if ok && !now.Before(until) {
		delete(s.good, t.nonce)
	}
	return ok && now.Before(until)
}

// wants is Unauthenticated unless a ticket is noted, or not, as it should be.
func (s *together) wants(ctx context.Context, t ticket, word string, noted bool) error {
	is, err := s.shared.Spent(ctx, nameOf(word, t))
	if err != nil {
		return unasked(err)
	}
	if is != noted {
		return bad()
	}
	return nil
}

func (s *together) use(ctx context.Context, t ticket) error {
	// First here: who signs in all day is stopped before the others hear of it.
	if first, err := s.used.add(t); err != nil || !first {
		if err == nil {
			err = bad() // another request was faster
		}
		return err
	}
	first, err := s.shared.SpendOnce(ctx, nameOf(wordUsed, t), cove.MaxLoginTTL+clocks)
	if err != nil {
		s.used.remove(t) // it may not be used up; the others know
		return unasked(err)
	}
	if !first {
		return bad()
	}
	return nil
}

func (s *together) enter(ctx context.Context, t ticket) error {
	if _, err := s.shared.SpendOnce(ctx, nameOf(wordIn, t), cove.ConsoleTTL); err != nil {
		return unasked(err)
	}
	return nil
}

// leave is remembered for longer than who entered, whatever the clocks say.
func (s *together) leave(ctx context.Context, t ticket) error {
	if _, err := s.used.add(t); err != nil {
		return err
	}
	if _, err := s.shared.SpendOnce(ctx, nameOf(wordOut, t), cove.ConsoleTTL); err != nil {
		return unasked(err)
	}
	return nil
}

// unasked is the answer where nobody can say whether a ticket is still good.
func unasked(err error) error {
	if code := cove.CodeOf(err); code == cove.Canceled || code == cove.Timeout {
		return err
	}
	reason := cove.ReasonOf(err)
	if reason == "" {
		reason = cove.ReasonNoDirectory
	}
	return cove.Wrap(cove.Unavailable, err, "this server cannot ask the others who is signed in, so nobody is let in by a sign-in").
		Reason(reason).With("retry_after", 2).Remedy("try again in a moment; if it stays so, the operator sees to REDIS_URL")
}

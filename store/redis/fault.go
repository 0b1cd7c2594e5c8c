package redis

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// retryAfter is how many seconds callers wait for a directory.
const retryAfter = 2

// ended is what a context that has ended means.
func ended(err error) error {
	return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
}

// unavailable is the error of a directory that cannot be used now.
func (s *Store) unavailable(err error, words, remedy string) error {
	return cove.Wrap(cove.Unavailable, err, "the directory at %s %s", s.where, words).
		Reason(cove.ReasonNoDirectory).Remedy("%s", remedy).With("retry_after", retryAfter)
}

// fenced is the error of a node that lost its lease.
func (s *Store) fenced() error {
	return cove.Errorf(cove.Unavailable, "node %s lost its lease, so that others may have taken over what it has; it writes again once it has a new one", s.node).
		Reason(cove.ReasonFenced).Remedy("try again in a moment; where it goes on, look at the connection of node %s to Redis", s.node).
		With("retry_after", retryAfter)
}

// settling is the error of a directory that may lack what is asked for.
func (s *Store) settling(millis int64) error {
	return cove.Errorf(cove.Unavailable, "the directory was begun anew, and nodes still tell it what they have: it is not known yet which sessions there are and how many").
		Reason(cove.ReasonNoDirectory).Remedy("try again in %d seconds", seconds(millis)).With("retry_after", seconds(millis))
}

func seconds(millis int64) int { return int((millis + 999) / 1000) }

// fault turns what went wrong with Redis into an error that says what to do.
func (s *Store) fault(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		return ended(e)
	}
	if errors.Is(err, context.Canceled) {
		return ended(err)
	}
	// The connection has the caller's deadline, too, and may notice it first.
	if at, bound := ctx.Deadline(); bound && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(at) {
		return ended(context.DeadlineExceeded)
	}
	if e := s.usable(ctx); e != nil {
		return e // closed meanwhile
	}
	answer, said := errors.AsType[redis.Error](err)
	if !said {
		if c, many := s.client.(*redis.ClusterClient); many {
			c.ReloadState(ctx) // another server may have what this one had
		}
		return s.unavailable(err, "cannot be reached", "check that Redis runs there and that REDIS_URL is right")
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	switch {
	case word == "NOAUTH" || word == "WRONGPASS" || strings.Contains(text, "invalid username-password") || strings.Contains(text, "without any password"):
		return s.unavailable(err, "does not know us", "put the right user and password into REDIS_URL")
	case word == "NOPERM" || strings.Contains(text, "No permissions"):
		return s.unavailable(err, "does not let us run scripts on our keys", "give the user in REDIS_URL all keys of the prefix, all channels of it, and @all without @dangerous, but with info")
	case word == "OOM":
		return s.unavailable(err, "has no memory left", "raise maxmemory of Redis, with maxmemory-policy noeviction")
	case word == "MISCONF":
		return s.unavailable(err, "cannot write to its disk", "see the log of Redis, and give it space")
	case refused(err):
		return s.unavailable(err, "has no master that answers", "wait for the failover to end, or look at Sentinel or the cluster")
	}
	return cove.Wrap(cove.Internal, err, "Redis refused a script; the log has the cause")
}

// refusals are what a server says that did nothing of what it was sent.
var refusals = []string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY", "MASTERDOWN", "BUSY", "NOREPLICAS"}

// refused reports an answer that says that nothing was done, and that another
// time or another server may do it.
func refused(err error) bool {
	answer, said := errors.AsType[redis.Error](err)
	if !said {
		return false
	}
	text := strings.TrimPrefix(answer.Error(), "ERR ")
	word, _, _ := strings.Cut(text, " ")
	return slices.Contains(refusals, word)
}

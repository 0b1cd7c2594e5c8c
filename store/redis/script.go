package redis

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

//go:embed script/*.lua
var files embed.FS

// scripts is all that is ever run.
var scripts = struct {
	check, agree, page, keyByHash, locate, members, spent  *redis.Script
	room                                                   *redis.Script
	beat                                                   *redis.Script // takes the lease that others compare
	leave, cordon                                          *redis.Script
	putSession, deleteSession, sweep                       *redis.Script
	putRecord, deleteRecord, clearRecords, trimRuns, usage *redis.Script
	takeClaim, setClaim, dropClaim, spend                  *redis.Script
	takeLock, renewLock, freeLock                          *redis.Script
}{
	check: read("check"), agree: read("agree"), page: read("page"), keyByHash: read("key_by_hash"), locate: read("session", "session_locate"), members: read("members"),
	spent: read("spent"), room: read("session", "session_room"),
	beat:  read("beat"),
	leave: write("leave"), cordon: write("cordon"),
	putSession: write("session", "session_put"), deleteSession: write("session", "session_delete"), sweep: write("session_sweep"),
	putRecord: write("record_put"), deleteRecord: write("record", "record_delete"), clearRecords: write("record", "record_clear"),
	trimRuns: write("record", "run_trim"), usage: write("usage"),
	takeClaim: write("claim_take"), setClaim: write("claim_set"), dropClaim: write("claim_drop"), spend: write("spend"),
	takeLock: write("lock_take"), renewLock: write("lock_renew"), freeLock: read("lock_free"), // who lost its lease may still let go
}

// read puts a script together that anybody may run.
func read(parts ...string) *redis.Script {
	var text strings.Builder
	for _, p := range append([]string{"prelude"}, parts...) {
		part, err := files.ReadFile("script/" + p + ".lua")
		if err != nil {
			part = fmt.Appendf(nil, "return redis.error_reply('ERR %s.lua is not in this build')", p)
		}
		text.Write(part)
	}
	return redis.NewScript(text.String())
}

// write is read for a script that a node runs only while its lease is good.
func write(parts ...string) *redis.Script { return read(append([]string{"fence"}, parts...)...) }

// While a master moves, servers refuse what they are sent: see refused.
const (
	maxRefusals  = 8
	refusalPause = 50 * time.Millisecond // times the refusals so far
)

// run runs a script and returns its answer: a word, and what belongs to it.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) (answer, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	all := append([]any{s.node, fmt.Sprintf("%d %s", s.token.Load(), s.instance), s.lease.Milliseconds()}, args...)
	for n := 1; ; n++ {
		got, err := script.Run(ctx, s.client, []string{s.prefix}, all...).Slice()
		switch {
		case err == nil:
			return s.read(got)
		case !refused(err) || n > maxRefusals:
			return nil, s.fault(ctx, err)
		}
		if err := s.pause(ctx, time.Duration(n)*refusalPause); err != nil {
			return nil, err
		}
	}
}

// pause waits, unless the caller or the store has ended.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.closed:
	}
	return s.usable(ctx)
}

// answer is what a script returned.
type answer []string

func (s *Store) read(got []any) (answer, error) {
	a := make(answer, len(got))
	for i, v := range got {
		a[i], _ = v.(string)
	}
	if len(a) > 0 && a[0] == "fenced" {
		return nil, s.fenced()
	}
	return a, nil
}

// is reports whether the answer has a word and so much that belongs to it.
func (a answer) is(word string, more int) bool { return len(a) > more && a[0] == word }

// strange is the error for an answer that no script of ours gives.
func strange(a answer) error {
	word := ""
	if len(a) > 0 {
		word = a[0]
	}
	return cove.Errorf(cove.Internal, "a script of ours answered %.40q, which nobody expects", word)
}

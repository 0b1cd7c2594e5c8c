package memory_test

import (
	"context"
	"errors"
	"flag"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/memory"
	"github.com/cove-sandbox/cove/store/storetest"
)

// Mutants are stores that break one promise each. The suite must find them all.
var mutants = map[string]func(*memory.Store) cove.Store{
	"any version": func(s *memory.Store) cove.Store { return anyVersion{s} },
	"alias":       func(s *memory.Store) cove.Store { return &alias{Store: s, seen: map[cove.ID]*cove.Session{}} },
	"no context":  func(s *memory.Store) cove.Store { return noContext{s} },
	"never closed": func(s *memory.Store) cove.Store {
		return neverClosed{s}
	},
	"delete not idempotent": func(s *memory.Store) cove.Store { return deleteOnce{s} },
	"backwards": func(s *memory.Store) cove.Store {
		return lists{Store: s, after: func(all []*cove.Session) { slices.Reverse(all) }}
	},
	"no limit": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.Limit = 0 }}
	},
	"page too long": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.Limit += min(f.Limit, 1) }}
	},
	"no after": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.After = "" }}
	},
	"no node": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.Node = "" }}
	},
	"no labels": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.Metadata = nil }}
	},
	"trimmed": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.User = strings.TrimSpace(f.User) }}
	},
	"no case": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.User = strings.ToLower(f.User) }}
	},
	"never ended": func(s *memory.Store) cove.Store {
		return lists{Store: s, before: func(f *cove.SessionFilter) { f.State = cove.State(strings.TrimPrefix(string(f.State), "ended")) }}
	},
	"adds but does not sum": func(s *memory.Store) cove.Store { return usage{s} },
	"keys by name":          func(s *memory.Store) cove.Store { return keyByName{s} },
	"claims for ever": func(s *memory.Store) cove.Store {
		return claims{Store: s, now: func(time.Time) time.Time { return time.Time{} }}
	},
	"claims too long": func(s *memory.Store) cove.Store {
		return claims{Store: s, now: func(t time.Time) time.Time { return t.Add(-1) }}
	},
	"claims too short": func(s *memory.Store) cove.Store {
		return claims{Store: s, now: func(t time.Time) time.Time { return t.Add(1) }}
	},
	"claims from nowhere": func(s *memory.Store) cove.Store { return setClaim{s} },
	"tenants of all":      func(s *memory.Store) cove.Store { return snapshots{s} },
	"runs of all":         func(s *memory.Store) cove.Store { return runs{s} },
	"messages of all":     func(s *memory.Store) cove.Store { return messages{s} },
	"forgets too much":    func(s *memory.Store) cove.Store { return forgetful{s} },
	"trims too much":      func(s *memory.Store) cove.Store { return trims{s} },
}

// TestMutant is no test: it is what TestMutants runs in a process of its own,
// where it is meant to fail.
func TestMutant(t *testing.T) {
	if flag.NArg() == 1 {
		storetest.Run(t, func(*testing.T) cove.Store { return mutants[flag.Arg(0)](memory.New()) })
	}
}

func TestMutants(t *testing.T) {
	for name := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutant$", "-test.failfast",
				"-rapid.nofailfile", "-rapid.shrinktime=1ms", "--", name)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(string(out), "--- FAIL: TestMutant/") {
				t.Errorf("nothing was found: %v\n%s", err, out)
			}
		})
	}
}

type anyVersion struct{ *memory.Store }

func (m anyVersion) PutSession(ctx context.Context, rec *cove.Session) error {
	if old, err := m.GetSession(ctx, rec.ID); err == nil && rec.Version != 0 {
		rec.Version = old.Version
	}
	return m.Store.PutSession(ctx, rec)
}

type alias struct {
	*memory.Store

	mu   sync.Mutex
	seen map[cove.ID]*cove.Session
}

func (m *alias) GetSession(ctx context.Context, id cove.ID) (*cove.Session, error) {
	rec, err := m.Store.GetSession(ctx, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.seen[id]; err == nil && old != nil && old.Version == rec.Version {
		return old, nil
	}
	m.seen[id] = rec
	return rec, err
}

type noContext struct{ *memory.Store }

func (m noContext) DeleteRun(ctx context.Context, id cove.ID) error {
	return m.Store.DeleteRun(context.WithoutCancel(ctx), id)
}

type neverClosed struct{ *memory.Store }

func (neverClosed) Close() error { return nil }

type deleteOnce struct{ *memory.Store }

func (m deleteOnce) DeleteSession(ctx context.Context, id cove.ID) error {
	if _, err := m.GetSession(ctx, id); err != nil {
		return err
	}
	return m.Store.DeleteSession(ctx, id)
}

// lists gives other lists than it should.
type lists struct {
	*memory.Store

	before func(*cove.SessionFilter)
	after  func([]*cove.Session)
}

func (m lists) Sessions(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	if m.before != nil {
		m.before(&f)
		return m.Store.Sessions(ctx, f)
	}
	return func(yield func(*cove.Session, error) bool) {
		var all []*cove.Session
		for rec, err := range m.Store.Sessions(ctx, f) {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, rec)
		}
		m.after(all)
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

type usage struct{ *memory.Store }

func (m usage) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (cove.Consumption, error) {
	_, err := m.Store.AddUsage(ctx, tenant, by)
	return by, err
}

type keyByName struct{ *memory.Store }

func (m keyByName) KeyByID(ctx context.Context, id cove.ID) (*cove.Key, error) {
	for k, err := range m.Keys(ctx) {
		if err != nil || strings.EqualFold(string(k.ID), string(id)) {
			return k, err
		}
	}
	return nil, cove.Errorf(cove.NotFound, "there is no such key")
}

type claims struct {
	*memory.Store

	now func(time.Time) time.Time
}

func (m claims) TakeClaim(ctx context.Context, c cove.Claim, now time.Time) (*cove.Claim, error) {
	return m.Store.TakeClaim(ctx, c, m.now(now))
}

type setClaim struct{ *memory.Store }

func (m setClaim) SetClaim(ctx context.Context, tenant, key string, result cove.ID) error {
	if err := m.Store.SetClaim(ctx, tenant, key, result); !errors.Is(err, cove.NotFound) {
		return err
	}
	return nil
}

type snapshots struct{ *memory.Store }

func (m snapshots) Snapshots(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	f.Tenant = ""
	return m.Store.Snapshots(ctx, f)
}

type messages struct{ *memory.Store }

func (m messages) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	f.Owner = ""
	return m.Store.Messages(ctx, f)
}

// forgetful deletes a thread of every owner.
type forgetful struct{ *memory.Store }

func (m forgetful) DeleteMessages(ctx context.Context, tenant, owner, thread string) error {
	for msg, err := range m.Messages(ctx, cove.MessageFilter{Tenant: tenant, Thread: thread}) {
		if err != nil {
			return err
		}
		if err := m.Store.DeleteMessages(ctx, tenant, msg.Owner, thread); err != nil {
			return err
		}
	}
	return m.Store.DeleteMessages(ctx, tenant, owner, thread)
}

type trims struct{ *memory.Store }

func (m trims) TrimMessages(ctx context.Context, before time.Time) (int64, error) {
	return m.Store.TrimMessages(ctx, before.Add(1))
}

type runs struct{ *memory.Store }

func (m runs) Runs(ctx context.Context, _ cove.RunFilter) iter.Seq2[*cove.Run, error] {
	return m.Store.Runs(ctx, cove.RunFilter{})
}

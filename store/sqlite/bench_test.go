package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// sizes show whether the cost depends on how many sessions there are.
var sizes = []int{10, 1_000, 10_000}

func benchSession() *cove.Session {
	now := time.Now()
	rec := &cove.Session{
		ID: cove.NewID(), Tenant: cove.DefaultTenant, Owner: "bench", State: cove.Running, Provider: "fake", Node: "local",
		CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(time.Hour),
	}
	rec.Spec = cove.Spec{
		Provider: "fake", Template: "python", Flavor: "small", User: "bench", Thread: string(rec.ID), Policy: "agent-bash",
		Resources: cove.Resources{CPUs: 1, Memory: cove.GiB, PIDs: 128},
		Network:   cove.Network{Mode: cove.NetworkNone},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 256 * cove.MiB, Files: 10000},
		Idle:      30 * time.Minute, Lifetime: 24 * time.Hour,
	}
	return rec
}

// benchAt runs a benchmark on stores that hold more and more sessions.
func benchAt(b *testing.B, run func(b *testing.B, s *sqlite.Store)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "cove.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			for range n {
				if err := s.PutSession(b.Context(), benchSession()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			run(b, s)
		})
	}
}

// BenchmarkPutSession inserts sessions; BenchmarkBareInsert is what SQLite
// itself takes for the same rows.
func BenchmarkPutSession(b *testing.B) {
	benchAt(b, func(b *testing.B, s *sqlite.Store) {
		for b.Loop() {
			if err := s.PutSession(b.Context(), benchSession()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBareInsert is a prepared statement and nothing else, into the same
// table with a text of the usual length.
func BenchmarkBareInsert(b *testing.B) {
	benchAt(b, func(b *testing.B, s *sqlite.Store) {
		st, err := s.Writer().PrepareContext(b.Context(), sqlite.InsertSession)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		data := fmt.Sprintf("%1000d", 0)
		for b.Loop() {
			rec := benchSession()
			if _, err := st.Exec(1, rec.Tenant, "", rec.Spec.User, rec.Spec.Thread, "running", "", data, string(rec.ID)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReplaceSession writes a session that is there already.
func BenchmarkReplaceSession(b *testing.B) {
	benchAt(b, func(b *testing.B, s *sqlite.Store) {
		rec := benchSession()
		for b.Loop() {
			if err := s.PutSession(b.Context(), rec); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGetSession reads one session.
func BenchmarkGetSession(b *testing.B) {
	benchAt(b, func(b *testing.B, s *sqlite.Store) {
		rec := benchSession()
		if err := s.PutSession(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := s.GetSession(b.Context(), rec.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFindSession looks one session up by its user and thread.
func BenchmarkFindSession(b *testing.B) {
	benchAt(b, func(b *testing.B, s *sqlite.Store) {
		rec := benchSession()
		if err := s.PutSession(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		f := cove.SessionFilter{Tenant: rec.Tenant, User: rec.Spec.User, Thread: rec.Spec.Thread}
		for b.Loop() {
			for _, err := range s.Sessions(b.Context(), f) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

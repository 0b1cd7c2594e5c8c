package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// little is little of everything that is measured of a server.
func little(t *testing.T) serverOptions {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return serverOptions{
		restartOptions: restartOptions{cove: self, env: []string{asCove}, provider: "fake", patience: time.Minute},
		rounds:         2, execs: 20, callers: 2, transfer: 4 * cove.MiB, burst: 5, sessions: 3, each: 2, churn: 5, look: time.Millisecond,
	}
}

// TestServerRows proves that everything is measured, on a pretend provider; the
// numbers are not looked at.
func TestServerRows(t *testing.T) {
	rows, err := serverRows(t.Context(), little(t), openFake)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" {
			t.Errorf("%+v lacks something", r)
		}
	}
}

func TestServerRowsSayWhatIsWrong(t *testing.T) {
	broken := errors.New("broken")
	if _, err := serverRows(t.Context(), little(t), func(string) (cove.Provider, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a provider that does not open: %v", err)
	}
	o := little(t)
	o.cove = "/nowhere"
	if _, err := serverRows(t.Context(), o, openFake); err == nil {
		t.Error("there is no server")
	}
	o = little(t)
	o.env = append(o.env, "MAX_FILE_SIZE_MB=1")
	if _, err := serverRows(t.Context(), o, openFake); cove.ReasonOf(err) != cove.ReasonFileTooLarge {
		t.Errorf("a file that does not fit: %v", err)
	}
}

// A session that could not be opened in the burst is counted, and said.
func TestBurstThatDoesNotFit(t *testing.T) {
	o := little(t)
	o.env = append(o.env, "MSB_MAX_SESSIONS=3", "MSB_ENABLE_LRU_EVICTION=false")
	h := newHome(o.restartOptions, filepath.Join(t.TempDir(), "home"))
	if err := h.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.end(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	rows, err := (&served{serverOptions: o, home: h}).burstRow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].ok() || rows[0].value != 2 || !strings.Contains(rows[0].measured, "full") {
		t.Errorf("%+v", rows[0])
	}
}

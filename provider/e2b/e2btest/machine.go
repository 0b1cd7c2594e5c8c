package e2btest

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// machine is a sandbox of the provider with what E2B knows of it.
type machine struct {
	id       string
	box      cove.Sandbox
	token    string
	template string
	metadata map[string]string
	internet bool
	started  time.Time
	timeout  int

	mu    sync.Mutex
	procs map[int]*process // guarded by mu
	last  int              // guarded by mu
}

func newMachine(id string, box cove.Sandbox) *machine {
	return &machine{id: id, box: box, token: token(), procs: map[int]*process{}}
}

// end destroys the sandbox, and with it all that runs.
func (m *machine) end(ctx context.Context) error {
	m.mu.Lock()
	procs := m.procs
	m.procs = nil
	m.mu.Unlock()
	for _, p := range procs {
		p.shut()
	}
	return m.box.Destroy(ctx)
}

func (m *machine) brief() map[string]any {
	return map[string]any{
		"sandboxID": m.id, "templateID": m.template, "envdAccessToken": m.token, "envdVersion": "0.6.13", "clientID": "test",
	}
}

// listed is what a list and a look tell of it: two CPUs, and 512 MB.
func (m *machine) listed() map[string]any {
	return map[string]any{
		"sandboxID": m.id, "templateID": m.template, "metadata": m.metadata, "state": "running", "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024,
		"startedAt": m.started, "endAt": m.started.Add(time.Duration(m.timeout) * time.Second), "envdVersion": "0.6.13",
	}
}

func (m *machine) has(want url.Values) bool {
	for k := range want {
		if m.metadata[k] != want.Get(k) {
			return false
		}
	}
	return true
}

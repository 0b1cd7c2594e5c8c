package e2bapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// metric is what a sandbox uses at one time.
type metric struct {
	Time      time.Time  `json:"timestamp"`
	Unix      int64      `json:"timestampUnix"`
	CPUs      int        `json:"cpuCount"`
	CPUUsed   float64    `json:"cpuUsedPct"` // of all its CPUs
	MemUsed   cove.Bytes `json:"memUsed"`
	MemTotal  cove.Bytes `json:"memTotal"`
	MemCache  cove.Bytes `json:"memCache"`
	DiskUsed  cove.Bytes `json:"diskUsed"`
	DiskTotal cove.Bytes `json:"diskTotal"`
}

// slack is how far a client's clock may be from ours where it asks for what was used
// until now.
const slack = time.Minute

// metrics tells what a sandbox uses now, as a list of one: nobody keeps what it used
// before. One that does not run uses nothing.
func (c *call) metrics() error {
	s, err := c.session()
	if err != nil {
		return err
	}
	now, out := time.Now(), []metric{}
	for name, outside := range map[string]func(t time.Time) bool{
		"start": func(t time.Time) bool { return now.Before(t.Add(-slack)) },
		"end":   func(t time.Time) bool { return now.After(t.Add(slack)) },
	} {
		text := c.r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return cove.InvalidField(name, "%q is not a number of seconds since 1970", clip(text))
		}
		if outside(time.Unix(int64(seconds), 0)) {
			c.answer(http.StatusOK, out)
			return nil
		}
	}
	if s.State == cove.Running {
		m, err := c.measure(c.r.Context(), s)
		if err != nil {
			return err
		}
		out = append(out, m)
	}
	c.answer(http.StatusOK, out)
	return nil
}

// maxMeasured bounds how many sandboxes one call looks at.
const maxMeasured = 100

// manyMetrics tells what several sandboxes use now. Those that are not there, or do
// not run, are left out.
func (c *call) manyMetrics() error {
	var ids []string
	for _, text := range c.r.URL.Query()["sandbox_ids"] {
		ids = append(ids, strings.Split(text, ",")...)
	}
	if len(ids) > maxMeasured {
		return cove.InvalidField("sandbox_ids", "are %d; the most is %d", len(ids), maxMeasured)
	}
	out := map[string]metric{}
	for _, id := range ids {
		m, ok, err := c.measured(cove.ID(id))
		if err != nil {
			return err
		}
		if ok {
			out[id] = m
		}
	}
	c.answer(http.StatusOK, map[string]any{"sandboxes": out})
	return nil
}

func (c *call) measured(id cove.ID) (m metric, ok bool, err error) {
	if !id.Valid() {
		return m, false, nil
	}
	s, err := c.platform.Sessions().Get(c.r.Context(), id)
	if err == nil && s.State == cove.Running {
		m, err = c.measure(c.r.Context(), s)
		ok = err == nil
	}
	if cove.CodeOf(err) == cove.NotFound || lost(err) {
		return m, false, nil // also one that has just ended
	}
	return m, ok, err
}

func (c *call) measure(ctx context.Context, s *cove.Session) (metric, error) {
	u, err := c.platform.Sessions().Usage(ctx, s.ID)
	if err != nil {
		return metric{}, err
	}
	now := time.Now()
	return metric{
		Time: now.UTC(), Unix: now.Unix(), CPUs: cpusOf(s),
		CPUUsed: c.h.meters.share(s, u.CPU, now) / float64(cpusOf(s)) * 100,
		MemUsed: u.Memory, MemTotal: s.Spec.Resources.Memory, DiskUsed: u.Disk, DiskTotal: s.Spec.Workspace.Size,
	}, nil
}

// meters remembers how much CPU time sandboxes had used when somebody looked last. The
// zero value is ready.
type meters struct {
	mu  sync.Mutex
	all map[cove.ID]reading // guarded by mu
}

type reading struct {
	cpu time.Duration
	at  time.Time
}

// maxMeters bounds the sandboxes that are remembered.
const maxMeters = 4096

// share is how many CPUs a sandbox kept busy since somebody looked last, or since it
// was made.
func (m *meters) share(s *cove.Session, cpu time.Duration, now time.Time) float64 {
	m.mu.Lock()
	last, ok := m.all[s.ID]
	if m.all == nil || len(m.all) >= maxMeters && !ok {
		m.all = map[cove.ID]reading{}
	}
	m.all[s.ID] = reading{cpu, now}
	m.mu.Unlock()
	if !ok || cpu < last.cpu { // it has another sandbox since
		last = reading{at: s.CreatedAt}
	}
	since := now.Sub(last.at)
	if since <= 0 {
		return 0
	}
	return float64(cpu-last.cpu) / float64(since)
}

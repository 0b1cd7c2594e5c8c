package telemetry

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cove-sandbox/cove"
)

// Source is what is asked when somebody reads the metrics.
type Source struct {
	Platform cove.Platform                  // of the server's owner
	Healthy  func(ctx context.Context) bool // whether the server can do its work
}

// Serve says whom to ask from now on.
func (t *Telemetry) Serve(s Source) { t.metrics.gauges.source.Store(&s) }

// scrape marks the context of our own questions.
type scrape struct{}

// gauges are the numbers that are asked for when somebody reads them.
type gauges struct {
	source atomic.Pointer[Source]
	build  prometheus.Metric

	info, healthy, uptime                         *prometheus.Desc
	sessions, flavors, maxSessions, queued, reuse *prometheus.Desc
	memory, maxMemory, cpus                       *prometheus.Desc
	poolSize, poolAvailable                       *prometheus.Desc
	runs, done, failing, paused                   *prometheus.Desc
}

func newGauges(cfg Config) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cove_"+name, help, labels, nil)
	}
	g := &gauges{
		info:    desc("build_info", "What runs here; always 1.", "version", "node", "goversion"),
		healthy: desc("healthy", "1 if the server can do its work, 0 if not."),
		uptime:  desc("uptime_seconds", "How long the server has been up."),

		sessions:    desc("sessions", "Sessions by state.", "state"),
		flavors:     desc("sessions_active", "Sessions with a sandbox, by flavor.", "flavor"),
		maxSessions: desc("sessions_max", "How many sessions may have a sandbox; 0: no bound."),
		queued:      desc("sessions_queued", "Callers that wait for room."),
		reuse:       desc("session_reuse_ratio", "The part of opens that found a live session, since the start."),
		memory:      desc("memory_reserved_bytes", "Memory that sessions may use, in all."),
		maxMemory:   desc("memory_max_bytes", "How much they may reserve; 0: no bound."),
		cpus:        desc("cpus_reserved", "CPUs that sessions may use, in all."),

		poolSize:      desc("pool_size", "How many sandboxes the pool is to hold."),
		poolAvailable: desc("pool_available", "How many are ready."),

		runs:    desc("task_runs_total", "Runs of a background task.", "task"),
		done:    desc("task_done_total", "Things that a background task dealt with.", "task"),
		failing: desc("task_failing", "1 if the last run of a task went wrong.", "task"),
		paused:  desc("task_paused", "1 if a task does not run by itself.", "task"),
	}
	g.build = prometheus.MustNewConstMetric(g.info, prometheus.GaugeValue, 1, text(cfg.Version), text(cfg.Node), runtime.Version())
	return g
}

// Describe implements the collector of the library.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.info, g.healthy, g.uptime, g.sessions, g.flavors, g.maxSessions, g.queued, g.reuse,
		g.memory, g.maxMemory, g.cpus, g.poolSize, g.poolAvailable, g.runs, g.done, g.failing, g.paused,
	} {
		to <- d
	}
}

// Collect implements the collector of the library.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	to <- g.build
	from := g.source.Load()
	if from == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), scrape{}, true), scrapeTime)
	defer cancel()
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	set(g.healthy, number(from.Healthy(ctx)))
	if stats, err := from.Platform.Admin().Stats(ctx); err == nil {
		g.collectStats(stats, set)
	}
	tasks, err := from.Platform.Admin().Tasks(ctx)
	if err != nil {
		return // the state of the server is shown by healthy
	}
	for _, t := range tasks {
		to <- prometheus.MustNewConstMetric(g.runs, prometheus.CounterValue, float64(t.Runs), t.Name)
		to <- prometheus.MustNewConstMetric(g.done, prometheus.CounterValue, float64(t.Done), t.Name)
		set(g.failing, number(t.LastError != ""), t.Name)
		set(g.paused, number(t.State == cove.TaskPaused), t.Name)
	}
}

func (g *gauges) collectStats(s *cove.Stats, set func(*prometheus.Desc, float64, ...string)) {
	set(g.uptime, s.Uptime.Seconds())
	for _, state := range cove.States() {
		if state != cove.Ended { // those are only remembered
			set(g.sessions, float64(s.SessionsByState[state]), string(state))
		}
	}
	for flavor, n := range s.SessionsByFlavor { // the operator's words
		set(g.flavors, float64(n), text(flavor))
	}
	set(g.maxSessions, float64(s.MaxSessions))
	set(g.queued, float64(s.Queued))
	set(g.reuse, s.ReuseRate())
	set(g.memory, float64(s.Memory))
	set(g.maxMemory, float64(s.MaxMemory))
	set(g.cpus, s.CPUs)
	set(g.poolSize, float64(s.PoolSize))
	set(g.poolAvailable, float64(s.PoolAvailable))
}

// text is a word that the library takes: it panics where one is not UTF-8.
func text(word string) string { return strings.ToValidUTF8(word, "_") }

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

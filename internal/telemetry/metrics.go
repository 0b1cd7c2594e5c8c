package telemetry

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cove-sandbox/cove"
)

// Bounds on who reads the metrics.
const (
	maxScrapes = 4
	scrapeTime = 10 * time.Second
)

// Buckets, in seconds.
var (
	fast  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	long  = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800}
	lives = []float64{1, 10, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// metrics is every number that is counted as things happen. What can be asked
// for instead is in gauges.
type metrics struct {
	registry  *prometheus.Registry
	gauges    *gauges
	providers []string

	created, reused, expired, evicted, closed, instead *prometheus.CounterVec // sessions
	lifetime, opening                                  *prometheus.HistogramVec

	commands, actions                    *prometheus.CounterVec
	commandTime, actionTime, journalTime *prometheus.HistogramVec

	runs    *prometheus.CounterVec // questions to data
	runTime *prometheus.HistogramVec

	pool, limits, refusals, retries, notes   *prometheus.CounterVec
	uploads, uploaded, downloads, downloaded *prometheus.CounterVec
	requests, spans                          *prometheus.CounterVec
	requestTime                              *prometheus.HistogramVec
}

func newMetrics(cfg Config) *metrics {
	r := prometheus.NewRegistry()
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cove_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	times := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cove_" + name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(v)
		return v
	}
	m := &metrics{
		registry: r, gauges: newGauges(cfg), providers: cfg.Providers,

		created:  count("sessions_created_total", "Sessions that were made.", "provider"),
		reused:   count("sessions_reused_total", "Opens that found a live session.", "provider"),
		expired:  count("sessions_expired_total", "Sessions whose idle time or lifetime ran out.", "provider"),
		evicted:  count("sessions_evicted_total", "Sessions that were stopped to make room.", "provider"),
		closed:   count("sessions_ended_total", "Sessions that ended, by cause.", "provider", "cause"),
		instead:  count("sessions_fallback_total", "Sessions that another provider serves than the one that was to.", "provider", "instead_of"),
		lifetime: times("session_lifetime_seconds", "How long sessions lived.", lives, "provider"),
		opening:  times("session_open_seconds", "How long opening took, with the wait for room.", long, "provider", "how"),

		commands:    count("commands_total", "Programs and pieces of code, by how they went.", "provider", "verb", "outcome"),
		commandTime: times("command_duration_seconds", "How long programs and code ran.", long, "provider", "verb"),
		actions:     count("actions_total", "What callers did, by the code of the error.", "provider", "verb", "code"),
		actionTime:  times("action_duration_seconds", "How long it took.", fast, "provider", "verb"),
		journalTime: times("journal_duration_seconds", "How long actions waited for the journal.", fast, "part"),

		runs:    count("runs_total", "Questions to data, by how they were answered.", "provider", "query_type", "status", "error_type"),
		runTime: times("run_seconds", "How long answers to questions took, with the making of sandboxes.", long, "provider", "query_type"),

		pool:       count("pool_takes_total", "Sessions that found a sandbox ready, or not.", "provider", "result"),
		limits:     count("limit_violations_total", "Limits that were reached.", "provider", "limit"),
		refusals:   count("validation_failures_total", "Requests that were refused for what they asked.", "provider", "verb"),
		retries:    count("retries_total", "Actions that a client tried again in a new session.", "provider", "verb", "outcome"),
		notes:      count("notes_total", "What the engine did by itself, by the journal's word.", "provider", "kind"),
		uploads:    count("files_uploaded_total", "Files and archives that were written.", "provider"),
		uploaded:   count("files_uploaded_bytes_total", "Bytes of files that callers sent.", "provider"),
		downloads:  count("files_downloaded_total", "Files and archives that were read.", "provider"),
		downloaded: count("files_downloaded_bytes_total", "Bytes of files that callers were sent.", "provider"),

		requests:    count("http_requests_total", "HTTP requests.", "route", "method", "status"),
		requestTime: times("http_request_duration_seconds", "How long HTTP requests took, with their streams.", fast, "route"),
		spans:       count("trace_spans_total", "Spans of traces, by what became of them.", "result"),
	}
	r.MustRegister(m.gauges, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin()
	return m
}

// begin shows what seldom happens as 0 before it does: a series that begins with
// 1 has no rate, and an alert on it stays silent the first time.
func (m *metrics) begin() {
	for _, provider := range m.providers {
		for _, v := range []*prometheus.CounterVec{m.created, m.reused, m.expired, m.evicted} {
			v.WithLabelValues(provider)
		}
		for _, was := range m.providers {
			if was != provider {
				m.instead.WithLabelValues(provider, was)
			}
		}
		for _, cause := range causes {
			m.closed.WithLabelValues(provider, cause)
		}
		for _, kind := range notes {
			m.notes.WithLabelValues(provider, kind)
		}
		for _, limit := range limits {
			m.limits.WithLabelValues(provider, limit)
		}
	}
}

// Metrics returns the handler that shows them. Who may see them is decided
// before.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.metrics.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime, ErrorHandling: promhttp.ContinueOnError,
	})
}

// provider is the label for a provider: one that this server has, none where
// there is no session yet, or other.
func (m *metrics) provider(name string) string {
	switch {
	case name == "":
		return "none"
	case slices.Contains(m.providers, name):
		return name
	}
	return other
}

// ended counts an action.
func (m *metrics) ended(e cove.Ending, again bool) {
	provider, verb := m.provider(e.Provider), string(e.Verb)
	code := "ok"
	if e.Code != "" {
		code = oneOf(errorCodes, string(e.Code))
	}
	m.actions.WithLabelValues(provider, verb, code).Inc()
	m.actionTime.WithLabelValues(provider, verb).Observe(e.Wall().Seconds())
	if !e.Intended.IsZero() {
		m.journalTime.WithLabelValues("intent").Observe(e.Intended.Sub(e.Decided).Seconds())
		if !e.Done.IsZero() {
			m.journalTime.WithLabelValues("outcome").Observe(e.Ended.Sub(e.Done).Seconds())
		}
	}
	if how, ok := ran(e); ok {
		m.commands.WithLabelValues(provider, verb, how).Inc()
		if how != commandError && how != string(cove.Blocked) {
			m.commandTime.WithLabelValues(provider, verb).Observe(e.Wall().Seconds())
		}
	}
	if e.Verb == cove.FileWrite || e.Verb == cove.FileUnpack {
		m.uploaded.WithLabelValues(provider).Add(float64(e.Bytes))
		if e.Code == "" {
			m.uploads.WithLabelValues(provider).Inc()
		}
	}
	if l := limitOf(e.Outcome, e.Reason); l != "" {
		m.limits.WithLabelValues(provider, l).Inc()
	}
	if invalid(e) {
		m.refusals.WithLabelValues(provider, verb).Inc()
	}
	if again {
		outcome := "success"
		if e.Code != "" {
			outcome = "failure"
		}
		m.retries.WithLabelValues(provider, verb, outcome).Inc()
	}
}

// happened counts what is told beside the actions.
func (m *metrics) happened(h cove.Happening) {
	provider := m.provider(h.Provider)
	switch h.Kind {
	case cove.SessionCreated:
		m.created.WithLabelValues(provider).Inc()
		m.opening.WithLabelValues(provider, "created").Observe(h.Wall.Seconds())
	case cove.SessionReused:
		m.reused.WithLabelValues(provider).Inc()
		m.opening.WithLabelValues(provider, "reused").Observe(h.Wall.Seconds())
	case cove.SessionEnded:
		m.closed.WithLabelValues(provider, oneOf(causes, h.Cause)).Inc()
		m.lifetime.WithLabelValues(provider).Observe(h.Wall.Seconds())
		if h.Cause == cove.ReasonSessionExpired {
			m.expired.WithLabelValues(provider).Inc()
		}
	case cove.ProgramEnded:
		verb := string(cove.ProcessStart)
		m.commands.WithLabelValues(provider, verb, commandOf(h.Outcome, h.ExitCode, h.Code)).Inc()
		m.commandTime.WithLabelValues(provider, verb).Observe(h.Wall.Seconds())
		if l := limitOf(h.Outcome, ""); l != "" {
			m.limits.WithLabelValues(provider, l).Inc()
		}
	case cove.RunEnded:
		kind := "none"
		if h.Fault != "" {
			kind = oneOf(cove.RunErrorTypes(), h.Fault)
		}
		query := oneOf([]string{string(cove.QuerySQL), string(cove.QueryPython)}, string(h.Query))
		m.runs.WithLabelValues(provider, query, oneOf([]string{"success", "error", "timeout"}, h.Status), kind).Inc()
		m.runTime.WithLabelValues(provider, query).Observe(h.Wall.Seconds())
	case cove.FileDownloaded:
		m.downloads.WithLabelValues(provider).Inc()
		m.downloaded.WithLabelValues(provider).Add(float64(h.Bytes))
	case cove.PoolHit, cove.PoolMiss:
		m.pool.WithLabelValues(provider, h.Kind[len("pool."):]).Inc()
	default:
		m.notes.WithLabelValues(provider, oneOf(notes, h.Kind)).Inc()
		if h.Kind == noteEvicted {
			m.evicted.WithLabelValues(provider).Inc()
		}
		if h.Kind == noteInstead {
			m.instead.WithLabelValues(provider, m.provider(h.Instead)).Inc()
		}
	}
}

package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/cove-sandbox/cove"
)

// Bounds on spans that wait, and on the collector.
const (
	queueLength = 2048
	batchLength = 256
	batchTime   = 2 * time.Second
	sendTime    = 10 * time.Second
	maxAnswer   = 64 << 10
)

// exporter is where spans go when they end: through a bounded queue to the
// collector, in batches. What finds the queue full, or the collector away, is
// dropped and counted.
type exporter struct {
	to     string
	client *http.Client
	logger *slog.Logger
	encode func([]sdk.ReadOnlySpan) ([]byte, error)
	spans  *prometheus.CounterVec

	mu     sync.RWMutex
	closed bool // guarded by mu; nothing is queued any more
	queue  chan sdk.ReadOnlySpan
	done   chan struct{} // closed when the last batch was sent
	stop   context.CancelFunc

	failing bool // used by the sender alone
}

// newExporter starts the sender. Shutdown ends it.
func newExporter(to string, encode func([]sdk.ReadOnlySpan) ([]byte, error), logger *slog.Logger, spans *prometheus.CounterVec) *exporter {
	ctx, stop := context.WithCancel(context.Background())
	x := &exporter{
		to: to, encode: encode, logger: logger, spans: spans, stop: stop,
		queue: make(chan sdk.ReadOnlySpan, queueLength), done: make(chan struct{}),
		client: &http.Client{
			Timeout:       sendTime,
			Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	go x.run(ctx)
	return x
}

// OnStart implements the SDK's SpanProcessor.
func (*exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements the SDK's SpanProcessor. It never waits.
func (x *exporter) OnEnd(s sdk.ReadOnlySpan) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !x.closed {
		select {
		case x.queue <- s:
			return
		default:
		}
	}
	x.spans.WithLabelValues("dropped").Inc()
}

// ForceFlush implements the SDK's SpanProcessor. Nobody calls it.
func (*exporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements the SDK's SpanProcessor: it sends what is queued, until
// ctx ends. It is idempotent.
func (x *exporter) Shutdown(ctx context.Context) error {
	x.mu.Lock()
	if !x.closed {
		x.closed = true
		close(x.queue)
	}
	x.mu.Unlock()
	var late error
	select {
	case <-x.done:
	case <-ctx.Done():
		late = cove.Wrap(cove.Timeout, ctx.Err(), "the last traces could not be sent in time").Remedy("look at the collector")
		x.stop()
		<-x.done
	}
	x.stop()
	x.client.CloseIdleConnections()
	return late
}

// run sends batches until the queue is closed and empty.
func (x *exporter) run(ctx context.Context) {
	defer close(x.done)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	var batch []sdk.ReadOnlySpan
	for {
		select {
		case s, ok := <-x.queue:
			if !ok {
				x.send(ctx, batch)
				return
			}
			if batch = append(batch, s); len(batch) < batchLength {
				continue
			}
		case <-tick.C:
		}
		x.send(ctx, batch)
		batch = nil
	}
}

// send gives one batch to the collector. It tries once: telemetry that is late
// must not pile up.
func (x *exporter) send(ctx context.Context, batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	err := x.post(ctx, batch)
	result := "exported"
	if err != nil {
		result = "failed"
	}
	x.spans.WithLabelValues(result).Add(float64(len(batch)))
	if failing := err != nil; failing != x.failing { // one line for each change
		x.failing = failing
		if failing {
			x.logger.LogAttrs(ctx, slog.LevelWarn, "traces cannot be sent; they are dropped until they can", slog.Any("error", err))
		} else {
			x.logger.LogAttrs(ctx, slog.LevelInfo, "traces are sent again")
		}
	}
}

func (x *exporter) post(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	body, err := x.encode(batch)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // without the URL, which may hold a key
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // for the connection to be used again
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return errors.New("the collector answers " + resp.Status)
	}
	return nil
}

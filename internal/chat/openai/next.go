package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/chat"
)

// Bounds on what an endpoint may say.
const (
	maxAnswer = 4 << 20 // bytes of an answer, and of all events of a stream
	maxLine   = 1 << 20 // of a stream
	maxSaid   = 2 << 10 // of what is said about a fault
	maxCalls  = 64      // tools in one reply
)

// maxWait is the longest that an endpoint may ask to be left alone for and still be
// asked again in the same call.
const maxWait = 5 * time.Second

// errSlow is the cause where an answer took longer than Config.Timeout.
var errSlow = errors.New("the answer did not come to its end")

// Next implements [chat.Model].
func (m *Model) Next(ctx context.Context, ask chat.Ask, on func(text string)) (*chat.Reply, error) {
	body, err := m.body(ask, on != nil)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the question to the model cannot be written")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.within, errSlow)
	defer cancel()
	res, err := m.post(ctx, body, on != nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	in := &bounded{from: res.Body, left: maxAnswer}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "text/event-stream":
		return m.stream(ctx, in, on)
	case "application/json":
		return m.whole(ctx, in, on)
	default:
		said, _ := io.ReadAll(io.LimitReader(in, maxSaid)) // what it is matters little
		return nil, m.stranger(res.StatusCode, said)
	}
}

// post asks, and asks once more where the endpoint says that a short wait will do.
func (m *Model) post(ctx context.Context, body []byte, stream bool) (*http.Response, error) {
	for again := range 2 {
		res, err := m.send(ctx, body, stream)
		if err != nil {
			return nil, m.unreachable(ctx, err)
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxSaid)) // the status says enough
		_ = res.Body.Close()
		wait, asked := retryAfter(res.Header, time.Now())
		busy := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable
		if again > 0 || !busy || !asked || wait > maxWait {
			return nil, m.refused(res, said)
		}
		m.logger.LogAttrs(ctx, slog.LevelInfo, "the model is busy, and is asked again as it wishes",
			slog.Int("status", res.StatusCode), slog.Duration("wait", wait))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, m.unreachable(ctx, ctx.Err())
		}
	}
	return nil, cove.Errorf(cove.Internal, "the model was asked and nobody read the answer")
}

func (m *Model) send(ctx context.Context, body []byte, stream bool) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if stream {
		req.Header.Set("Accept", "text/event-stream")
	}
	if m.key != "" {
		req.Header.Set("Authorization", "Bearer "+m.key)
	}
	return m.http.Do(req)
}

// whole reads an answer that came in one piece. Servers that know no streams send
// it whatever they were asked for.
func (m *Model) whole(ctx context.Context, in io.Reader, on func(string)) (*chat.Reply, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, m.broken(ctx, err)
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, m.stranger(http.StatusOK, data[:min(len(data), maxSaid)])
	}
	g := gathered{on: on}
	if err := g.take(a); err != nil {
		return nil, m.midway(err)
	}
	if !g.began {
		return nil, m.stranger(http.StatusOK, data[:min(len(data), maxSaid)])
	}
	return g.reply(), nil
}

// errLong is the error where an endpoint says more than is read.
var errLong = errors.New("the answer is longer than is read")

// bounded reads so many bytes, and it is an error if there are more.
type bounded struct {
	from io.Reader
	left int
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errLong
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

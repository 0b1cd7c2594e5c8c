package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// tell is how often a client that wants to know hears of a call.
const tell = time.Second

// maxLine bounds the line of output that a client hears.
const maxLine = 200

// progress tells a client how long a call takes and what it printed last. Where the
// client did not ask, it does nothing.
type progress struct {
	end  context.CancelFunc
	done sync.WaitGroup
	on   bool

	mu    sync.Mutex
	bytes int64  // guarded by mu
	last  []byte // the line that was begun last, or ended last; guarded by mu
	fresh bool   // last has ended; guarded by mu
}

func (c *call) watch(ctx context.Context) *progress {
	p := &progress{end: func() {}}
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return p
	}
	p.on = true
	ctx, p.end = context.WithCancel(ctx)
	began := time.Now()
	p.done.Go(func() {
		clock := time.NewTicker(tell)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			}
			took := time.Since(began)
			if c.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: took.Seconds(), Message: p.words(took),
			}) != nil {
				return
			}
		}
	})
	return p
}

// stop returns when the client hears nothing more.
func (p *progress) stop() {
	p.end()
	p.done.Wait()
}

// output is told what a program writes; nil where nobody wants to know.
func (p *progress) output() func(cove.Chunk) {
	if !p.on {
		return nil
	}
	return p.saw
}

func (p *progress) saw(chunk cove.Chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(len(chunk.Data))
	for line := range bytes.Lines(chunk.Data) {
		if p.fresh {
			p.last, p.fresh = p.last[:0], false
		}
		p.fresh = bytes.HasSuffix(line, []byte("\n"))
		line = bytes.TrimRight(line, "\r\n")
		p.last = append(p.last, line[:min(len(line), maxLine-min(maxLine, len(p.last)))]...)
	}
}

func (p *progress) words(took time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	words := fmt.Sprintf("%s, %d bytes of output", took.Round(time.Second), p.bytes)
	if len(p.last) == 0 {
		return words
	}
	return words + ": " + strings.ToValidUTF8(string(p.last), "\uFFFD")
}

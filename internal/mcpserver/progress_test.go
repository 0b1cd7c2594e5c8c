package mcpserver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove/internal/mcpserver"
)

func TestProgress(t *testing.T) {
	world := newWorld(t)
	heard := make(chan *mcp.ProgressNotificationParams, 100)
	o := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params }}
	over := serve(t, mcpserver.Config{}, world.platform).connect("boss", o)
	streams, _ := stdio(t, mcpserver.Config{}, world.As(boss), o)
	for name, c := range map[string]client{"http": over, "stdio": streams} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p := &mcp.CallToolParams{Name: "execute_command", Arguments: args{"command": "printf 'first\\nsec'; printf 'ond\\n'; sleep 1000", "timeout": 2000}}
			p.SetProgressToken(name)
			_, _ = c.CallTool(ctx, p)
		}()
		next := func() *mcp.ProgressNotificationParams {
			for p := range heard {
				if p.ProgressToken == name && strings.HasSuffix(p.Message, "s, 13 bytes of output: second") {
					return p
				}
			}
			return nil
		}
		a, b := next(), next()
		if b.Progress <= a.Progress {
			t.Errorf("%s: %+v, then %+v", name, a, b)
		}
		cancel()
		<-ended
	}
}

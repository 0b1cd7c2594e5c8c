package agenttool_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

// platform answers everything alike and remembers what it was asked.
type platform struct {
	cove.Platform

	full, broken error
	template     string
	closed       []cove.ID
	in           []cove.ID
	asked        []cove.CodeRequest
}

func (p *platform) Sessions() cove.Sessions { return opener{p: p} }

func (p *platform) Contexts(id cove.ID) cove.Contexts {
	p.in = append(p.in, id)
	return runner{p: p}
}

type opener struct {
	cove.Sessions

	p *platform
}

func (o opener) Open(_ context.Context, req cove.OpenRequest) (*cove.Session, error) {
	o.p.template = req.Spec.Template
	return &cove.Session{ID: "made"}, o.p.full
}

func (o opener) Close(ctx context.Context, id cove.ID, _ bool) (cove.ID, error) {
	o.p.closed = append(o.p.closed, id)
	return "", ctx.Err()
}

type runner struct {
	cove.Contexts

	p *platform
}

func (r runner) Run(_ context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	r.p.asked = append(r.p.asked, req)
	x := ended(cove.Exited, 0, "done\n", "")
	return &x, r.p.broken
}

func TestRunPython(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	full, broken := cove.Errorf(cove.Exhausted, "no room"), cove.Errorf(cove.Unavailable, "it is down").Remedy("wait")
	for name, tt := range map[string]struct {
		gone   bool
		o      agenttool.Options
		p      platform
		text   string
		asked  *cove.CodeRequest
		in     cove.ID
		closed int
	}{
		"fresh": {
			o: agenttool.Options{Template: "data", Timeout: time.Second}, text: "done", in: "made", closed: 1,
			asked: &cove.CodeRequest{Language: "python", Code: "x", Limits: cove.Limits{Wall: time.Second}, Imports: cove.ImportsBlock},
		},
		"in a session": {
			o: agenttool.Options{Session: "s", Imports: cove.ImportsOff}, text: "done", in: "s",
			asked: &cove.CodeRequest{Language: "python", Code: "x"},
		},
		"with a warning": {
			o: agenttool.Options{Session: "s", Imports: cove.ImportsWarn}, text: "done", in: "s",
			asked: &cove.CodeRequest{Language: "python", Code: "x", Imports: cove.ImportsWarn},
		},
		"no room": {p: platform{full: full}, text: "Execution failed: no room"},
		"broken": {
			p: platform{broken: broken}, text: "it is down\nwait", in: "made", closed: 1,
			asked: &cove.CodeRequest{Language: "python", Code: "x", Imports: cove.ImportsBlock},
		},
		"nobody waits": {
			gone: true, p: platform{broken: context.Canceled}, text: "Execution failed: the caller went away", in: "made", closed: 1,
			asked: &cove.CodeRequest{Language: "python", Code: "x", Imports: cove.ImportsBlock},
		},
	} {
		ctx := t.Context()
		if tt.gone {
			ctx = gone
		}
		if got := agenttool.RunPython(ctx, &tt.p, tt.o, "x"); got != tt.text {
			t.Errorf("%s: %q, want %q", name, got, tt.text)
		}
		var asked *cove.CodeRequest
		var in cove.ID
		if len(tt.p.asked) == 1 {
			asked, in = &tt.p.asked[0], tt.p.in[0]
		}
		if d := cmp.Diff(tt.asked, asked); d != "" || in != tt.in || len(tt.p.closed) != tt.closed || tt.p.template != tt.o.Template {
			t.Errorf("%s: in %q, closed %v, asked (-want +got):\n%s", name, in, tt.p.closed, d)
		}
	}
}

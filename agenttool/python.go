package agenttool

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// Options says where code runs.
type Options struct {
	// Session is where the code runs; what it sets stays there for the next call.
	// "" means a session of its own, which ends with the call.
	Session cove.ID
	// Template is that of the session of its own.
	Template string
	// Timeout is the time that the code has; 0 means the platform's own.
	Timeout time.Duration
	// Imports is what becomes of code that imports os, subprocess and the like.
	// "" means that it is blocked; ImportsOff leaves it to the platform's settings.
	Imports cove.ImportMode
}

// ExecutionResult is what came of one call, in its parts.
type ExecutionResult struct {
	Text     string  `json:"result"` // what RunPython returns
	Stdout   string  `json:"stdout"`
	Stderr   string  `json:"stderr"`    // with the traceback
	ExitCode int     `json:"exit_code"` // −1 when the time ran out, and where nothing ran
	Duration float64 `json:"duration"`  // seconds
	Meta     Meta    `json:"meta"`
}

// Meta is what held for one call.
type Meta struct {
	Runtime        string         `json:"runtime"` // the provider
	Truncated      bool           `json:"truncated"`
	TimedOut       bool           `json:"timed_out"`
	BlockedImports []string       `json:"blocked_imports"`
	ResourceLimits ResourceLimits `json:"resource_limits"`
}

// ResourceLimits are the bounds of one call.
type ResourceLimits struct {
	TimeoutSec  float64 `json:"timeout_sec"`
	MaxOutputKB float64 `json:"max_output_kb"`
}

// closeTime bounds the end of a session that was made for one call.
const closeTime = 10 * time.Second

// RunPython runs Python code and returns a text for the model that wrote it. It
// never fails.
func RunPython(ctx context.Context, p cove.Platform, o Options, code string) string {
	return Python(ctx, p, o, code).Text
}

// Python is [RunPython] with the parts of its answer.
func Python(ctx context.Context, p cove.Platform, o Options, code string) ExecutionResult {
	id := o.Session
	if id == "" {
		s, err := p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Template: o.Template, OnEnd: cove.EndClose}})
		if err != nil {
			return Failed(err, o.Timeout)
		}
		id = s.ID
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
			defer cancel()
			_, _ = p.Sessions().Close(ctx, id, false) // its time ends it otherwise
		}()
	}
	r, err := p.Contexts(id).Run(ctx, o.Request(code))
	if err != nil {
		return Failed(err, o.Timeout)
	}
	return Result(r)
}

// Request returns the request that runs code by these options.
func (o Options) Request(code string) cove.CodeRequest {
	req := cove.CodeRequest{Language: "python", Code: code, Limits: cove.Limits{Wall: o.Timeout}, Imports: o.Imports}
	switch o.Imports {
	case "":
		req.Imports = cove.ImportsBlock
	case cove.ImportsOff:
		req.Imports = ""
	case cove.ImportsWarn, cove.ImportsBlock:
	}
	return req
}

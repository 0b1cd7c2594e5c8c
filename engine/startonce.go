package engine

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// inForeground refuses what only a program in the background can have.
func inForeground(req cove.ExecRequest) error {
	if req.Tag != "" {
		return cove.InvalidField("tag", "is for programs in the background; start it there, or leave the tag out")
	}
	if req.IdempotencyKey != "" {
		return cove.InvalidField("Idempotency-Key", "is for programs in the background; start it there, or leave the key out")
	}
	return nil
}

// startOnce starts a program in the background, or finds the one that the same
// request started before.
func (p processes) startOnce(ctx context.Context, st *step, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	what, err := sameStart(&req)
	if err != nil {
		return nil, err
	}
	e, k := p.v.e, claimKey{p.v.p.Tenant, req.IdempotencyKey}
	return once(ctx, e, p.v.p, deed[*cove.ProcessInfo]{
		key: req.IdempotencyKey, verb: cove.ProcessStart, on: p.id, what: what,
		do: func(cove.ID) (*cove.ProcessInfo, cove.ID, error) {
			info, err := e.background(ctx, st.lease, req, st.limits, func(pid cove.PID) error {
				if k.key == "" {
					return nil
				}
				return e.cfg.Store.SetClaim(ctx, k.tenant, k.key, planned+numberOf(pid))
			})
			if err != nil {
				return nil, "", err
			}
			return info, numberOf(info.PID), nil
		},
		again: func(id cove.ID) (*cove.ProcessInfo, error) { return st.lease.started(id) },
		lost:  perhapsStarted,
	})
}

// perhapsStarted is the answer for a program that got a number before a crash and
// is not there. What has no number was not started.
func perhapsStarted(id cove.ID) error {
	if _, err := strconv.Atoi(string(id)); err != nil {
		return nil //nolint:nilerr // that it is no number is the answer
	}
	return cove.Errorf(cove.Conflict, "the server stopped while the program was being started, and nobody knows whether it ran").
		Reason(cove.ReasonKeyReused).Remedy("look at what it should have done; a fresh idempotency key starts it again")
}

func numberOf(pid cove.PID) cove.ID { return cove.ID(strconv.Itoa(int(pid))) }

// started returns the program that a key started before.
func (l *lease) started(id cove.ID) (*cove.ProcessInfo, error) {
	n, _ := strconv.Atoi(string(id)) // there is no process 0
	pr, err := l.process(cove.PID(n))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	info := pr.describe()
	return &info, nil
}

// sameStart is all that makes two requests to start a program the same. Input is
// read into memory for it, which only a reader that has it all there can promise.
func sameStart(req *cove.ExecRequest) (any, error) {
	if req.IdempotencyKey == "" {
		return nil, nil //nolint:nilnil // nobody asks
	}
	var stdin []byte
	switch r := req.Stdin.(type) {
	case nil:
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		var err error
		if stdin, err = io.ReadAll(r); err != nil {
			return nil, err
		}
		req.Stdin = bytes.NewReader(stdin)
	default:
		return nil, cove.InvalidField("Idempotency-Key", "goes with input that is whole; send the input afterwards, with keep_stdin")
	}
	return struct {
		Line      string
		Argv      []string
		Dir       string
		Env       map[string]string
		Stdin     []byte
		TTY       *cove.WindowSize
		KeepStdin bool
		Limits    cove.Limits
		Tag       string `json:",omitempty"` // left out, claims of before it are the same still
	}{req.Line, req.Argv, req.Dir, req.Env, stdin, req.TTY, req.KeepStdin, req.Limits, req.Tag}, nil
}

package msbtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// qualified is the name of a machine among those of all namespaces.
func (p params) qualified() string { return p.Namespace + "/" + p.Sandbox }

func (s *Server) start(r *http.Request, p params, q Quirks) (any, *failure) {
	switch {
	case p.Config == nil || p.Config.Image == "":
		return nil, &failure{http.StatusBadRequest, 2001, "Sandbox configuration not found"}
	case q.StartFails:
		return nil, broken()
	}
	size := Size{Image: p.Config.Image, CPUs: int(p.Config.CPUs), Memory: cove.Bytes(p.Config.Memory) * cove.MiB}
	if err := s.machines.create(r.Context(), p.qualified(), size); err != nil {
		return nil, broken()
	}
	s.mu.Lock()
	s.slow[p.qualified()] = q.Slow
	s.mu.Unlock()
	if q.StartHangs {
		s.hang(r)
		return nil, nil
	}
	if q.StartText != "" {
		return q.StartText, nil
	}
	return "Sandbox " + p.Sandbox + " started successfully", nil
}

func (s *Server) stop(r *http.Request, p params, q Quirks) (any, *failure) {
	if s.machines.get(p.qualified()) == nil {
		return nil, broken()
	}
	if !q.StopLies {
		if err := s.machines.Remove(context.WithoutCancel(r.Context()), p.qualified()); err != nil {
			return nil, broken()
		}
	}
	if q.StopFails {
		return nil, broken()
	}
	return "Sandbox " + p.Sandbox + " stopped successfully", nil
}

func (s *Server) metrics(_ *http.Request, p params, _ Quirks) (any, *failure) {
	all := []map[string]any{}
	for _, name := range s.machines.Names() {
		if found, ok := cutNamespace(name, p.Namespace); ok && (p.Sandbox == "" || p.Sandbox == found) {
			all = append(all, map[string]any{"namespace": p.Namespace, "name": found, "running": true, "cpu_usage": 1.5, "memory_usage": 64, "disk_usage": nil})
		}
	}
	return map[string]any{"sandboxes": all}, nil
}

func cutNamespace(name, namespace string) (string, bool) {
	if len(name) <= len(namespace) || name[:len(namespace)+1] != namespace+"/" {
		return "", false
	}
	return name[len(namespace)+1:], true
}

// turn counts programs, and reports those that are whole times every.
func (s *Server) turn(name string) (n int, failing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran++
	if s.slow[name] > 0 {
		s.slow[name]--
		return s.ran, true
	}
	return s.ran, false
}

func every(n, of int) bool { return of > 0 && n%of == 0 }

func (s *Server) run(r *http.Request, p params, q Quirks) (any, *failure) {
	m := s.machines.get(p.qualified())
	n, failing := s.turn(p.qualified())
	if m == nil || failing || every(n, q.Refuse) {
		return nil, broken()
	}
	if q.Nonsense != "" {
		return json.RawMessage(q.Nonsense), nil
	}
	ctx := context.WithoutCancel(r.Context())
	if p.Timeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*p.Timeout)*time.Second) //nolint:gosec // a test's own number
		defer cancel()
	}
	code, stdout, stderr, err := m.collect(ctx, append([]string{p.Command}, p.Args...))
	if err != nil || code == 127 && len(stdout) == 0 { // a program that cannot be started is told like this
		return nil, broken()
	}
	output := append(lines("stdout", stdout), lines("stderr", stderr)...)
	if every(n, q.DropLines) && len(output) > 0 {
		output = output[:len(output)-1]
	}
	if every(n, q.CutLines) && len(output) > 0 {
		output[0].Text = output[0].Text[:len(output[0].Text)/2]
	}
	return map[string]any{"command": p.Command, "args": p.Args, "exit_code": code, "success": code == 0, "output": output}, nil
}

// line is how output is told.
type line struct {
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// lines cuts output as the original does: newlines go, and with the first line
// that is not UTF-8 the stream is over.
func lines(stream string, text []byte) []line {
	all := []line{}
	for len(text) > 0 {
		one, rest, _ := bytes.Cut(text, []byte("\n"))
		if !utf8.Valid(one) {
			break
		}
		all = append(all, line{stream, string(one)})
		text = rest
	}
	return all
}

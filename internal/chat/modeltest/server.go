package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Config says how a server behaves.
type Config struct {
	Key   string // the only one that it takes; "" asks for none
	Model string // the only one that it has; "" has all
	Steps []Step // what it does, one for each good request
}

// Step answers one request.
type Step func(w http.ResponseWriter, r *http.Request, q Question)

// Server is one that listens.
type Server struct {
	cfg  Config
	http *httptest.Server

	mu     sync.Mutex
	asked  []Question // guarded by mu
	faults []string   // guarded by mu
	over   int        // guarded by mu; requests after the last step
}

// New starts a server. Close it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "invalid_request_error", fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path))
	})
	s.http = httptest.NewServer(mux)
	return s
}

// URL is the base of the API.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Close ends the server and what it still answers.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Questions are the good requests so far.
func (s *Server) Questions() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Err is nil if the script was played to its end, by good requests alone.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.faults {
		errs = append(errs, errors.New("a bad request: "+f))
	}
	if left := len(s.cfg.Steps) - len(s.asked); left > 0 {
		errs = append(errs, fmt.Errorf("%d of %d steps were not asked for", left, len(s.cfg.Steps)))
	}
	if s.over > 0 {
		errs = append(errs, fmt.Errorf("%d requests came after the last step", s.over))
	}
	return errors.Join(errs...)
}

// maxRequest bounds what is read.
const maxRequest = 16 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if given := r.Header.Get("Authorization"); s.cfg.Key != "" && given != "Bearer "+s.cfg.Key {
		// Real ones repeat what they were given, too.
		writeError(w, http.StatusUnauthorized, "invalid_request_error", "Incorrect API key provided: "+given)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		s.bad(w, err)
		return
	}
	q, err := read(body)
	if err != nil {
		s.bad(w, err)
		return
	}
	if s.cfg.Model != "" && q.Model != s.cfg.Model {
		writeError(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("The model `%s` does not exist", q.Model))
		return
	}
	step := s.next(q)
	if step == nil {
		writeError(w, http.StatusInternalServerError, "server_error", "The script is over")
		return
	}
	step(w, r, q)
}

// next takes the next step of the script; nil after the last.
func (s *Server) next(q Question) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := len(s.asked)
	if at >= len(s.cfg.Steps) {
		s.over++
		return nil
	}
	s.asked = append(s.asked, q)
	return s.cfg.Steps[at]
}

func (s *Server) bad(w http.ResponseWriter, err error) {
	s.mu.Lock()
	s.faults = append(s.faults, err.Error())
	s.mu.Unlock()
	writeError(w, http.StatusBadRequest, "invalid_request_error", err.Error())
}

// writeError answers with a fault as such servers write one.
func writeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": kind}})
}

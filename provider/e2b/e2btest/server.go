package e2btest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says how a server behaves.
type Config struct {
	// Provider makes the machines. Whoever gives it closes it, after the server.
	Provider cove.Provider
	// Key is the only one that opens the API.
	Key string
	// Old serves the first version of the routes alone.
	Old bool
	// Mixed serves the second version of the list, and the first of the others.
	Mixed bool
	// Mute leaves out of what it tells of a machine whether it has a network.
	Mute bool
	// Templates are those that there are; none means base.
	Templates []string
	// Page is how many machines a page of the list has; 0 is all.
	Page int
	// First is asked before anything else, and answers the request itself if it
	// returns true; nil answers none.
	First func(w http.ResponseWriter, r *http.Request) bool
}

// Server is one that listens.
type Server struct {
	cfg  Config
	http *httptest.Server
	mux  *http.ServeMux

	mu       sync.Mutex
	machines map[string]*machine // guarded by mu
	order    []string            // guarded by mu; oldest first
	asked    []string            // guarded by mu
}

// New starts a server. Close it.
func New(cfg Config) *Server {
	if len(cfg.Templates) == 0 {
		cfg.Templates = []string{"base"}
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), machines: map[string]*machine{}}
	for pattern, do := range map[string]func(http.ResponseWriter, *http.Request){
		"POST /sandboxes":              s.create,
		"POST /sandboxes/{id}/connect": s.connect,
		"GET /sandboxes":               s.list,
	} {
		s.mux.HandleFunc(pattern, do)
		if method, path, _ := strings.Cut(pattern, " "); !cfg.Old && (!cfg.Mixed || method == http.MethodGet) {
			s.mux.HandleFunc(method+" /v2"+path, do)
		}
	}
	s.mux.HandleFunc("GET /sandboxes/{id}", s.detail)
	s.mux.HandleFunc("DELETE /sandboxes/{id}", s.kill)
	s.mux.HandleFunc("POST /sandboxes/{id}/timeout", s.timeout)
	s.http = httptest.NewServer(s)
	return s
}

// URL is the address of the API and of all machines.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server and all machines.
func (s *Server) Close() error {
	s.http.CloseClientConnections()
	s.http.Close()
	s.mu.Lock()
	all := s.machines
	s.machines, s.order = map[string]*machine{}, nil
	s.mu.Unlock()
	var errs []error
	for _, m := range all {
		errs = append(errs, m.end(context.Background()))
	}
	return errors.Join(errs...)
}

// Machines returns the ids of those that live, oldest first.
func (s *Server) Machines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.order...)
}

// Asked returns the requests so far, as method and path.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// Hang breaks all connections off, as a network does that fails for a moment.
func (s *Server) Hang() { s.http.CloseClientConnections() }

// Kill ends a machine as E2B does when its time is up.
func (s *Server) Kill(ctx context.Context, id string) error {
	m := s.take(id)
	if m == nil {
		return nil
	}
	return m.end(ctx)
}

// take removes a machine from the table.
func (s *Server) take(id string) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	delete(s.machines, id)
	for i, other := range s.order {
		if other == id {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	return m
}

func (s *Server) find(id string) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machines[id]
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.cfg.First != nil && s.cfg.First(w, r) {
		return
	}
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		s.inside(w, r, id)
		return
	}
	if r.Header.Get("X-Api-Key") != s.cfg.Key {
		fail(w, http.StatusUnauthorized, "the key is not known")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// fail answers with an error as E2B writes them.
func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"code": status, "message": message})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func token() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Template string            `json:"templateID"`
		Timeout  int               `json:"timeout"`
		Metadata map[string]string `json:"metadata"`
		Internet *bool             `json:"allow_internet_access"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	known := false
	for _, t := range s.cfg.Templates {
		known = known || t == in.Template
	}
	if !known {
		fail(w, http.StatusNotFound, "template not found")
		return
	}
	spec := cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkOpen}}
	if in.Internet != nil && !*in.Internet {
		spec.Network.Mode = cove.NetworkNone
	}
	box, err := s.cfg.Provider.Create(r.Context(), cove.NewID(), spec)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	m := newMachine("i"+token()[:19], box)
	m.template, m.metadata, m.internet, m.started, m.timeout = in.Template, in.Metadata, spec.Network.Mode == cove.NetworkOpen, time.Now(), in.Timeout
	s.mu.Lock()
	s.machines[m.id] = m
	s.order = append(s.order, m.id)
	s.mu.Unlock()
	answer(w, http.StatusCreated, m.brief())
}

func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	m := s.find(r.PathValue("id"))
	if m == nil {
		fail(w, http.StatusNotFound, "sandbox not found")
		return
	}
	answer(w, http.StatusOK, m.brief())
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) {
	m := s.find(r.PathValue("id"))
	if m == nil {
		fail(w, http.StatusNotFound, "sandbox not found")
		return
	}
	out := m.listed()
	if !s.cfg.Mute {
		out["allowInternetAccess"] = m.internet
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) kill(w http.ResponseWriter, r *http.Request) {
	m := s.take(r.PathValue("id"))
	if m == nil {
		fail(w, http.StatusNotFound, "sandbox not found")
		return
	}
	if err := m.end(context.WithoutCancel(r.Context())); err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) timeout(w http.ResponseWriter, r *http.Request) {
	if s.find(r.PathValue("id")) == nil {
		fail(w, http.StatusNotFound, "sandbox not found")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// list answers with the machines that have all of the metadata asked for, in pages.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	want, err := url.ParseQuery(r.URL.Query().Get("metadata"))
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]any{}
	after := r.URL.Query().Get("nextToken")
	for i, id := range s.order {
		if after != "" {
			if id == after {
				after = ""
			}
			continue
		}
		if m := s.machines[id]; m.has(want) {
			out = append(out, m.listed())
		}
		if s.cfg.Page > 0 && len(out) == s.cfg.Page && i+1 < len(s.order) {
			w.Header().Set("X-Next-Token", id)
			break
		}
	}
	answer(w, http.StatusOK, out)
}

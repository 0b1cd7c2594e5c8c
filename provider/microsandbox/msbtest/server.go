package msbtest

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"sync"
)

// Quirks are what a server does wrong, or what is there instead of one. They can be
// changed while it serves.
type Quirks struct {
	// Hang takes every request and answers none.
	Hang bool
	// HangRPC answers only that it is healthy.
	HangRPC bool
	// HTML answers everything with a page, as a proxy does.
	HTML bool
	// StartText is the answer to a start that went well.
	StartText string
	// StartHangs makes the machine and does not answer.
	StartHangs bool
	// StartFails makes nothing, and says that something failed.
	StartFails bool
	// Slow is how many programs fail before a new machine can run one.
	Slow int
	// DropLines loses the last line of every so many answers; 0 loses none.
	DropLines int
	// CutLines damages a line of every so many answers.
	CutLines int
	// Refuse says of every so many programs that something failed.
	Refuse int
	// Nonsense is the result of every program.
	Nonsense string
	// StopFails says that something failed, whatever was stopped.
	StopFails bool
	// StopLies says that a machine was stopped, and does not do it.
	StopLies bool
	// NoMethods knows no method, as a server of another protocol.
	NoMethods bool
	// OtherID answers with the id of another question.
	OtherID bool
}

// Server is an [http.Handler].
type Server struct {
	machines *Machines
	key      string

	mu     sync.Mutex
	quirks Quirks
	slow   map[string]int // programs that still fail, by machine
	ran    int
	asked  map[string]int
	done   chan struct{}
}

// NewServer serves machines. serverKey signs keys; "" wants none, as --dev does.
func NewServer(m *Machines, serverKey string) *Server {
	return &Server{machines: m, key: serverKey, slow: map[string]int{}, asked: map[string]int{}, done: make(chan struct{})}
}

// Set changes what the server does wrong.
func (s *Server) Set(q Quirks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quirks = q
}

// Asked returns how often a method was asked for.
func (s *Server) Asked(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method]
}

// Close ends requests that hang.
func (s *Server) Close() { close(s.done) }

func (s *Server) now() Quirks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quirks
}

// failure is the server's own form of an error.
type failure struct {
	status int
	code   int
	text   string
}

// broken is what the server makes of all that it does not want to explain.
func broken() *failure {
	return &failure{http.StatusInternalServerError, 5002, "Internal server error"}
}

// maxRequest is what the original takes.
const maxRequest = 2 << 20

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := s.now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	switch {
	case q.Hang:
		s.hang(r)
		return
	case q.HTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
		return
	case err != nil:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/health":
		write(w, http.StatusOK, map[string]any{"message": "Service is healthy"})
		return
	case r.Method != http.MethodPost || r.URL.Path != "/api/v1/rpc":
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if q.HangRPC {
		s.hang(r)
		return
	}
	s.rpc(w, r, body, q)
}

// hang waits until the caller has had enough.
func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.done:
	}
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// call is a request.
type call struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	ID      json.RawMessage `json:"id"`
	Params  params          `json:"params"`
}

type params struct {
	Namespace string   `json:"namespace"`
	Sandbox   string   `json:"sandbox"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Timeout   *uint64  `json:"timeout"`
	Config    *struct {
		Image  string `json:"image"`
		Memory uint32 `json:"memory"`
		CPUs   uint8  `json:"cpus"`
	} `json:"config"`
}

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

func (s *Server) rpc(w http.ResponseWriter, r *http.Request, body []byte, q Quirks) {
	namespace, refused := s.allowed(r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	var c call
	if err := json.Unmarshal(body, &c); err != nil {
		refuse(w, &failure{http.StatusBadRequest, 2001, "Invalid parameters"})
		return
	}
	s.mu.Lock()
	s.asked[c.Method]++
	s.mu.Unlock()
	handle := map[string]func(*http.Request, params, Quirks) (any, *failure){
		"sandbox.start": s.start, "sandbox.stop": s.stop, "sandbox.command.run": s.run, "sandbox.metrics.get": s.metrics,
	}[c.Method]
	envelope := func(status, code int, text string) {
		write(w, status, map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": code, "message": text}, "id": c.ID})
	}
	switch {
	case c.JSONRPC != "2.0":
		envelope(http.StatusBadRequest, -32600, "Invalid or missing jsonrpc version field")
		return
	case handle == nil || q.NoMethods:
		envelope(http.StatusNotFound, -32601, "Method not found: "+c.Method)
		return
	case namespace != "*" && namespace != c.Params.Namespace:
		refuse(w, &failure{http.StatusForbidden, 3001, "Access denied"})
		return
	case !names.MatchString(c.Params.Namespace) || c.Params.Sandbox != "" && !names.MatchString(c.Params.Sandbox):
		refuse(w, &failure{http.StatusBadRequest, 2001, "Invalid name"})
		return
	}
	result, failed := handle(r, c.Params, q)
	if failed != nil {
		refuse(w, failed)
		return
	}
	if result == nil { // nobody is there any more
		return
	}
	if q.OtherID {
		c.ID = json.RawMessage(`"other"`)
	}
	write(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "result": result, "id": c.ID})
}

func refuse(w http.ResponseWriter, f *failure) {
	write(w, f.status, map[string]any{"error": f.text, "code": f.code})
}

package wiretest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/docs"
)

const (
	asJSON   = "application/json"
	asEvents = "text/event-stream"
	asExec   = "application/x-cove-exec" // a request on one line, and input after it
	maxBody  = 16 << 20
)

// Server plays a server until the test ends.
type Server struct {
	URL string

	doc    document
	routes []route

	mu     sync.Mutex
	asked  map[string]bool // guarded by mu
	faults []string        // guarded by mu
}

type route struct {
	name    string
	method  string
	path    string
	pattern *regexp.Regexp
	op      operation
}

// Serve starts one.
func Serve(t testing.TB) *Server {
	t.Helper()
	s := &Server{asked: map[string]bool{}}
	if err := json.Unmarshal([]byte(docs.OpenAPI()), &s.doc); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\\\{[a-z_]+\\\}`)
	for path, ops := range s.doc.Paths {
		pattern := regexp.MustCompile("^" + named.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		for method, op := range ops {
			method = strings.ToUpper(method)
			s.routes = append(s.routes, route{method + " " + path, method, path, pattern, op})
		}
	}
	// What is written out comes before a name in its place.
	slices.SortFunc(s.routes, func(a, b route) int { return strings.Count(a.path, "{") - strings.Count(b.path, "{") })
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	s.URL = at.URL
	return s
}

// Asked returns the routes that were asked for, in order.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name := range s.asked {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Faults returns what was asked that is not described.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

func (s *Server) fault(form string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := fmt.Sprintf(form, args...); !slices.Contains(s.faults, one) {
		s.faults = append(s.faults, one)
	}
}

// ServeHTTP looks at a request and answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(s.routes, func(one route) bool { return one.method == r.Method && one.pattern.MatchString(r.URL.EscapedPath()) })
	if i < 0 {
		s.fault("%s %s is not described", r.Method, r.URL.Path)
		http.Error(w, "no such route", http.StatusNotFound)
		return
	}
	found := s.routes[i]
	s.mu.Lock()
	s.asked[found.name] = true
	s.mu.Unlock()
	s.check(found, r)
	s.answer(w, r, found)
}

// heeded are headers that mean something to a route which describes them.
var heeded = []string{"Idempotency-Key", "X-File-Mode", "Range", "Last-Event-ID"}

func (s *Server) check(to route, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.fault("%s: the query: %v", to.name, err)
	}
	for name := range query {
		if !to.op.takes("query", name) {
			s.fault("%s: the query has %s, which is not described", to.name, name)
		}
	}
	for _, p := range to.op.Parameters {
		if p.In == "query" && p.Required && !query.Has(p.Name) {
			s.fault("%s: the query lacks %s", to.name, p.Name)
		}
	}
	for _, name := range heeded {
		if r.Header.Get(name) != "" && !to.op.takes("header", name) {
			s.fault("%s: the header %s is not described", to.name, name)
		}
	}
	s.checkBody(to, r)
}

func (s *Server) checkBody(to route, r *http.Request) {
	body := bufio.NewReader(http.MaxBytesReader(nil, r.Body, maxBody))
	if _, err := body.Peek(1); err != nil {
		return // there is none
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	read := io.Reader(body)
	if media == asExec {
		line, _ := body.ReadString('\n') // what is wrong with it, the decoder says
		media, read = asJSON, strings.NewReader(line)
	}
	form, ok := to.op.RequestBody.Content[media]
	if err != nil || !ok {
		s.fault("%s: a body of the type %q is not described", to.name, media)
		return
	}
	if media == asJSON {
		var value any
		if err := json.NewDecoder(read).Decode(&value); err != nil {
			s.fault("%s: the body: %v", to.name, err)
			return
		}
		for _, one := range s.doc.misfits(form.Schema, value, "the body") {
			s.fault("%s: %s", to.name, one)
		}
	}
	_, _ = io.Copy(io.Discard, body) // one that breaks off has a caller who knows
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, to route) {
	status, in := to.op.answer()
	code, _ := strconv.Atoi(status) // 0 has no answer below
	accept := r.Header.Get("Accept")
	if _, ok := in[accept]; accept != "" && accept != "*/*" && len(in) > 0 && !ok {
		s.fault("%s: an answer of the type %q is not described", to.name, accept)
		accept = ""
	}
	switch {
	case code == http.StatusSwitchingProtocols:
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "tcp")
		w.WriteHeader(code)
	case len(in) == 0:
		w.WriteHeader(code)
	case accept == asEvents || len(in) == 1 && in[asEvents].Schema != nil:
		w.Header().Set("Content-Type", asEvents)
		w.WriteHeader(code)
		s.tell(w, r, in[asEvents].Schema.Description)
	case in[asJSON].Schema != nil && (in[asJSON].Schema.Ref != ""):
		w.Header().Set("Content-Type", asJSON)
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(s.doc.sample(in[asJSON].Schema, 0)) // who has gone needs no answer
	default:
		for media := range in {
			w.Header().Set("Content-Type", media)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "sample") // who has gone needs no answer
	}
}

// eventForms are the forms of events that are forms of answers, too.
var eventForms = map[string]string{"session": "Session", "exit": "Execution", "result": "CodeResult", "file": "File", "change": "FileChange", "trial": "Trial"}

// eventTexts are events that the description only names.
var eventTexts = map[string]string{
	"stdout": `{"offset":0,"data":"7"}`, "stderr": `{"offset":1,"data":"7"}`, "value": `{"forms":{"text":"7"},"main":true}`, "queue": `{"position":1}`, "end": `{}`,
}

// tell sends one event of each name. A stream without a last one stays open.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, described string) {
	_, list, _ := strings.Cut(described, "events: ")
	names := slices.DeleteFunc(strings.Split(list, ", "), func(name string) bool { return name == "error" })
	for _, name := range names {
		text := eventTexts[name]
		if form, ok := eventForms[name]; ok {
			data, err := json.Marshal(s.doc.sample(s.doc.Components.Schemas[form], 0))
			if err != nil {
				s.fault("the event %s: %v", name, err)
			}
			text = string(data)
		}
		if text == "" {
			s.fault("nobody knows the event %s", name)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text) // who has gone needs no answer
	}
	if slices.Equal(names, []string{"change"}) {
		_ = http.NewResponseController(w).Flush() // the same
		<-r.Context().Done()
	}
}

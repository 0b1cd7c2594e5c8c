package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// call is one request on its way through a route.
type call struct {
	api      *api
	w        *answer
	r        *http.Request
	control  *http.ResponseController
	id       string // the request's
	route    string // its pattern, for the log
	who      cove.Principal
	platform cove.Platform
	query    query
	limit    int64 // on a JSON body
	body     *intake.Body
	read     atomic.Bool // the body has been read whole
	failed   error       // what was answered with, if it was an error
}

// answer remembers what went out, for the log and for late errors.
type answer struct {
	http.ResponseWriter

	call   *call
	status int
	bytes  int64
}

func (a *answer) WriteHeader(number int) {
	if a.status == 0 {
		a.status = number
		a.named()
	}
	a.ResponseWriter.WriteHeader(number)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
		a.named()
	}
	n, err := a.ResponseWriter.Write(p) //nolint:gosec // the type is set and not sniffed, and what is HTML is our own
	a.bytes += int64(n)
	return n, err
}

// providerHeader says in every answer about a sandbox who serves it.
const providerHeader = "Cove-Provider"

func (a *answer) named() {
	if name := a.call.provider(); name != "" {
		a.Header().Set(providerHeader, name)
	}
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// provider is who served the request, as far as that is known.
func (c *call) provider() string { return c.api.Provider(c.r.Context()) }

// session is the id in the path.
func (c *call) session() cove.ID { return cove.ID(c.r.PathValue("id")) }

func (c *call) pid() (cove.PID, error) {
	n, err := strconv.Atoi(c.r.PathValue("pid"))
	if err != nil || n < 1 {
		return 0, cove.Errorf(cove.NotFound, "%.40q is not a process of this session; …/processes lists them", c.r.PathValue("pid"))
	}
	return cove.PID(n), nil
}

func (c *call) processes() cove.Processes { return c.platform.Processes(c.session()) }
func (c *call) files() cove.Files         { return c.platform.Files(c.session()) }
func (c *call) contexts() cove.Contexts   { return c.platform.Contexts(c.session()) }

// wantsEvents reports whether the caller asked for an event stream.
func (c *call) wantsEvents() bool {
	for _, accept := range c.r.Header.Values("Accept") {
		if strings.Contains(accept, "text/event-stream") {
			return true
		}
	}
	return false
}

// deadline gives the client the time of a stall to take what comes next.
// Writers without deadlines, as in tests, are left alone.
func (c *call) deadline() { _ = c.control.SetWriteDeadline(time.Now().Add(c.api.Stall)) }

// send answers with v in JSON.
func (c *call) send(number int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the answer cannot be written; the log has the cause under the request id")
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	c.deadline()
	c.w.WriteHeader(number)
	_, _ = c.w.Write(append(body, '\n')) // the client may be gone
	return nil
}

// decode reads the JSON body of a request.
func decode[T any](c *call) (T, error) {
	data, err := c.whole(c.limit)
	if err != nil {
		var none T
		return none, err
	}
	return wire.Decode[T](data)
}

// whole reads a body of at most limit bytes into memory.
func (c *call) whole(limit int64) ([]byte, error) {
	return c.body.ReadAll(c.r.Context(), &upload{c: c, limit: c.api.BodyTime, whole: true}, c.r.ContentLength, limit)
}

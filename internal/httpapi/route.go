package httpapi

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/cove-sandbox/cove"
)

// route is all that is known about one method of one path.
type route struct {
	method  string
	pattern string
	summary string
	query   []param
	open    bool        // needs no key
	needs   []cove.Verb // the platform is asked for one of these, whatever the body says
	limit   int64       // on a JSON body; 0 means the usual one
	takes   string      // the media type of a body that is not JSON
	gives   string      // the media type of an answer that is not JSON
	events  string      // what the event stream holds, where there is one
	headers []header
	also    []other
	deed
}

// other is a good answer with another status than the usual one.
type other struct {
	status int
	answer reflect.Type
	when   string
}

// header is one that changes what a route does.
type header struct{ name, doc string }

// Headers of several routes.
var (
	modeHeader = header{"X-File-Mode", "permissions in octal, such as 0755; left out, 0644"}
	onceHeader = header{idempotencyKey, "a name for this request; the same one again gets the first answer and does nothing"}
	lastHeader = header{"Last-Event-ID", "go on after this event of a stream that broke off"}
)

// hasHead reports whether a route also answers HEAD: one that gives a value at
// once, not a stream or a file.
func (r route) hasHead() bool { return r.open || r.answer != nil && r.events == "" && r.gives == "" }

// deed is what a route does, and the types that it takes and gives.
type deed struct {
	body   reflect.Type
	answer reflect.Type
	status int
	do     func(*call) error
}

// get is a deed that answers 200.
func get[A any](do func(*call) (A, error)) deed {
	return deed{answer: reflect.TypeFor[A](), status: http.StatusOK, do: func(c *call) error {
		a, err := do(c)
		if err != nil {
			return err
		}
		return c.send(http.StatusOK, a)
	}}
}

// post is a deed that takes a body and answers with a status.
func post[B, A any](status int, do func(*call, B) (A, error)) deed {
	return deed{body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](), status: status, do: func(c *call) error {
		b, err := decode[B](c)
		if err != nil {
			return err
		}
		a, err := do(c, b)
		if err != nil {
			return err
		}
		return c.send(status, a)
	}}
}

// act is a deed without an answer.
func act(do func(*call) error) deed {
	return deed{status: http.StatusNoContent, do: func(c *call) error {
		if err := do(c); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}}
}

// actOn is a deed that takes a body and has no answer.
func actOn[B any](do func(*call, B) error) deed {
	d := act(func(c *call) error {
		b, err := decode[B](c)
		if err != nil {
			return err
		}
		return do(c, b)
	})
	d.body = reflect.TypeFor[B]()
	return d
}

// table is every route of the API.
func table() []route {
	return slices.Concat(
		sessionRoutes(), networkRoutes(), snapshotRoutes(), volumeRoutes(), trialRoutes(), executeRoutes(), processRoutes(), codeRoutes(),
		fileRoutes(), uploadRoutes(), portRoutes(), linkRoutes(), consoleRoutes(), adminRoutes(), templateRoutes(), toolRoutes(), agentToolRoutes(), taskRoutes(), runRoutes(),
		datasetRoutes(), chatRoutes(),
		nodeRoutes(), healthRoutes(), metricRoutes(),
	)
}

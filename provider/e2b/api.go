//go:build linux

package e2b

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// api is E2B's control API.
type api struct {
	caller                      *caller
	base                        string
	key                         string
	whom                        string
	making, connecting, listing route
}

func newAPI(c Config, by *caller) *api {
	whom := "E2B"
	if u, err := url.Parse(c.APIURL); err == nil {
		whom += " at " + u.Host
	}
	return &api{caller: by, base: c.APIURL, key: c.APIKey, whom: whom}
}

func (a *api) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	r := request{method: method, url: a.base + path, header: map[string]string{"X-API-Key": a.key, "Accept": "application/json"}, whom: a.whom}
	return a.caller.exchange(ctx, r, in, out)
}

// route remembers which version of one route a server has. Each has its own: there
// are servers that have the second version of some.
type route struct{ atomic.Int32 }

// The versions of a route; 0 is not known yet.
const (
	first  = 1
	second = 2
)

// versioned calls a route that has a second version. A server that lacks it has
// carried nothing out, and gets the first one, from then on at once.
func (a *api) versioned(ctx context.Context, r *route, method, path string, in, out any) (http.Header, error) {
	if r.Load() != first {
		h, err := a.call(ctx, method, "/v2"+path, in, out)
		if err == nil {
			r.Store(second)
		}
		missing := isNoRoute(err) || cove.CodeOf(err) == cove.NotFound
		if !missing || r.Load() == second {
			return h, err
		}
	}
	h, err := a.call(ctx, method, path, in, out)
	if err == nil {
		r.Store(first)
	}
	return h, err
}

// Metadata by which our machines are found.
const (
	metaOwner = "cove_owner"
	metaID    = "cove_id"
)

// newMachine asks for a machine.
type newMachine struct {
	Template string            `json:"templateID"`
	Timeout  int               `json:"timeout"`
	Metadata map[string]string `json:"metadata"`
	Internet bool              `json:"allow_internet_access"`
	Secure   bool              `json:"secure"` // as the second version always is
}

// machineAnswer tells of a machine.
type machineAnswer struct {
	Machine  string            `json:"sandboxID"`
	Token    string            `json:"envdAccessToken"`
	Domain   string            `json:"domain"`
	Internet *bool             `json:"allowInternetAccess"`
	Metadata map[string]string `json:"metadata"`
	CPUs     float64           `json:"cpuCount"`
	Memory   int64             `json:"memoryMB"`
}

var machineID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// usable reports whether what the server said can stand in an address.
func (m machineAnswer) usable() bool {
	return machineID.MatchString(m.Machine) && (m.Domain == "" || isHost(m.Domain)) && len(m.Token) < 4096
}

// checked is the machine, or the error where it is not one.
func (a *api) checked(m machineAnswer, err error) (machineAnswer, error) {
	if err == nil && !m.usable() {
		err = stranger(a.whom, nil)
	}
	return m, err
}

func (a *api) create(ctx context.Context, m newMachine) (machineAnswer, error) {
	var out machineAnswer
	_, err := a.versioned(ctx, &a.making, http.MethodPost, "/sandboxes", m, &out)
	return a.checked(out, err)
}

// connect finds a machine again, and wakes it where it is paused.
func (a *api) connect(ctx context.Context, machine string, timeout time.Duration) (machineAnswer, error) {
	var out machineAnswer
	_, err := a.versioned(ctx, &a.connecting, http.MethodPost, "/sandboxes/"+machine+"/connect", map[string]int{"timeout": seconds(timeout)}, &out)
	return a.checked(out, err)
}

func (a *api) detail(ctx context.Context, machine string) (machineAnswer, error) {
	var out machineAnswer
	_, err := a.call(ctx, http.MethodGet, "/sandboxes/"+machine, nil, &out)
	return out, err
}

// renew gives a machine its time anew.
func (a *api) renew(ctx context.Context, machine string, timeout time.Duration) error {
	_, err := a.call(ctx, http.MethodPost, "/sandboxes/"+machine+"/timeout", map[string]int{"timeout": seconds(timeout)}, nil)
	return err
}

// kill ends a machine. One that is gone is no error.
func (a *api) kill(ctx context.Context, machine string) error {
	_, err := a.call(ctx, http.MethodDelete, "/sandboxes/"+machine, nil, nil)
	if cove.CodeOf(err) == cove.NotFound {
		return nil
	}
	return err
}

// Bounds on a list that a server may make as long as it likes.
const (
	mostMachines = 10_000
	mostPages    = 1000
)

// list returns the machines with all of some metadata.
func (a *api) list(ctx context.Context, metadata map[string]string, limit int) ([]machineAnswer, error) {
	want := url.Values{}
	for k, v := range metadata {
		want.Set(k, v)
	}
	query := url.Values{"state": {"running,paused"}}
	if len(want) > 0 {
		query.Set("metadata", want.Encode())
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var all []machineAnswer
	for range mostPages {
		page, next, err := a.page(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			// An old server may not know how to select.
			if m.usable() && hasAll(m.Metadata, metadata) {
				all = append(all, m)
			}
		}
		if next == "" || len(page) == 0 || len(all) >= mostMachines || limit > 0 && len(all) >= limit {
			return all, nil
		}
		query.Set("nextToken", next)
	}
	return nil, stranger(a.whom, errors.New("a list without an end"))
}

func (a *api) page(ctx context.Context, query url.Values) (page []machineAnswer, next string, err error) {
	h, err := a.versioned(ctx, &a.listing, http.MethodGet, "/sandboxes?"+query.Encode(), nil, &page)
	return page, h.Get("X-Next-Token"), err
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// seconds rounds up: a machine must not end before its time.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

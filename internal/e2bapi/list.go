package e2bapi

import (
	"cmp"
	"encoding/base64"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on lists.
const (
	maxListed  = 10_000 // that are looked at
	usualPage  = 100
	longestOne = 1000 // page
)

// listedSandbox is a sandbox in a list.
type listedSandbox struct {
	Template string            `json:"templateID"`
	Alias    string            `json:"alias,omitempty"`
	Sandbox  string            `json:"sandboxID"`
	Client   string            `json:"clientID"`
	Started  time.Time         `json:"startedAt"`
	Ends     time.Time         `json:"endAt"`
	CPUs     int               `json:"cpuCount"`
	Memory   int64             `json:"memoryMB"`
	Disk     int64             `json:"diskSizeMB"`
	State    string            `json:"state"`
	Version  string            `json:"envdVersion"`
	Metadata map[string]string `json:"metadata"`
	Volumes  []volumeMount     `json:"volumeMounts"`
}

// detail is all about one sandbox.
type detail struct {
	listedSandbox

	Access    string        `json:"envdAccessToken,omitempty"`
	Domain    string        `json:"domain,omitempty"`
	Internet  bool          `json:"allowInternetAccess"`
	Network   networkConfig `json:"network"`
	Lifecycle lifecycle     `json:"lifecycle"`
}

type lifecycle struct {
	OnTimeout  string `json:"onTimeout"`
	AutoResume bool   `json:"autoResume"`
}

// stateOf is the state of a session in their words, or "" for one that is over.
func stateOf(s cove.State) string {
	switch s {
	case cove.Creating, cove.Running:
		return "running"
	case cove.Paused, cove.Stopped:
		return "paused"
	case cove.Failed, cove.Ended:
	}
	return ""
}

func listed(s *cove.Session) listedSandbox {
	l := listedSandbox{
		Template: templateOf(s), Alias: s.Spec.Template, Sandbox: string(s.ID), Client: clientID,
		Started: s.CreatedAt.UTC(), Ends: sandboxEnd(s).UTC(), CPUs: cpusOf(s),
		Memory: int64(s.Spec.Resources.Memory / cove.MiB), Disk: int64(s.Spec.Workspace.Size / cove.MiB),
		State: stateOf(s.State), Version: envdVersion, Metadata: s.Spec.Metadata, Volumes: mountsOf(s.Spec),
	}
	if l.Metadata == nil {
		l.Metadata = map[string]string{}
	}
	return l
}

// cpusOf is a whole number, as there.
func cpusOf(s *cove.Session) int { return max(1, int(math.Ceil(s.Spec.Resources.CPUs))) }

// info tells about one sandbox.
func (c *call) info() error {
	s, err := c.session()
	if err != nil {
		return err
	}
	d := detail{
		listedSandbox: listed(s), Access: c.accessToken(s.ID), Domain: c.h.cfg.Domain,
		Internet: s.Spec.Network.Mode != cove.NetworkNone, Network: networkAnswer(s.Spec),
		Lifecycle: lifecycle{OnTimeout: "kill", AutoResume: s.Spec.Wake},
	}
	if s.Spec.OnEnd.Keeps() {
		d.Lifecycle.OnTimeout = "pause"
	}
	c.answer(http.StatusOK, d)
	return nil
}

// listQuery is which sandboxes are wanted.
type listQuery struct {
	filter   cove.SessionFilter
	states   []string // none: all
	template string
	after    time.Time // that they started
	oldest   bool      // first
	page     page
}

// page is which part of a list is wanted.
type page struct {
	limit int
	past  mark // the last of the page before
}

// mark is where a thing stands in a list by age.
type mark struct {
	at time.Time
	id cove.ID
}

func (m mark) compare(o mark) int {
	return cmp.Or(m.at.Compare(o.at), strings.Compare(string(m.id), string(o.id)))
}

func (m mark) token() string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, m.at.UnixNano(), 10)) + "." + string(m.id)
}

func readMark(token string) (mark, error) {
	digits, id, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(digits)
	nanos, nerr := strconv.ParseInt(string(text), 10, 64)
	if err != nil || nerr != nil || !cove.ID(id).Valid() {
		return mark{}, cove.InvalidField("nextToken", "is not one that an earlier page gave")
	}
	return mark{time.Unix(0, nanos), cove.ID(id)}, nil
}

func pageOf(q url.Values) (p page, err error) {
	p.limit = usualPage
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > longestOne {
			return p, cove.InvalidField("limit", "%q is not a number from 1 to %d", clip(text), longestOne)
		}
	}
	if text := q.Get("nextToken"); text != "" {
		p.past, err = readMark(text)
	}
	return p, err
}

// readList reads the query of a list.
func readList(q url.Values) (l listQuery, err error) {
	l.template = q.Get("template")
	for _, text := range q["state"] {
		for state := range strings.SplitSeq(text, ",") {
			if state != "running" && state != "paused" {
				return l, cove.InvalidField("state", "%q is unknown; use running and paused", clip(state))
			}
			l.states = append(l.states, state)
		}
	}
	switch order := q.Get("order"); order {
	case "", "desc":
	case "asc":
		l.oldest = true
	default:
		return l, cove.InvalidField("order", "%q is unknown; use asc or desc", clip(order))
	}
	if text := q.Get("startedAfter"); text != "" {
		if l.after, err = time.Parse(time.RFC3339, text); err != nil {
			return l, cove.InvalidField("startedAfter", "%q is not a time", clip(text))
		}
	}
	if l.filter.Metadata, err = readMetadata(q.Get("metadata")); err != nil {
		return l, err
	}
	l.page, err = pageOf(q)
	return l, err
}

// readMetadata reads pairs that were written as a form, each part of it escaped before.
func readMetadata(text string) (map[string]string, error) {
	wrong := cove.InvalidField("metadata", "is not a list of pairs, each part escaped and the whole written as a form")
	form, err := url.ParseQuery(text)
	if err != nil {
		return nil, wrong
	}
	pairs := map[string]string{}
	for k, v := range form {
		key, kerr := url.PathUnescape(k)
		value, verr := url.PathUnescape(v[len(v)-1])
		if kerr != nil || verr != nil {
			return nil, wrong
		}
		pairs[key] = value
	}
	return pairs, nil
}

func (l listQuery) wants(s *cove.Session) bool {
	state := stateOf(s.State)
	return state != "" && s.Spec.User != volumeUser && (len(l.states) == 0 || slices.Contains(l.states, state)) &&
		(l.template == "" || l.template == s.Spec.Template || l.template == templateOf(s)) &&
		(l.after.IsZero() || s.CreatedAt.After(l.after))
}

// list tells about the caller's sandboxes, whichever face they were opened by, a page
// at a time, newest first.
func (c *call) list() error {
	l, err := readList(c.r.URL.Query())
	if err != nil {
		return err
	}
	found, running, err := c.find(l)
	if err != nil {
		return err
	}
	found, next := cut(found, l.page, l.oldest, sessionMark)
	if next != "" {
		c.w.Header().Set("X-Next-Token", next)
	}
	c.w.Header().Set("X-Total-Running", strconv.Itoa(running))
	c.listing(found)
	return nil
}

// listRunning is list in its first version: all that run, without pages.
func (c *call) listRunning() error {
	l, err := readList(c.r.URL.Query())
	if err != nil {
		return err
	}
	l.states = []string{"running"}
	found, _, err := c.find(l)
	if err != nil {
		return err
	}
	l.page.limit = maxListed
	found, _ = cut(found, l.page, l.oldest, sessionMark)
	c.listing(found)
	return nil
}

func (c *call) listing(found []*cove.Session) {
	out := make([]listedSandbox, len(found))
	for i, s := range found {
		out[i] = listed(s)
	}
	c.answer(http.StatusOK, out)
}

func sessionMark(s *cove.Session) mark { return mark{s.CreatedAt, s.ID} }

// find returns the sessions that are wanted, and how many of them run.
func (c *call) find(l listQuery) (found []*cove.Session, running int, err error) {
	l.filter.Limit = maxListed
	for s, err := range c.platform.Sessions().List(c.r.Context(), l.filter) {
		if err != nil {
			return nil, 0, err
		}
		if !l.wants(s) {
			continue
		}
		found = append(found, s)
		if stateOf(s.State) == "running" {
			running++
		}
	}
	return found, running, nil
}

// cut sorts a list by age and returns the page that is wanted of it, with the token of
// the next, if there is one.
func cut[T any](all []T, p page, oldest bool, markOf func(T) mark) (part []T, next string) {
	order := func(a, b mark) int {
		if oldest {
			return a.compare(b)
		}
		return b.compare(a)
	}
	slices.SortFunc(all, func(a, b T) int { return order(markOf(a), markOf(b)) })
	if p.past.id != "" {
		all = slices.DeleteFunc(all, func(t T) bool { return order(markOf(t), p.past) <= 0 })
	}
	if len(all) <= p.limit {
		return all, ""
	}
	return all[:p.limit], markOf(all[p.limit-1]).token()
}

package httpapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// kind is the type of a query parameter, in the words of JSON schema.
type kind string

const (
	word   kind = "string"
	number kind = "integer" // from 0 on
	flag   kind = "boolean"
)

// param is one query parameter of a route.
type param struct {
	name string
	kind kind
	doc  string
	must bool
	many bool
	from int64 // the least and the most of a number; 0 means any
	to   int64
}

// query holds parameters that the route knows and whose values fit.
type query struct{ values url.Values }

func parseQuery(raw string, params []param) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, cove.Wrap(cove.Invalid, err, "the query of the URL is malformed; escape it as name=value&…")
	}
	known := map[string]param{}
	names := make([]string, len(params))
	for i, p := range params {
		known[p.name], names[i] = p, p.name
		if p.must && values.Get(p.name) == "" {
			return query{}, cove.InvalidField(p.name, "is missing from the query")
		}
	}
	for name, given := range values {
		p, ok := known[name]
		if !ok {
			return query{}, cove.InvalidField(name[:min(len(name), 80)], "is not a parameter of this route; it has %s", orNone(names))
		}
		if err := p.check(given); err != nil {
			return query{}, err
		}
	}
	return query{values}, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (p param) check(given []string) error {
	if len(given) > 1 && !p.many {
		return cove.InvalidField(p.name, "is there %d times", len(given))
	}
	for _, text := range given {
		switch p.kind {
		case number:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < p.from || p.to > 0 && n > p.to {
				return cove.InvalidField(p.name, "%.40q is not a number that fits; use %s", text, p.bounds())
			}
		case flag:
			if _, err := parseFlag(text); err != nil {
				return cove.InvalidField(p.name, "%.40q is not true or false", text)
			}
		case word:
		}
	}
	return nil
}

func (p param) bounds() string {
	if p.to > 0 {
		return strconv.FormatInt(p.from, 10) + " to " + strconv.FormatInt(p.to, 10)
	}
	return "whole numbers from " + strconv.FormatInt(p.from, 10) + " on"
}

// parseFlag takes a bare name, as in ?follow, for true.
func parseFlag(text string) (bool, error) {
	if text == "" {
		return true, nil
	}
	return strconv.ParseBool(text)
}

func (q query) text(name string) string    { return q.values.Get(name) }
func (q query) texts(name string) []string { return q.values[name] }
func (q query) has(name string) bool       { return q.values.Has(name) }

func (q query) number(name string) int64 {
	n, _ := strconv.ParseInt(q.values.Get(name), 10, 64) // checked before; 0 where it is not there
	return n
}

func (q query) flag(name string) bool {
	if !q.values.Has(name) {
		return false
	}
	b, _ := parseFlag(q.values.Get(name))
	return b
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/cove-sandbox/cove"
)

// ProblemType is the media type of a Problem, from RFC 9457.
const ProblemType = "application/problem+json"

// Problem is the answer of a platform that could not do what was asked.
type Problem struct {
	Type      string    `json:"type"`
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Code      cove.Code `json:"code"`
	Reason    string    `json:"reason,omitempty" jsonschema:"a finer word under the code"`
	Error     string    `json:"error" jsonschema:"what is wrong"`
	Remedy    string    `json:"remedy,omitempty" jsonschema:"what to do about it"`
	ErrorType string    `json:"error_type,omitempty" jsonschema:"of a run that was not begun: VALIDATION_ERROR"`
	RequestID string    `json:"request_id,omitempty" jsonschema:"under which the server's log has more"`
	Op        string    `json:"op,omitempty" jsonschema:"what was being done"`
	Details   Details   `json:"details,omitempty"`
}

// Details is what else is known about a Problem. Read from JSON, it holds
// texts, booleans, int, float64, []string, []any and map[string]any.
type Details map[string]any

// runType is the detail with the type of a run's error.
const runType = "type"

// ProblemOf returns the form of err, without its cause. Type, Title and Status
// are the transport's to fill in.
func ProblemOf(err error, requestID string) Problem {
	p := Problem{
		Code: cove.CodeOf(err), Reason: cove.ReasonOf(err), Error: cove.MessageOf(err), Remedy: cove.RemedyOf(err), RequestID: requestID,
	}
	if ours, ok := errors.AsType[*cove.Error](err); ok {
		p.Op = ours.Op
		p.Details = maps.Clone(ours.Details)
		delete(p.Details, "reason")
		delete(p.Details, "remedy")
		if kind, ok := p.Details[runType].(string); ok {
			p.ErrorType = kind
			delete(p.Details, runType)
		}
	}
	return p
}

// Known reports whether p has a code of ours, so that it is an answer of Cove.
func (p Problem) Known() bool { return slices.Contains(cove.Codes(), p.Code) }

// Cove returns the error that p stands for.
func (p Problem) Cove() *cove.Error {
	e := &cove.Error{Code: p.Code, Op: p.Op, Message: p.Error, Details: maps.Clone(p.Details)}
	if p.Reason != "" {
		e = e.Reason(p.Reason)
	}
	if p.Remedy != "" {
		e = e.Remedy("%s", p.Remedy)
	}
	if p.ErrorType != "" {
		e = e.With(runType, p.ErrorType)
	}
	if p.RequestID != "" && (p.Code == cove.Internal || p.Code == cove.Unavailable) {
		e = e.With("request_id", p.RequestID)
	}
	return e
}

// UnmarshalJSON gives back the types that Go code puts into details, where the
// standard decoder would make every number a float and every list one of any.
func (d *Details) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return err
	}
	for k, v := range m {
		m[k] = native(v)
	}
	*d = m
	return nil
}

func native(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	case []any:
		return nativeList(v)
	case map[string]any:
		for k, elem := range v {
			v[k] = native(elem)
		}
	}
	return v
}

func nativeList(list []any) any {
	words := make([]string, 0, len(list))
	for i, elem := range list {
		list[i] = native(elem)
		if word, ok := list[i].(string); ok {
			words = append(words, word)
		}
	}
	if len(words) == len(list) {
		return words
	}
	return list
}

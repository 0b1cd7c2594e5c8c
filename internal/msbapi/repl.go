package msbapi

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// evaluated is how code went. The original says success whatever it did.
type evaluated struct {
	Status   string `json:"status"`
	Language string `json:"language"`
	Output   []line `json:"output"`
}

// languages are those of the original, by ours.
var languages = map[string]string{"python": "python", "node": "node", "nodejs": "node", "javascript": "node"}

// repl runs code in the interpreter of a sandbox, which remembers.
func (c *call) repl(p params) (any, error) {
	language, ok := languages[strings.ToLower(p.Language)]
	if !ok {
		return nil, broken(cove.Errorf(cove.Invalid, "the language %.40q is unknown", p.Language).Remedy("use python or node"))
	}
	limits, err := p.limits()
	if err != nil {
		return nil, err
	}
	s, err := c.find(p)
	if err != nil {
		return nil, err
	}
	out := newLines()
	res, err := c.evaluate(s, cove.CodeRequest{Language: language, Code: p.Code, Limits: limits, OnOutput: out.take})
	if err != nil {
		return nil, runFailed(err)
	}
	if res.Outcome == cove.TimedOut {
		return nil, broken(cove.Errorf(cove.Timeout, "the code did not end within %s", limits.Wall))
	}
	if res.Outcome == cove.Blocked {
		out.text(stderr, refusal(res.Refusal))
	}
	for _, r := range res.Results {
		out.text(stdout, r["text/plain"]) // as an interpreter at a terminal shows values
	}
	if e := res.Error; e != nil {
		text := e.Traceback
		if text == "" {
			text = e.Name + ": " + e.Value
		}
		out.text(stderr, text)
	}
	return evaluated{Status: "success", Language: p.Language, Output: out.done()}, nil
}

// evaluate runs code in the default interpreter of its language, or, where the
// sandbox has a working directory of its own, in one that begins there.
func (c *call) evaluate(s *cove.Session, req cove.CodeRequest) (*cove.CodeResult, error) {
	contexts := c.platform.Contexts(s.ID)
	dir := s.Spec.Metadata[metaWorkdir]
	if dir == "" {
		return contexts.Run(c.ctx, req)
	}
	name := "msb-" + req.Language
	named := req
	named.Context = name
	res, err := contexts.Run(c.ctx, named)
	if cove.CodeOf(err) != cove.NotFound {
		return res, err
	}
	_, err = contexts.Open(c.ctx, cove.ContextSpec{Name: name, Language: req.Language, Dir: dir})
	if err != nil && cove.CodeOf(err) != cove.Conflict {
		return nil, err
	}
	return contexts.Run(c.ctx, named)
}

package fake

import (
	"context"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Analyzer finds imports in a way that only pretends: a line "import x" is one,
// "syntax" is a mistake, "unread" cannot be read, and "crash" ends what looks. It
// implements [cove.Analyzer]; the zero value is ready. It runs a program in the
// sandbox it is given, so that one that is gone is seen.
type Analyzer struct{}

var _ cove.Analyzer = Analyzer{}

// Analyze implements [cove.Analyzer].
func (Analyzer) Analyze(ctx context.Context, in cove.Starter, _, code string) (*cove.SecurityReport, error) {
	p, err := in.Start(ctx, cove.Command{Argv: []string{"true"}, Dir: "/"})
	if err != nil {
		return nil, err
	}
	if _, err := p.Wait(ctx); err != nil {
		return nil, err
	}
	r := &cove.SecurityReport{Imports: []cove.Import{}}
	n := 0
	for line := range strings.SplitSeq(code, "\n") {
		n++
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "import":
			r.Imports = append(r.Imports, cove.Import{Module: rest, How: "import", Line: n, Column: len("import ") + 1})
		case "syntax":
			r.Syntax = &cove.CodeError{Name: "SyntaxError", Value: "invalid syntax", Line: n, Traceback: "SyntaxError: invalid syntax\n"}
			return r, nil
		case "unread":
			r.Unread = "it is too large"
		case "crash":
			return nil, cove.Errorf(cove.Unavailable, "what looks into the code ended by itself").Remedy("try again")
		}
	}
	return r, nil
}

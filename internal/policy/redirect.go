package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// noFiles are places that open as something else than a file: bash makes
// network connections of the first two, the last reaches into processes.
var noFiles = []string{"/dev/tcp/", "/dev/udp/", "/proc/"}

// redirect judges <, >, << and their kin.
func (s *script) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		name := strings.Trim(r.N.Value, "{}")
		if !identifier.MatchString(name) {
			s.reject(r.N, RuleArithmetic, "the variable must have a plain name; the shell would compute the rest")
		}
		s.assignable(r, name)
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		s.hereDocument(r)
		return
	}
	s.word(r.Word)
	if r.Op == syntax.WordHdoc {
		return
	}
	if (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && !s.descriptor(r.Word) {
		s.reject(r.Word, RuleRedirect, "bash expands what stands behind %s twice; use a number, or > with 2>&1", r.Op)
		return
	}
	start, full := literal(r.Word)
	if !full {
		start = prefix(r.Word)
	}
	clean := start
	if full {
		clean = path.Clean(start)
	}
	for _, p := range noFiles {
		if strings.HasPrefix(clean, p) || !full && len(start) > 1 && strings.HasPrefix(p, start) {
			s.reject(r.Word, RuleRedirect, "%s is not a file; use one in the workspace", start)
			return
		}
	}
}

var plainTarget = newPattern(`^(-|[0-9]+-?|[A-Za-z0-9_./][A-Za-z0-9_./-]*)$`)

// descriptor reports what can safely stand behind >& and <&.
func (s *script) descriptor(w *syntax.Word) bool {
	return plainTarget.MatchString(value(w)) || s.facts.word(w)&number != 0
}

var delimiter = newPattern(`^[A-Za-z0-9_.]+$`)

// quotedDelimiter reports whether what follows << has quotes, so that nothing
// in the document is expanded.
func quotedDelimiter(w *syntax.Word) bool {
	return w.Lit() == "" || strings.Contains(w.Lit(), `\`)
}

// hereDocument judges << and makes sure that bash finds the document where the
// parser did. They differ on odd delimiters, on escaped line ends, and on words
// that go on past the line of the <<.
func (s *script) hereDocument(r *syntax.Redirect) {
	stop, ok := literal(r.Word)
	if !ok || len(r.Word.Parts) != 1 || !delimiter.MatchString(stop) || strings.HasPrefix(s.text(r.Word), "$") {
		s.reject(r.Word, RuleAmbiguous, "the end of the here-document must be a plain word such as EOF, with or without quotes")
		return
	}
	body := s.documentAt(r, stop)
	if body == nil {
		s.reject(r, RuleAmbiguous, "shells disagree on where this here-document starts or ends; put << at the end of its line and %s on a line of its own", stop)
		return
	}
	if quotedDelimiter(r.Word) {
		return
	}
	if slices.ContainsFunc(strings.Split(*body, "\n"), func(line string) bool { return strings.HasSuffix(line, `\`) }) {
		s.reject(r, RuleAmbiguous, "a line of this here-document ends in a backslash; quote the word after <<")
	}
	if r.Hdoc != nil {
		s.parts(r.Hdoc.Parts, true)
	}
}

// documentAt returns the body of a here-document as bash finds it, or nil if
// the parser found another.
func (s *script) documentAt(r *syntax.Redirect, stop string) *string {
	rest := s.src.text[r.Word.End().Offset():]
	_, after, ok := strings.Cut(rest, "\n")
	if !ok || strings.IndexByte(" \t\n;|&)<>", rest[0]) < 0 {
		return nil
	}
	start, length := len(s.src.text)-len(after), 0
	for {
		line, more, found := strings.Cut(after, "\n")
		if line == stop || r.Op == syntax.DashHdoc && strings.TrimLeft(line, "\t") == stop {
			if !parsedAs(r.Hdoc, uint(start), uint(length), uint(len(line))) {
				return nil
			}
			body := s.src.text[start : start+length]
			return &body
		}
		if !found {
			return nil
		}
		length += len(line) + 1
		after = more
	}
}

// parsedAs reports whether the parser found the document at the same bytes; it
// counts the last line as a part of it.
func parsedAs(doc *syntax.Word, start, length, last uint) bool {
	if doc == nil || len(doc.Parts) == 0 {
		return length == 0
	}
	return doc.Pos().Offset() == start && doc.End().Offset() == start+length+last
}

// input is what a command finds on its standard input, if that is known.
type input struct {
	text  string
	known bool
	at    place
}

// standardInput returns the literal here-document or here-string that a
// command reads. With more than one redirection of its input nothing is known.
func (s *script) standardInput(redirs []*syntax.Redirect) input {
	var in input
	n := 0
	for _, r := range redirs {
		if r.N != nil && r.N.Value != "0" || r.N == nil && !slices.Contains(inputs, r.Op) && r.Op != syntax.DplIn && r.Op != syntax.RdrInOut {
			continue
		}
		n++
		in.at = s.src.at(offset(r))
		switch {
		case r.Op == syntax.WordHdoc:
			in.text, in.known = literal(r.Word)
		case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
			in.text, in.known = s.documentText(r)
		default:
			in.known = false
		}
	}
	in.known = in.known && n == 1
	return in
}

var tabs = newPattern(`(?m)^\t+`)

// documentText returns a document in which nothing is expanded and no escape
// is taken out.
func (s *script) documentText(r *syntax.Redirect) (string, bool) {
	if r.Hdoc == nil {
		return "", true
	}
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		l, is := part.(*syntax.Lit)
		if !is || !quotedDelimiter(r.Word) && strings.Contains(l.Value, `\`) {
			return "", false
		}
		b.WriteString(l.Value)
	}
	if r.Op == syntax.DashHdoc {
		return tabs.ReplaceAllString(b.String(), ""), true
	}
	return b.String(), true
}

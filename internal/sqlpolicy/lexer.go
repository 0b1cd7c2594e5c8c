package sqlpolicy

import "strings"

// token is a word, a name without its quotes, a text with them, or a sign.
type token struct {
	at   int
	text string
	name bool // it is a word or a name
}

// tokensOf cuts a text into tokens, without spaces and comments. It knows as much of
// the language as a refusal needs to say where something is.
func tokensOf(sql string) []token {
	out := []token{}
	for i := 0; i < len(sql); {
		n := skipped(sql[i:])
		if n == 0 {
			t, length := tokenOf(sql[i:])
			t.at = i
			out = append(out, t)
			n = length
		}
		i += n
	}
	return out
}

// skipped is the length of the space or the comment at the beginning.
func skipped(s string) int {
	switch {
	case strings.HasPrefix(s, "--"):
		if end := strings.IndexByte(s, '\n'); end >= 0 {
			return end + 1
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		return comment(s)
	case strings.IndexByte(" \t\n\r\f\v", s[0]) >= 0:
		return 1
	default:
		return 0
	}
}

// comment is the length of a comment, which may have others in it.
func comment(s string) int {
	depth, i := 0, 0
	for i < len(s) {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			i += 2
		default:
			i++
		}
		if depth == 0 {
			break
		}
	}
	return i
}

// tokenOf returns the token at the beginning and its length.
func tokenOf(s string) (token, int) {
	switch c := s[0]; {
	case c == '\'' || c == '"':
		n := quoted(s, c)
		if c == '"' {
			inner := strings.TrimSuffix(s[1:n], `"`)
			return token{text: strings.ReplaceAll(inner, `""`, `"`), name: true}, n
		}
		return token{text: s[:n]}, n
	case c == '$' && dollar(s) > 0:
		n := dollar(s)
		return token{text: s[:n]}, n
	case c == '$' || wordByte(c):
		n := 1
		for n < len(s) && wordByte(s[n]) {
			n++
		}
		return token{text: s[:n], name: true}, n
	default:
		n := operator(s)
		return token{text: s[:n]}, n
	}
}

// operators are signs that belong together in names of functions.
var operators = []string{"!~~*", "!~~", "~~~", "~~*", "->>", "<=>", "<->", "~~", "||", "//", "<<", ">>", "@>", "<@", "^@", "&&", "->", "**"}

func operator(s string) int {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return 1
}

func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// quoted is the length of a text or name in quotes; two quotes are one.
func quoted(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

// dollar is the length of a text between $tag$ and $tag$, or 0.
func dollar(s string) int {
	n := 1
	for n < len(s) && wordByte(s[n]) {
		n++
	}
	if n == len(s) || s[n] != '$' {
		return 0
	}
	tag := s[:n+1]
	end := strings.Index(s[n+1:], tag)
	if end < 0 {
		return len(s)
	}
	return n + 1 + end + len(tag)
}

// statementAt returns the first token of the n-th statement, counted from 0. One
// without a token is none.
func statementAt(tokens []token, n int) token {
	fresh := true
	for _, t := range tokens {
		if t.text == ";" {
			fresh = true
			continue
		}
		if fresh && n == 0 {
			return t
		}
		if fresh {
			n--
		}
		fresh = false
	}
	return token{at: -1}
}

// asking are the words with which a statement may begin.
var asking = set(`select with from values table describe desc summarize show unpivot`)

// otherStatement returns the word that makes a text more than a SELECT: the first
// one of a statement of another kind, or PIVOT, which is two statements for the
// parser.
func otherStatement(sql string) token {
	tokens := tokensOf(sql)
	first := token{at: -1}
	fresh, pivoting := true, token{at: -1}
	for _, t := range tokens {
		switch {
		case t.text == ";":
			fresh = true
		case fresh && t.text == "(":
		case fresh:
			fresh = false
			if first.at < 0 {
				first = t
			}
			if !asking[lower(t.text)] && !same(t.text, "pivot") {
				return t
			}
		}
		if t.name && pivoting.at < 0 && same(t.text, "pivot") {
			pivoting = t
		}
	}
	if pivoting.at >= 0 {
		return pivoting
	}
	return first
}

// selectOnly says why a statement that begins with the word is refused.
func selectOnly(about string) string {
	switch lower(about) {
	case "pivot":
		return "PIVOT without the values is two statements; list them, as in PIVOT t ON a IN ('x', 'y') USING sum(b), or use FILTER or CASE"
	case "explain":
		return "EXPLAIN is no question to the data; a run takes one SELECT"
	case "select", "with", "from", "values", "table", "unpivot":
		return "the parser has no tree for this statement, so it cannot be judged; write it in another way"
	default:
		return "a run takes one SELECT, which may begin with WITH, FROM, VALUES, DESCRIBE or SUMMARIZE, and nothing that changes or opens something"
	}
}

package artifact

import (
	"regexp"
	"slices"
	"strings"
)

// Words that speak of a secret, in small letters. What follows them is looked at
// with an expression of its own: one for all of a long text is slow.
var (
	secretWords = []string{"key", "secret", "token", "password", "passwd", "passphrase", "_pass", "-pass", "_pwd", "-pwd"}
	// Only some keys are secrets: most words before are of tables and sorting.
	secretKeys = []string{"api", "access", "secret", "private", "auth", "signing", "encryption", "account", "master", "service"}

	// opening is what stands between a word and a text: what sets it, also as an item
	// or with a type, and the quotes.
	opening = regexp.MustCompile(`^(?:[_-]?[iI][dD])?\\?["']?\s*(?:\]\s*)?(?::\s*(?:str|bytes)\s*)?[:=,]\s*[bBfFrRuU]{0,2}(\\["']|"""|'''|["'])`)
)

const (
	mostOpening = 64 // bytes between a word and its text
	leastNamed  = 6  // of a text that is taken for a secret
)

// named takes out what is set under names that speak of a secret, in code and in
// data: NAME = "…", "name": "…", environ["NAME"] = "…", NAME=….
func named(text string) string {
	small := lower(text)
	var b strings.Builder
	done := 0
	for i := 0; i < len(small); i++ {
		word := wordAt(small, i)
		if word == "" {
			continue
		}
		after := i + len(word)
		from, to := value(text, text[i:after] == strings.ToUpper(word), after)
		if to-from >= leastNamed {
			b.WriteString(text[done:from] + redacted)
			done, i = to, to-1
		}
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// lower changes no place of a byte, as strings.ToLower may.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// wordAt returns the word that begins at a place, or "".
func wordAt(small string, at int) string {
	if strings.IndexByte("kstp_-", small[at]) < 0 {
		return ""
	}
	i := slices.IndexFunc(secretWords, func(w string) bool { return strings.HasPrefix(small[at:], w) })
	if i < 0 {
		return ""
	}
	before := strings.TrimRight(small[max(0, at-len("encryption")-1):at], "_-")
	if secretWords[i] == "key" && !slices.ContainsFunc(secretKeys, func(k string) bool { return strings.HasSuffix(before, k) }) {
		return ""
	}
	return secretWords[i]
}

// value returns where the text is that a word at the end of a name is set to.
func value(text string, upper bool, after int) (from, to int) {
	if upper && strings.HasPrefix(text[after:], "=") {
		from = after + 1
		if n := strings.IndexAny(text[from:], " \t\r\n\"'$;&|()[]{}<>"); n != 0 {
			return from, end(text, from, n)
		}
	}
	m := opening.FindStringSubmatchIndex(text[after:min(len(text), after+mostOpening)])
	if m == nil {
		return 0, 0
	}
	from = after + m[1]
	switch quote := text[after+m[2] : from]; {
	case len(quote) == 3:
		return from, end(text, from, strings.Index(text[from:], quote))
	case len(quote) == 2:
		return from, end(text, from, strings.IndexAny(text[from:], "\"'\\\n"))
	default:
		for to = from; to < len(text) && text[to] != quote[0] && text[to] != '\n'; to++ {
			if text[to] == '\\' {
				to++
			}
		}
		return from, min(to, len(text))
	}
}

func end(text string, from, n int) int {
	if n < 0 {
		return len(text)
	}
	return from + n
}

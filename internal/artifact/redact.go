package artifact

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// redacted stands in the place of a secret.
const redacted = "[redacted]"

// secretName is the name of a variable that holds one.
var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|passphrase|(^|_)pass(_|$)|_pwd$|credential|auth|cookie|dsn`)

// forms are well-known kinds of credentials. A text is searched for one only if
// it holds one of its signs, in small letters: that is much quicker.
var forms = []struct {
	signs []string
	is    *regexp.Regexp
	with  string
}{
	{[]string{"private key-----"}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), redacted},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), redacted},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{30,}`), redacted},
	{[]string{"github_pat_"}, regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`), redacted},
	{[]string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`), redacted},
	{[]string{"cove_"}, regexp.MustCompile(`\bcove_[A-Za-z0-9_-]{20,}`), redacted},
	{[]string{"sk-", "sk_", "pk-", "pk_", "rk-", "rk_"}, regexp.MustCompile(`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{20,}`), redacted},
	{[]string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`), redacted},
	{[]string{"aiza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`), redacted},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), redacted},
	{[]string{"bearer ", "basic "}, regexp.MustCompile(`(?i)\b((?:bearer|basic) +)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + redacted},
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@'"]*:)[^\s/@'"]+@`), "${1}" + redacted + "@"},
}

// What is left of a credential that was torn: its beginning before the place where
// the middle of a text is missing, and its end behind it.
var (
	tornHead = regexp.MustCompile(`(?:\b(?:AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|cove_|(?:sk|pk|rk)[-_]|xox[abeoprs]-|AIza|eyJ)|(?i:bearer|basic) +)[A-Za-z0-9._~+/=-]{4,}\z`)
	tornKey  = regexp.MustCompile(`\A[A-Za-z0-9+/=\s-]*?-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	tornTail = regexp.MustCompile(`\A[A-Za-z0-9_+/=.-]{8,200}(\s|["',;)\]}]|\z)`)
)

// redactor takes secrets out of texts.
type redactor struct {
	secrets []string // the longest first
	known   *strings.Replacer
}

// redactor knows the secrets of the settings and those of a session.
func (c Config) redactor(env map[string]string) *redactor {
	r := &redactor{}
	add := func(text string) {
		if text = strings.TrimSpace(text); len(text) >= minSecret && !slices.Contains(r.secrets, text) {
			r.secrets = append(r.secrets, text)
		}
	}
	for _, text := range c.Secrets {
		add(text)
	}
	for name, value := range env {
		if secretName.MatchString(name) {
			add(value)
		}
	}
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, text := range r.secrets {
		pairs = append(pairs, text, redacted)
	}
	for _, text := range r.secrets {
		for _, form := range shapes(text) {
			pairs = append(pairs, form, redacted)
		}
	}
	r.known = strings.NewReplacer(pairs...)
	return r
}

// shapes are the forms that a secret has in what programs print and send.
func shapes(text string) []string {
	backslash := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	plain := backslash.Replace(text)
	return []string{
		plain, strings.ReplaceAll(plain, `"`, `\"`), strings.ReplaceAll(plain, `'`, `\'`),
		url.QueryEscape(text), url.PathEscape(text), base64.StdEncoding.EncodeToString([]byte(text)),
	}
}

// clean returns text without the secrets that are known or can be told by their
// form.
func (r *redactor) clean(text string) string {
	if text == "" {
		return text
	}
	text = r.known.Replace(text)
	small := strings.ToLower(text)
	for _, f := range forms {
		if slices.ContainsFunc(f.signs, func(sign string) bool { return strings.Contains(small, sign) }) {
			text = f.is.ReplaceAllString(text, f.with)
		}
	}
	return r.torn(named(text))
}

// leastTorn is how much of a secret must be left for it to be one that was torn.
const leastTorn = 4

// torn takes out what is left of a secret that was cut in two where the middle
// of a text is missing.
func (r *redactor) torn(text string) string {
	head, tail, ok := strings.Cut(text, strings.TrimPrefix(marker, "\n"))
	if !ok {
		return text
	}
	head, newline := strings.CutSuffix(head, "\n")
	for _, s := range r.secrets {
		for n := len(s) - 1; n >= leastTorn; n-- {
			if rest, ok := strings.CutSuffix(head, s[:n]); ok {
				head = rest + redacted
			}
			if rest, ok := strings.CutPrefix(tail, s[len(s)-n:]); ok {
				tail = redacted + rest
			}
		}
	}
	head, tail = tornHead.ReplaceAllString(head, redacted), tornKey.ReplaceAllString(tail, redacted)
	if looksRandom(tornTail.FindString(tail)) {
		tail = tornTail.ReplaceAllString(tail, redacted+"${1}")
	}
	if newline {
		head += "\n"
	}
	return head + strings.TrimPrefix(marker, "\n") + tail
}

// looksRandom reports whether a word has letters and digits, as credentials have
// and words have not.
func looksRandom(word string) bool {
	return strings.ContainsAny(word, "0123456789") && strings.ContainsFunc(word, unicode.IsLetter)
}

package config

import (
	"fmt"
	"strings"
)

// shownDefault is the default in words.
func (s Setting) shownDefault() string {
	switch {
	case s.Shown != "":
		return s.Shown
	case s.Default == "" || s.Default == "[]":
		return "none"
	}
	return s.Default
}

// EnvExample returns .env.example: every variable with its meaning and its
// default, as a comment that only needs its mark removed.
func EnvExample() string {
	var b strings.Builder
	b.WriteString("# Every setting of Cove that the environment can hold, with its default.\n" +
		"# This file is generated from internal/config; docs/configuration.md says more.\n" +
		"# A variable that is set to nothing counts as not set.\n")
	section := ""
	for _, s := range settings() {
		if s.onlyInFile() {
			continue
		}
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(&b, "\n# --- %s ---\n", section)
		}
		b.WriteString("\n" + wrapped(s.Doc+s.limits(), "# "))
		if s.Alias != "" {
			fmt.Fprintf(&b, "# Also read from %s.\n", s.Alias)
		}
		if s.Shown != "" {
			fmt.Fprintf(&b, "# Default: %s.\n#%s=\n", s.Shown, s.Env)
			continue
		}
		fmt.Fprintf(&b, "#%s=%s\n", s.Env, s.Default)
	}
	return b.String()
}

// limits says what a number may be.
func (s Setting) limits() string {
	if s.min == "" {
		return ""
	}
	return " Use " + s.bounds(amount(s.unit)) + "."
}

func wrapped(text, prefix string) string {
	var b strings.Builder
	line := prefix
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 78 && line != prefix {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

const docsHead = `# Configuration

<!-- Generated from internal/config by go test ./internal/config -update. -->

Settings come from four places. Each beats the one before it:

1. the defaults on this page,
2. the settings file: the one that COVE_CONFIG or --config names, else config.yaml in COVE_HOME,
3. the environment; a variable that is set to nothing counts as not set,
4. flags.

A request beats the key it came with, which beats these settings, which beat the flavor.

cove serve --print-config shows the result: every value, where it came from, secrets masked.

The file is YAML and strict: a key that is not on this page is refused with its line. Keys with a dot
are written as groups:

` + "```yaml" + `
provider: local
fallback: [docker]
server:
  addr: 127.0.0.1:8000
session:
  idle_timeout: 30m
  flavor: small
volumes:
  allowed: [/srv/data]
flavors:
  huge: {cpus: 8, memory: 16g, pids: 2048}
policies:
  readers: {allow: [cat, grep, head, tail], deny: [rm], timeout: 10s}
secrets:
  github: {hosts: [api.github.com], header: Authorization, value_env: GITHUB_AUTHORIZATION}
` + "```" + `

Times are seconds, or written as 90s, 30m, 2h. Sizes are in the unit that the name says, or written as
512m, 1g. Yes and no are true and false (1, yes, on and 0, no, off will do). Lists have commas between,
or are JSON arrays.

REDIS_URL makes cove serve a node of a cluster: see docs/cluster.md. cove run, which keeps nothing, does not look at it; the daemon that
commands start by themselves, and programs that have Cove inside, refuse to start with it.

COVE_HOME is made at the first start with mode 0700 and must belong to the user who runs Cove. Root keeps
it in /var/lib/cove, because root runs Cove as a service; everybody else in $XDG_STATE_HOME/cove or
~/.local/state/cove.
`

// Docs returns docs/configuration.md.
func Docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	section := "-"
	for _, s := range settings() {
		if s.onlyInFile() {
			section = s.docsHeading(&b, section, "Only in the file", "| key | default | meaning |\n|---|---|---|\n")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Key, s.shownDefault(), cell(s.Doc))
			continue
		}
		title := s.Section
		if title == "" {
			title = "General"
		}
		section = s.docsHeading(&b, section, title, "| name | key | flag | default | meaning |\n|---|---|---|---|---|\n")
		name := "`" + s.Env + "`"
		if s.Alias != "" {
			name += " or `" + s.Alias + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, code(s.Key), code(dashed(s.Flag)), s.docsDefault(), cell(s.Doc+s.limits()))
	}
	return b.String()
}

func (s Setting) docsHeading(b *strings.Builder, now, next, table string) string {
	if now != next {
		fmt.Fprintf(b, "\n## %s\n\n%s", next, table)
	}
	return next
}

func (s Setting) docsDefault() string {
	if s.Shown != "" || s.shownDefault() == "none" {
		return cell(s.shownDefault())
	}
	return code(s.Default)
}

func dashed(flag string) string {
	if flag == "" {
		return ""
	}
	return "--" + flag
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// cell makes a text safe for a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

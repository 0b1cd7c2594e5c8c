package sqlpolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// Bounds on a statement. The parser has its own below these.
const (
	maxText  = 1 << 20
	maxTree  = 4 << 20
	maxNodes = 100_000
	maxWork  = 2_000_000 // columns looked at
	maxDepth = 2500      // parts within parts
	maxNest  = 100       // queries within queries
	maxWord  = 120
)

// Verdict is what is decided about a statement.
type Verdict struct {
	// Refusal says why the statement may not be asked. With nil, it may.
	Refusal *cove.Refusal
	// Tables are what an allowed statement names, in the order of their names.
	Tables []Use
}

// Use is a table that a statement names.
type Use struct {
	Dataset string
	Table   string
	// Columns that it names, or that a star stands for, in alphabetical order.
	Columns []string
}

// Decision is the verdict as the record of a run keeps it.
func (v Verdict) Decision() *cove.RunDecision {
	d := &cove.RunDecision{Allowed: v.Refusal == nil, Refusal: v.Refusal}
	for _, u := range v.Tables {
		name := Table{Dataset: u.Dataset, Name: u.Table}.String()
		d.Tables = append(d.Tables, name)
		for _, c := range u.Columns {
			d.Columns = append(d.Columns, name+"."+c)
		}
	}
	return d
}

// Judge decides about a text by the statements that the engine's parser found in
// it. Only what the grant shows of the catalog is there for it.
func Judge(statements []json.RawMessage, sql string, cat Catalog, g cove.DataGrant) Verdict {
	j := &judge{sql: sql, all: cat, shown: cat.Granted(g), at: -1, used: map[string]*use{}, relations: map[string]*relation{}}
	if j.text(); j.refusal == nil {
		j.statements(statements)
	}
	if j.refusal != nil {
		return Verdict{Refusal: j.refusal}
	}
	return Verdict{Tables: j.uses()}
}

// NotSelect is the refusal of a text in which the parser found a statement that is
// no SELECT, and of which it therefore gives no tree.
func NotSelect(sql string) *cove.Refusal {
	j := &judge{sql: sql, at: -1}
	if j.text(); j.refusal == nil {
		found := otherStatement(sql)
		j.at = found.at
		j.refuse(RuleSelectOnly, found.text, "%s", selectOnly(found.text))
	}
	return j.refusal
}

// TooLarge is the refusal of a statement whose tree is too large to be handed over.
func TooLarge() *cove.Refusal {
	return &cove.Refusal{Rule: RuleSize, Reason: tooLarge}
}

const tooLarge = "the statement has too many parts; ask for less at a time"

// judge is one look at one text.
type judge struct {
	sql     string
	all     Catalog
	shown   Catalog
	refusal *cove.Refusal // the first one
	used    map[string]*use
	tokens  []token // when they are needed

	relations map[string]*relation // tables that were named, as the grant shows them

	at    int // where the part begins that is being looked at; -1 is unknown
	nodes int
	depth int
	nest  int
	work  int
}

type use struct {
	table   Table
	columns map[string]bool
}

// text refuses what two readers could read in two ways, and what is too long.
func (j *judge) text() {
	switch {
	case len(j.sql) > maxText:
		j.refuse(RuleSize, "", "the statement is longer than %d bytes", maxText)
	case !utf8.ValidString(j.sql):
		j.refuse(RuleText, "", "the statement is no valid UTF-8")
	case strings.ContainsRune(j.sql, 0):
		j.at = strings.IndexByte(j.sql, 0)
		j.refuse(RuleText, "", "the statement has a NUL byte in it, behind which the parser does not look")
	}
}

func (j *judge) statements(list []json.RawMessage) {
	switch len(list) {
	case 0:
		j.refuse(RuleOneStatement, "", "there is no statement")
		return
	case 1:
	default:
		second := statementAt(tokensOf(j.sql), 1)
		j.at = second.at
		j.refuse(RuleOneStatement, second.text, "there are %d statements; a run asks one", len(list))
		return
	}
	if len(list[0]) > maxTree {
		j.refuse(RuleSize, "", tooLarge)
		return
	}
	dec := json.NewDecoder(bytes.NewReader(list[0]))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		j.refuse(RuleNode, "", "the statement's tree cannot be read")
		return
	}
	j.walk(statement, "statement", tree, &scope{})
}

// refuse keeps the first refusal, with the place of the word at or behind where
// the look is now.
func (j *judge) refuse(rule, about, format string, args ...any) {
	if j.refusal != nil {
		return
	}
	r := &cove.Refusal{Rule: rule, Word: cut(about), Reason: fmt.Sprintf(format, args...)}
	if at := j.find(about); at >= 0 {
		r.Line, r.Column = place(j.sql, at)
	}
	j.refusal = r
}

// spend counts work that grows faster than the text, and reports whether there may
// be more of it.
func (j *judge) spend(n int) bool {
	if j.work += n; j.work > maxWork {
		j.refuse(RuleSize, "", tooLarge)
	}
	return j.refusal == nil
}

// cut is a word that a refusal repeats: not too long, and without what a terminal
// would obey.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
	if len(s) <= maxWord {
		return s
	}
	n := maxWord
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func (j *judge) uses() []Use {
	var out []Use
	for _, key := range slices.Sorted(maps.Keys(j.used)) {
		u := j.used[key]
		out = append(out, Use{Dataset: u.table.Dataset, Table: u.table.Name, Columns: slices.Sorted(maps.Keys(u.columns))})
	}
	return out
}

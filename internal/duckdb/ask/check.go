package ask

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of requests.
const (
	MaxWaiting   = 4
	MaxTables    = 256
	MaxColumns   = 16384 // of one table
	MaxNameBytes = 255
	MaxPathBytes = 4095
	MaxSQLBytes  = 1 << 20
	MaxSamples   = 20
	MaxRows      = 10_000_000
	MaxBytes     = 2 << 20 // of the rows of a query
	MaxThreads   = 256
	MinMemory    = 64 << 20
	MaxMemory    = 16 << 40
)

// Check returns nil, or a fault of the kind BadRequest that says what is wrong with
// the request by itself.
func (r *Request) Check() *Fault {
	if r.ID == 0 {
		return bad("a request needs an id")
	}
	parts := map[Verb]interface{ check() error }{
		VerbOpen: r.Open, VerbDescribe: r.Describe, VerbLoad: r.Load, VerbQuery: r.Query,
		VerbFrame: r.Frame, VerbParse: r.Parse, VerbStop: r.Stop, VerbFunctions: nothing{},
	}
	part, ok := parts[r.Verb]
	if !ok {
		return bad("there is no verb %.40q", string(r.Verb))
	}
	set := 0
	for _, there := range []bool{r.Open != nil, r.Describe != nil, r.Load != nil, r.Query != nil, r.Frame != nil, r.Parse != nil, r.Stop != nil} {
		if there {
			set++
		}
	}
	if r.Verb == VerbFunctions {
		set++
	}
	if set != 1 {
		return bad("%s needs what it is about, and nothing else", r.Verb)
	}
	if err := part.check(); err != nil {
		return bad("%s: %v", r.Verb, err)
	}
	return nil
}

func bad(format string, args ...any) *Fault {
	return &Fault{Kind: BadRequest, Message: fmt.Sprintf(format, args...)}
}

// nothing is what functions is about.
type nothing struct{}

func (nothing) check() error { return nil }

func (o *Open) check() error {
	if o == nil {
		return errMissing
	}
	if err := between("memory", o.Memory, MinMemory, MaxMemory); err != nil {
		return err
	}
	return between("threads", int64(o.Threads), 1, MaxThreads)
}

func (d *Describe) check() error {
	if d == nil {
		return errMissing
	}
	if err := between("samples", int64(d.Samples), 0, MaxSamples); err != nil {
		return err
	}
	return checkTables(d.Tables)
}

func (l *Load) check() error {
	if l == nil {
		return errMissing
	}
	return checkTables(l.Tables)
}

func (q *Query) check() error {
	if q == nil {
		return errMissing
	}
	if err := between("max_rows", int64(q.MaxRows), 1, MaxRows); err != nil {
		return err
	}
	if err := between("max_bytes", int64(q.MaxBytes), 1, MaxBytes); err != nil {
		return err
	}
	return checkSQL(q.SQL)
}

func (f *Frame) check() error {
	if f == nil {
		return errMissing
	}
	if err := between("max_rows", int64(f.MaxRows), 1, MaxRows); err != nil {
		return err
	}
	if err := between("max_bytes", f.MaxBytes, 1, MaxMemory); err != nil {
		return err
	}
	if err := checkPath(f.Path); err != nil {
		return err
	}
	return checkSQL(f.SQL)
}

func (p *Parse) check() error {
	if p == nil {
		return errMissing
	}
	return checkSQL(p.SQL)
}

func (s *Stop) check() error {
	if s == nil {
		return errMissing
	}
	return nil
}

var errMissing = errors.New("it needs what it is about")

func between(what string, n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d, and must be from %d to %d", what, n, least, most)
	}
	return nil
}

func checkSQL(sql string) error {
	switch {
	case len(sql) > MaxSQLBytes:
		return fmt.Errorf("the text has more than %d bytes", MaxSQLBytes)
	case !utf8.ValidString(sql):
		return errors.New("the text is not UTF-8")
	case strings.ContainsRune(sql, 0):
		return errors.New("the text has a zero byte")
	default:
		return nil
	}
}

func checkPath(p string) error {
	if len(p) > MaxPathBytes || !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) || !utf8.ValidString(p) {
		return fmt.Errorf("%.80q is not a clean absolute path", p)
	}
	return nil
}

func checkTables(tables []Table) error {
	if len(tables) > MaxTables {
		return fmt.Errorf("%d tables are more than %d", len(tables), MaxTables)
	}
	seen := map[string]bool{}
	for i := range tables {
		t := &tables[i]
		if err := t.check(); err != nil {
			return err
		}
		key := strings.ToLower(t.Schema) + "\x00" + strings.ToLower(t.Name)
		if seen[key] {
			return fmt.Errorf("there are two tables %q", t.Name)
		}
		seen[key] = true
	}
	return nil
}

func (t *Table) check() error {
	if t.Schema != "" && !SchemaName(t.Schema) {
		return fmt.Errorf("%.80q cannot be the name of a schema", t.Schema)
	}
	if !Name(t.Name) {
		return fmt.Errorf("%.80q cannot be the name of a table", t.Name)
	}
	if len(t.Columns) > MaxColumns {
		return fmt.Errorf("%d columns are more than %d", len(t.Columns), MaxColumns)
	}
	switch t.Format {
	case CSV, Parquet, JSON:
		return checkPath(t.Path)
	default:
		return fmt.Errorf("there is no format %.40q", string(t.Format))
	}
}

// Name reports whether a table may have this name: text that can be seen, of at most
// [MaxNameBytes] bytes. It need not be an identifier.
func Name(name string) bool {
	return name != "" && len(name) <= MaxNameBytes && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// SchemaName reports whether a dataset of this name can be a schema: a [Name] that
// the engine does not use itself.
func SchemaName(name string) bool {
	switch strings.ToLower(name) {
	case "information_schema", "pg_catalog", "memory", "system", "temp":
		return false
	default:
		return Name(name)
	}
}

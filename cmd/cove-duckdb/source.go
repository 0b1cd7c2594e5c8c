//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// source is a file as the engine reads it.
type source struct {
	file      *os.File
	sql       string // a table function
	separator string // of CSV, where it is plain
}

// problem is what is wrong with a file, in one sentence.
type problem struct {
	text   string
	memory bool // there is too little of it
}

func (p *problem) Error() string { return p.text }

func wrong(format string, args ...any) *problem { return &problem{text: fmt.Sprintf(format, args...)} }

// openSource opens the file here and gives the engine its descriptor: it would take a
// name for a pattern, and read other files as well. A link is not followed.
func openSource(t *ask.Table) (*source, error) {
	name := path.Base(t.Path)
	f, err := os.OpenFile(t.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("%s is not there", name)
	case errors.Is(err, unix.ELOOP):
		return nil, wrong("%s is a link", name)
	case err != nil:
		return nil, wrong("%s cannot be read", name)
	}
	src := &source{file: f}
	if err = readable(f, name, t.Format); err == nil {
		err = src.function(name, t.Format)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return src, nil
}

// readable says what is wrong with files that the engine would misread, or say of
// what nobody understands.
func readable(f *os.File, name string, format ask.Format) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return wrong("%s cannot be read", name)
	case !info.Mode().IsRegular():
		return wrong("%s is not a file", name)
	case info.Size() == 0:
		return wrong("%s is empty", name)
	case format == ask.Parquet:
		return nil
	}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return wrong("%s cannot be read", name)
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return wrong("%s is in UTF-16; save it as UTF-8", name)
	case int64(n) == info.Size() && len(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))) == 0:
		return wrong("%s is empty", name)
	default:
		return nil
	}
}

// separatorOf returns what separates the names in the first line that has some, and
// how many there are; "" where that is not plain. The engine would guess by all lines,
// take the file for one column if a single line does not fit, and need long for many.
func separatorOf(f io.ReaderAt, skip int) (separator string, columns int) {
	const longest = 4 << 20
	lines := bufio.NewScanner(io.NewSectionReader(f, 0, longest))
	lines.Buffer(nil, longest+1)
	for range skip + 1 {
		lines.Scan()
	}
	quoted, counts := false, map[byte]int{}
	for _, c := range lines.Bytes() {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			counts[c]++
		}
	}
	plain := false
	for _, one := range []byte(",;\t|") {
		switch n := counts[one]; {
		case n+1 > max(columns, 1):
			separator, columns, plain = string(one), n+1, true
		case n > 0 && n+1 == columns:
			plain = false
		}
	}
	if !plain {
		return "", columns
	}
	return separator, columns
}

// emptyLines counts the lines before the names that have nothing in them.
func emptyLines(f io.ReaderAt) int {
	const most = 4 << 10
	lines, n := bufio.NewReader(io.NewSectionReader(f, 0, most)), 0
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil || len(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))) > 0 {
			return n
		}
		n++
	}
}

// function says how the engine reads the file: all of it to find the types, since the
// engine would round a value far down that is of another one. What a name would tell
// the engine is said here, and what it would guess: quotes are as they are everywhere,
// the first line has the names, and no line is left out, whatever it begins with and
// however long it is.
func (src *source) function(name string, format ask.Format) error {
	at := duck.Literal(fmt.Sprintf("/proc/self/fd/%d", src.file.Fd()))
	options := ", hive_partitioning = false"
	switch strings.ToLower(path.Ext(name)) {
	case ".gz":
		options += ", compression = 'gzip'"
	case ".zst":
		options += ", compression = 'zstd'"
	default:
	}
	switch format {
	case ask.Parquet:
		src.sql = "read_parquet(" + at + ", hive_partitioning = false)"
	case ask.JSON:
		// Names that come after the sample would be left out.
		src.sql = "read_json(" + at + options + ", sample_size = -1)"
	case ask.CSV:
		if !strings.Contains(options, "compression") {
			skip := emptyLines(src.file)
			separator, columns := separatorOf(src.file, skip)
			if columns > ask.MaxColumns {
				return wrong("%s has %d columns, more than %d", name, columns, ask.MaxColumns)
			}
			if separator != "" {
				src.separator = separator
				options += ", delim = " + duck.Literal(separator)
			}
			options += fmt.Sprintf(", skip = %d", skip)
		}
		options += ", header = true, comment = ''"
		src.sql = "read_csv(" + at + options + `, quote = '"', escape = '"', sample_size = -1)`
	}
	return nil
}

// selection is the columns that are read.
func selection(columns []string) string {
	if len(columns) == 0 {
		return "*"
	}
	quoted := make([]string, len(columns))
	for i, name := range columns {
		quoted[i] = duck.Quote(name)
	}
	return strings.Join(quoted, ", ")
}

var (
	lineNumber = regexp.MustCompile(`(?i)\bLine: (\d+)`)
	ownName    = regexp.MustCompile(`/proc/self/fd/\d+`)
)

// problemOf says in a sentence why the engine does not take a file.
func problemOf(err error, name string) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	said, ok := errors.AsType[*duck.Error](err)
	if !ok {
		return wrong("%s: %s", name, shorten(err.Error()))
	}
	where := name
	if m := lineNumber.FindStringSubmatch(said.Message); m != nil {
		where += ", line " + m[1]
	}
	lower := strings.ToLower(said.Message)
	switch {
	case said.Type == duck.TypeMemory:
		return &problem{text: name + " needs more memory than there is", memory: true}
	case said.Subtype == "COLUMN_NOT_FOUND":
		message, _, _ := strings.Cut(said.Message, "\n")
		return wrong("%s: %s", name, shorten(message))
	case strings.Contains(lower, "unicode"), strings.Contains(lower, "utf-8"), strings.Contains(lower, "utf8"):
		return wrong("%s is not in UTF-8; save it as UTF-8", where)
	default:
		message, _, _ := strings.Cut(said.Message, "\n")
		return wrong("%s cannot be read: %s", where, shorten(ownName.ReplaceAllString(strings.TrimRight(message, ". "), name)))
	}
}

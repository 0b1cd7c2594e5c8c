//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// frame runs one SELECT and writes its rows to a file.
func (s *session) frame(f *ask.Frame, answer *ask.Answer) error {
	rows, err := s.run(f.SQL, f.Schema)
	if err != nil {
		return err
	}
	defer rows.Close()
	// Not through a link that somebody put there, nor over a file.
	temporary := f.Path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600) //nolint:gosec // Who asks says where, and may write there itself.
	if err != nil {
		return unwritten(err)
	}
	w := newFrameWriter(file, rows)
	err = w.all(rows, f.MaxRows, f.MaxBytes)
	if closed := file.Close(); err == nil && closed != nil {
		err = unwritten(closed)
	}
	if err == nil {
		if linked := os.Link(temporary, f.Path); linked != nil {
			err = unwritten(linked)
		}
	}
	if removed := os.Remove(temporary); err == nil && removed != nil {
		err = unwritten(removed)
	}
	answer.Rows = &ask.Rows{Columns: columnsOf(rows), Count: w.rows, Cut: w.cut}
	return err
}

// unwritten says why there is no file.
func unwritten(err error) *ask.Fault {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	return &ask.Fault{Kind: ask.File, Message: fmt.Sprintf("the rows cannot be written: %v", err)}
}

// batchBytes is how much is kept before it is written.
const batchBytes = 4 << 20

// frameWriter writes rows, in batches of some size.
type frameWriter struct {
	archive *npz
	columns []frameColumn
	batch   int   // of the rows that are kept now
	kept    int64 // bytes that are kept
	written int64 // bytes of earlier batches
	rows    int
	cut     ask.Cut
}

// frameColumn is what is kept of a column.
type frameColumn struct {
	name, kind string
	form       duck.Form
	data       []byte
	ends       []byte // 8 for each row, if values differ in size
	null       []byte
	nulls      bool
}

func newFrameWriter(file *os.File, rows *duck.Rows) *frameWriter {
	w := &frameWriter{archive: newNpz(file), columns: make([]frameColumn, len(rows.Columns))}
	for i, column := range rows.Columns {
		w.columns[i] = frameColumn{name: column.Name, kind: column.Type, form: column.Form()}
	}
	return w
}

// all writes rows until there are no more, or as many as may be.
func (w *frameWriter) all(rows *duck.Rows, maxRows int, maxBytes int64) error {
	most := maxBytes - w.overhead()
	for w.cut == "" {
		chunk, err := rows.Next()
		if err != nil {
			return err
		}
		if chunk == nil {
			break
		}
		for row := 0; row < chunk.Rows && w.cut == ""; row++ {
			if w.rows == maxRows {
				w.cut = ask.CutRows
				continue
			}
			if !w.add(chunk, row, most-w.written-w.kept) {
				w.cut = ask.CutBytes
				continue
			}
			if w.kept < batchBytes {
				continue
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.end()
}

// overhead is what the archive has beside values, for each batch.
func (w *frameWriter) overhead() int64 {
	const array = 512
	size := int64(array)
	for i := range w.columns {
		size += 3*array + int64(len(w.columns[i].name)+len(w.columns[i].kind))
	}
	return size
}

// add keeps one row, if it fits.
func (w *frameWriter) add(chunk *duck.Chunk, row int, room int64) bool {
	var size int64
	for i := range w.columns {
		column := &w.columns[i]
		before := len(column.data)
		var there bool
		column.data, there = chunk.AppendForm(column.data, i, row, before+int(max(room-size, 0)))
		column.mark(there)
		size += int64(len(column.data)-before) + 9
		if size > room {
			w.undo(i)
			return false
		}
	}
	w.kept += size
	w.rows++
	return true
}

// undo forgets a row that was kept up to a column. Nothing is kept after it, so only
// where the last whole row ends counts.
func (w *frameWriter) undo(last int) {
	for i := range w.columns[:last+1] {
		c := &w.columns[i]
		c.null = c.null[:len(c.null)-1]
		if c.form.Type != "" {
			c.data = c.data[:len(c.data)/(len(c.null)+1)*len(c.null)]
			continue
		}
		c.ends = c.ends[:len(c.ends)-8]
		c.data = c.data[:c.end()]
	}
}

// end writes what is known only now, and ends the archive.
func (w *frameWriter) end() error {
	type column struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Kind string `json:"kind"`
	}
	head := struct {
		Rows    int      `json:"rows"`
		Batches int      `json:"batches"`
		Columns []column `json:"columns"`
	}{w.rows, w.batch, make([]column, len(w.columns))}
	for i, c := range w.columns {
		head.Columns[i] = column{c.name, c.kind, c.form.Kind}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if err := w.archive.array("head", "|u1", len(text), text); err != nil {
		return unwritten(err)
	}
	if err := w.archive.close(); err != nil {
		return unwritten(err)
	}
	return nil
}

// flush writes what is kept as a batch.
func (w *frameWriter) flush() error {
	for i := range w.columns {
		if err := w.columns[i].write(w.archive, fmt.Sprintf("%d.%d.", i, w.batch)); err != nil {
			return unwritten(err)
		}
	}
	w.batch++
	w.written += w.kept + w.overhead()
	w.kept = 0
	return nil
}

package duck

import (
	c "github.com/duckdb/duckdb-go-bindings"
)

// Rows is a result that comes piece by piece.
type Rows struct {
	Columns []Column

	extracted c.ExtractedStatements
	prepared  c.PreparedStatement
	pending   c.PendingResult
	result    c.Result
	chunk     c.DataChunk
}

// Column is one of a result.
type Column struct {
	Name string
	*Shape
}

// Select runs a text that is one SELECT, and nothing else. The rows must be closed.
// Its errors are [*Error].
func (conn *Conn) Select(sql string) (*Rows, error) {
	rows := &Rows{}
	if err := rows.start(conn, sql); err != nil {
		rows.Close()
		return nil, err
	}
	return rows, nil
}

func (r *Rows) start(conn *Conn, sql string) error {
	n := c.ExtractStatements(conn.handle, sql, &r.extracted)
	if n != 1 {
		if text := c.ExtractStatementsError(r.extracted); text != "" {
			return parseError(text)
		}
		return &Error{Type: TypeNotOne, Position: -1, Message: "the text must be one statement"}
	}
	if c.PrepareExtractedStatement(conn.handle, r.extracted, 0, &r.prepared) != c.StateSuccess {
		return parseError(c.PrepareError(r.prepared))
	}
	if c.PreparedStatementType(r.prepared) != c.StatementTypeSelect {
		return &Error{Type: TypeNotSelect, Position: -1, Message: "the statement must be a SELECT"}
	}
	// Without streaming, all rows would be made before the first is read.
	if c.PendingPreparedStreaming(r.prepared, &r.pending) != c.StateSuccess {
		return parseError(c.PendingError(r.pending))
	}
	if c.ExecutePending(r.pending, &r.result) != c.StateSuccess {
		return parseError(c.ResultError(&r.result))
	}
	r.Columns = make([]Column, c.ColumnCount(&r.result))
	for i := range r.Columns {
		t := c.ColumnLogicalType(&r.result, c.IdxT(i))
		r.Columns[i] = Column{Name: c.ColumnName(&r.result, c.IdxT(i)), Shape: shapeOf(t)}
		c.DestroyLogicalType(&t)
	}
	return nil
}

// Next returns the next rows, which are there until it is called again, or nil at
// the end.
func (r *Rows) Next() (*Chunk, error) {
	c.DestroyDataChunk(&r.chunk)
	r.chunk = c.FetchChunk(r.result)
	if r.chunk.Ptr == nil {
		if text := c.ResultError(&r.result); text != "" {
			return nil, parseError(text)
		}
		return nil, nil //nolint:nilnil // The end is no error.
	}
	chunk := &Chunk{Rows: count(c.DataChunkGetSize(r.chunk)), cells: make([]cells, len(r.Columns))}
	for i := range chunk.cells {
		chunk.cells[i] = r.Columns[i].bind(c.DataChunkGetVector(r.chunk, c.IdxT(i)))
	}
	return chunk, nil
}

// Close ends the statement, even if there are more rows.
func (r *Rows) Close() {
	c.DestroyDataChunk(&r.chunk)
	c.DestroyResult(&r.result)
	c.DestroyPending(&r.pending)
	c.DestroyPrepare(&r.prepared)
	c.DestroyExtracted(&r.extracted)
}

// Chunk is some rows of a result.
type Chunk struct {
	Rows  int
	cells []cells
}

package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
)

// The names of the tools.
const (
	toolList   = "list_datasets"
	toolSchema = "get_schema"
	toolSQL    = "run_sql"
	toolPython = "run_python"
)

// Tools are what a model may ask for.
func Tools() []Tool {
	return []Tool{
		{toolList, "Lists the datasets, each with the names of its tables.", object(``)},
		{toolSchema, "Describes the tables of a dataset: columns with their types, how many rows there are, and a few of them.", object(
			`"dataset_id":{"type":"string","description":"The id of the dataset."}`, "dataset_id",
		)},
		{toolSQL, "Runs one SELECT in DuckDB's dialect, in a sandbox, and returns columns and rows.", object(
			`"sql":{"type":"string","description":"The query. Tables are called dataset.table."},`+optional, "sql",
		)},
		{toolPython, "Runs Python in a sandbox, with the tables of a dataset as pandas frames, and returns the value of the last expression, or of result, as columns and rows.", object(
			`"python_code":{"type":"string","description":"The code."},`+optional, "python_code",
		)},
	}
}

// optional are the parameters of both tools that run something.
const optional = `"dataset_id":{"type":"string","description":"The dataset whose tables are meant. Not needed for SQL that names tables as dataset.table."},` +
	`"max_rows":{"type":"integer","minimum":1,"maximum":1000,"description":"The most rows to return."}`

// object is the JSON schema of an object.
func object(properties string, required ...string) json.RawMessage {
	need := ""
	if len(required) > 0 {
		need = `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return json.RawMessage(`{"type":"object","properties":{` + properties + `}` + need + `,"additionalProperties":false}`)
}

// use does what a model asks for, and returns what it is told. All that goes wrong
// with it is told; an error means that nobody waits any more.
func (t *talk) use(ctx context.Context, nth int, call Call) (string, error) {
	t.tell(cove.ChatEvent{Kind: cove.ChatTool, Tool: cut(call.Name, maxName), Text: cut(call.Arguments, maxAside)})
	var do func(context.Context, string) (string, error)
	switch call.Name {
	case toolList:
		do = t.listDatasets
	case toolSchema:
		do = t.getSchema
	case toolSQL:
		do = t.runSQL
	case toolPython:
		do = t.runPython
	default:
		return sorry("there is no tool %.80q; there are %s, %s, %s and %s", call.Name, toolList, toolSchema, toolSQL, toolPython), nil
	}
	switch {
	case nth >= maxCalls:
		return sorry("at most %d tools are used at once, and this is one more; ask for it again", maxCalls), nil
	case len(call.Arguments) > maxArguments:
		return sorry("the arguments are longer than %d bytes; write less", maxArguments), nil
	}
	text, err := do(ctx, call.Arguments)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	if bad, ok := errors.AsType[badArguments](err); ok {
		return sorry("the arguments of %s are not what it takes: %s; send them again as one JSON object", call.Name, bad), nil
	}
	return sorry("%s", advised(err)), nil
}

// badArguments says what is wrong with the arguments of a call.
type badArguments string

func (b badArguments) Error() string { return string(b) }

// arguments reads what a model wrote. Nothing at all is no argument.
func arguments(text string, into any) error {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil && dec.Decode(&json.RawMessage{}) != io.EOF {
		err = errors.New("there is more after the object")
	}
	if err != nil {
		return badArguments(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func (t *talk) listDatasets(ctx context.Context, args string) (string, error) {
	if err := arguments(args, &struct{}{}); err != nil {
		return "", err
	}
	return toldDatasets(t.platform.Datasets().List(ctx, cove.DatasetFilter{Limit: maxDatasets + 1}))
}

func (t *talk) getSchema(ctx context.Context, args string) (string, error) {
	var in struct {
		Dataset string `json:"dataset_id"`
	}
	if err := arguments(args, &in); err != nil {
		return "", err
	}
	if in.Dataset == "" {
		in.Dataset = t.req.Dataset
	}
	if in.Dataset == "" {
		return "", badArguments("dataset_id is missing")
	}
	d, err := t.platform.Datasets().Schema(ctx, in.Dataset)
	if err != nil {
		return "", err
	}
	return toldSchema(d), nil
}

// question is what both tools that run something take.
type question struct {
	SQL     string `json:"sql"`
	Python  string `json:"python_code"`
	Dataset string `json:"dataset_id"`
	MaxRows int    `json:"max_rows"`
}

func (t *talk) runSQL(ctx context.Context, args string) (string, error) {
	var q question
	if err := arguments(args, &q); err != nil {
		return "", err
	}
	if q.SQL == "" || q.Python != "" {
		return "", badArguments("it takes sql, and no python_code")
	}
	return t.ask(ctx, q, cove.RunRequest{Type: cove.QuerySQL, SQL: q.SQL})
}

func (t *talk) runPython(ctx context.Context, args string) (string, error) {
	var q question
	if err := arguments(args, &q); err != nil {
		return "", err
	}
	if q.Python == "" || q.SQL != "" {
		return "", badArguments("it takes python_code, and no sql")
	}
	return t.ask(ctx, q, cove.RunRequest{Type: cove.QueryPython, Python: q.Python})
}

// ask runs what a model wrote. Its bound on rows may tighten the caller's.
func (t *talk) ask(ctx context.Context, q question, req cove.RunRequest) (string, error) {
	req.Dataset, req.MaxRows = q.Dataset, t.req.MaxRows
	if req.Dataset == "" {
		req.Dataset = t.req.Dataset
	}
	if q.MaxRows != 0 && (req.MaxRows == 0 || q.MaxRows < req.MaxRows) {
		req.MaxRows = q.MaxRows
	}
	run, fault, err := t.run(ctx, req)
	if fault == nil {
		if err != nil {
			return "", err
		}
		return told(nil, run.Answer), nil
	}
	if run != nil {
		return told(fault, run.Answer), nil
	}
	return told(fault, nil), nil
}

// sorry tells a model what was wrong with what it asked.
func sorry(format string, args ...any) string {
	return inJSON(map[string]any{"status": "error", "error": map[string]string{"message": fmt.Sprintf(format, args...)}})
}

// inJSON writes what a model reads: as it is, since nobody shows it as HTML.
func inJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `{"status":"error","error":{"message":"the result cannot be written down"}}`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

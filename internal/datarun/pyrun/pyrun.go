package pyrun

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Question is Python code about tables.
type Question struct {
	Code   string
	Tables []Table // the code has each by name and in dfs; loaded when it names them

	Timeout   time.Duration // for the code; loading has LoadTimeout
	MaxRows   int           // more are cut
	MaxOutput cove.Bytes    // of the rows, of stdout and of stderr; more is cut

	LoadTimeout time.Duration // 0 is a minute
	Scratch     string        // a directory that is made for the code to write to; "": there is none
	Memory      cove.Bytes    // that the sandbox has, for the sentence when it is not enough; 0: not known
}

// Table is a file inside the sandbox that becomes a frame.
type Table struct {
	Name    string // in dfs; where it is no identifier, code has it with _ in place of what is not
	Path    string // absolute, inside
	File    string // what messages call it; "" is the last part of Path
	Format  Format
	Columns []string // only these, in the file's order; nil is all
	Problem string   // why it cannot be had, as a sentence; told when the code uses it
}

// Named reports whether code may speak of a table. It errs on the side of yes.
func Named(code, table string) bool { return names(code, table) || strings.Contains(code, "dfs") }

// Format is how the rows of a table are written down.
type Format string

// The formats. Both kinds of JSON are found out by looking.
const (
	CSV     Format = "csv" // the separator is found in the first line: , ; | or a tab
	JSON    Format = "json"
	Parquet Format = "parquet" // is only read as a Frame: INVALID_INPUT says so
	Frame   Format = "frame"   // what DuckDB's executable wrote for Python; see internal/duckdb/ask
)

// Result is what came of a question.
type Result struct {
	Answer *cove.RunAnswer // Wall is the time of the code; Provider is not set
	Load   time.Duration   // of the tables
}

// defaultLoad bounds the loading of tables.
const defaultLoad = time.Minute

// closeTime bounds the end of an interpreter.
const closeTime = 10 * time.Second

// Interpreter is a fresh Python with pandas loaded, for one question.
type Interpreter struct{ kernel cove.Kernel }

// oneThread has numpy start no threads when it is loaded: landlock binds the thread that
// asks for it, and those that it starts later.
var oneThread = map[string]string{"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

// Open starts an interpreter and has it load pandas, so that a question does not
// wait for that. It outlives ctx. The caller closes it, asked or not.
func Open(ctx context.Context, kernels cove.Kernels, in cove.Starter) (*Interpreter, error) {
	k, err := kernels.Open(ctx, in, cove.KernelSpec{
		Language: "python", Warm: true, Env: oneThread, Preload: []string{"numpy", "pandas", "ctypes", "tempfile"},
	})
	if err != nil {
		return nil, err
	}
	return &Interpreter{kernel: k}, nil
}

// Alive reports whether the interpreter can still be asked.
func (i *Interpreter) Alive() bool { return i.kernel.Alive() }

// Close ends the interpreter and all that its code started.
func (i *Interpreter) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return i.kernel.Close(ctx)
}

// Run answers a question in an interpreter of its own, which is gone afterwards. A
// question that fails is an answer; an error means that the interpreter could not
// be had or was lost, or that ctx ended.
func Run(ctx context.Context, kernels cove.Kernels, in cove.Starter, q Question) (*Result, error) {
	i, err := Open(ctx, kernels, in)
	if err != nil {
		return nil, err
	}
	r, err := i.Run(ctx, q)
	if closing := i.Close(ctx); err == nil && closing != nil {
		return nil, cove.Wrap(cove.Unavailable, closing, "the interpreter of the run did not end")
	}
	return r, err
}

// Run answers a question, as the function of this name does. It is called at most
// once: what the code left would be there for the next.
func (i *Interpreter) Run(ctx context.Context, q Question) (*Result, error) {
	if err := i.kernel.Adopt(ctx, "", nil); err != nil {
		return nil, err
	}
	return (&run{kernel: i.kernel, q: q}).all(ctx)
}

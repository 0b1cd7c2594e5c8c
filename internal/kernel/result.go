package kernel

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// run is one piece of code under way. All but done and flood is guarded by the
// exchange's lock until done is closed or the exchange has ended it.
type run struct {
	seq   uint32
	begun time.Time
	out   func(cove.Chunk)
	shown func(cove.Rich, bool)
	pause func() <-chan struct{} // [cove.KernelRun.Paused]
	limit int64                  // of output; 0: none
	done  chan struct{}          // closed when the driver has said all
	flood chan struct{}          // gets one when the limit of output is passed

	spent    int64
	parts    []byte // of the message that is coming
	coming   kind   // what it is
	values   []cove.Rich
	main     int // which of them is that of the last expression, from 1
	size     int // of the values
	cut      bool
	raised   *cove.CodeError
	exit     int
	cpu      time.Duration
	memory   cove.Bytes
	marked   bool
	finished bool
}

func newRun(seq uint32, what cove.KernelRun) *run {
	r := &run{
		seq: seq, begun: time.Now(), out: what.OnOutput, shown: what.OnResult, pause: what.Paused, limit: int64(what.Limits.Output),
		done: make(chan struct{}), flood: make(chan struct{}, 1),
	}
	if r.out == nil {
		r.out = func(cove.Chunk) {}
	}
	if r.pause == nil {
		r.pause = func() <-chan struct{} { return nil }
	}
	if r.shown == nil {
		r.shown = func(cove.Rich, bool) {}
	}
	return r
}

// write hands output on, to the byte that the limit allows.
func (r *run) write(from cove.Stream, data []byte) {
	if r.limit > 0 && r.spent+int64(len(data)) > r.limit {
		select {
		case r.flood <- struct{}{}:
		default:
		}
		data = data[:r.limit-r.spent]
	}
	if len(data) == 0 {
		return
	}
	r.out(cove.Chunk{Stream: from, Offset: r.spent, Data: append([]byte(nil), data...)})
	r.spent += int64(len(data))
}

// hear takes a frame of the run and reports whether it was the last one.
func (r *run) hear(f frame, from cove.Stream) bool {
	if f.kind == sayMark {
		r.marked = r.marked || from == cove.Stderr
		return r.marked && r.finished
	}
	if r.coming != f.kind { // the rest of another one never came
		r.parts, r.coming = nil, f.kind
	}
	if len(r.parts)+len(f.body) <= maxValueSize+maxFrame {
		r.parts = append(r.parts, f.body...)
	} else {
		r.cut = true
	}
	if f.part {
		return false
	}
	body := r.parts
	r.parts = nil
	switch f.kind { //nolint:exhaustive // the others are not about a run
	case sayValue, sayMain:
		r.show(body, f.kind == sayMain)
	case sayError:
		r.raise(body)
	case sayDone:
		r.finished = r.finish(body) || r.finished
	}
	return r.marked && r.finished
}

// show takes a value: types and forms in turn.
func (r *run) show(body []byte, main bool) {
	if len(r.values) >= maxValues || r.size+len(body) > maxValueSize {
		r.cut = true
		return
	}
	words, ok := unlist(body, 2*maxForms)
	if !ok || len(words) < 2 || len(words)%2 != 0 {
		return
	}
	value := cove.Rich{}
	for i := 0; i < len(words); i += 2 {
		if isType(words[i]) {
			value[words[i]] = strings.ToValidUTF8(words[i+1], "\uFFFD")
		}
	}
	if len(value) > 0 {
		r.values = append(r.values, value)
		r.size += len(body)
		main = main && r.main == 0
		if main {
			r.main = len(r.values)
		}
		r.shown(maps.Clone(value), main)
	}
}

// isType reports whether a word can be the name of a form.
func isType(word string) bool {
	if word == "" || len(word) > maxType || strings.Count(word, "/") != 1 {
		return false
	}
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789.+-_/") == ""
}

// raise takes an error.
func (r *run) raise(body []byte) {
	words, ok := unlist(body, 4)
	if !ok || len(words) != 4 {
		return
	}
	line, _ := strconv.Atoi(words[3])
	if line < 0 {
		line = 0
	}
	r.raised = &cove.CodeError{
		Name: clean(words[0], maxName), Value: clean(words[1], maxText),
		Traceback: clean(words[2], maxText), Line: line,
	}
}

// finish takes the numbers of the end. What is not one is no end.
func (r *run) finish(body []byte) bool {
	words, ok := unlist(body, 3)
	if !ok || len(words) != 3 {
		return false
	}
	var n [3]uint64
	for i, w := range words {
		if n[i], ok = number([]byte(w)); !ok {
			return false
		}
	}
	r.exit = int(n[0] & 0xff)
	r.cpu = time.Duration(n[1]) * time.Microsecond   //nolint:gosec // ten digits
	r.memory = cove.Bytes(n[2]) << 10                //nolint:gosec // ten digits
	r.cpu = min(r.cpu, time.Since(r.begun)*maxCores) // nobody is billed for more than there is
	return true
}

// maxCores is more than a machine has.
const maxCores = 1024

// result is the answer about code that came to its end.
func (r *run) result() *cove.CodeResult {
	out := &cove.CodeResult{Results: r.values, Main: r.main, Error: r.raised, Count: int(r.seq)}
	out.Outcome, out.ExitCode = cove.Exited, r.exit
	out.Wall, out.CPU, out.PeakMemory = time.Since(r.begun), r.cpu, r.memory
	if r.cut {
		out.Results = append(out.Results, cove.Rich{
			"text/plain": "(more was shown: an answer holds " + strconv.Itoa(maxValues) + " values and " + strconv.Itoa(maxValueSize>>20) + " MB of them)",
		})
	}
	return out
}

// flooded reports whether the run passed its limit of output. It is asked once.
func (r *run) flooded() bool {
	select {
	case <-r.flood:
		return true
	default:
		return false
	}
}

// stopped is the answer about code that was stopped for a reason. If kept, its
// interpreter lives on.
func (r *run) stopped(why reason, kept bool) *cove.CodeResult {
	out := r.result()
	out.Outcome, out.ExitCode = why.outcome, why.code
	text := why.text + "; the variables are kept"
	if !kept {
		text = why.text + "; the interpreter did not stop and was ended: its variables are gone"
	}
	out.Error = &cove.CodeError{Name: why.name, Value: text}
	if was := r.raised; was != nil {
		out.Error.Line = was.Line
		// Where it was is told by what the interrupt raised; the rest is ours to say.
		if where, ok := strings.CutSuffix(strings.TrimSpace(was.Traceback), was.Name); ok {
			out.Error.Traceback = where + why.name + ": " + text + "\n"
		}
	}
	return out
}

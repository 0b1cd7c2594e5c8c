package duckdb

// Waiting is how many questions are under way or wait.
func (h *Helper) Waiting() int { return int(h.waiting.Load()) }

// Width is that of a row.
var Width = width

// Hear gives what a helper writes, in these pieces, to one that was asked once, and
// returns the answer that it heard, and whether it was all fine.
func Hear(pieces ...[]byte) (answer []byte, fine bool) {
	a := newAnswers()
	a.expect()
	for _, p := range pieces {
		_, _ = a.Write(p)
	}
	select {
	case answer = <-a.got:
	default:
	}
	return answer, a.fine()
}

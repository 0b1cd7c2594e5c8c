package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

// pattern is content in which no two blocks are alike and every byte occurs.
func pattern(size int) []byte {
	b := make([]byte, size)
	state := uint32(2463534242)
	for i := range b {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		b[i] = byte(state >> 8)
	}
	return b
}

func streamTests() []test {
	return []test{
		{"stdin_arrives", stdinArrives},
		{"no_stdin_is_empty", noStdin},
		{"large_stdin", largeStdin},
		{"stdin_that_nobody_reads", unreadStdin},
		{"stdin_that_fails_ends", failingStdin},
		{"stdin_piece_by_piece", stdinPieces},
		{"stdin_before_it_is_read", stdinEarly},
		{"streams_are_apart", streamsApart},
		{"bytes_are_unchanged", bytesUnchanged},
		{"order_within_a_stream", orderKept},
		{"nothing_is_lost_at_the_end", nothingLost},
		{"output_that_nobody_wants", unwantedOutput},
		{"writer_that_fails_ends_the_program", failingWriter},
		{"writer_that_is_slow_loses_nothing", slowWriter},
		{"output_limit", outputLimit},
		{"output_limit_counts_both_streams", outputLimitBoth},
		{"output_at_the_limit_is_fine", outputAtLimit},
	}
}

func stdinArrives(e *env) {
	s := e.sandbox()
	for _, in := range []string{"", "x", "line\n", "no newline at the end", "ü\x00\xff\n"} {
		r := e.run(s, cove.Command{Argv: []string{"cat"}, Stdin: reader(in)})
		equal(e, r.stdout, in, "what cat copied")
		e.ended(r.Result, cove.Exited, 0, "")
	}
	r := e.run(s, cove.Command{Argv: []string{"sh"}, Stdin: reader("echo from a script\nexit 4\n")})
	equal(e, r.stdout, "from a script\n", "the output of a script on stdin")
	e.ended(r.Result, cove.Exited, 4, "")
}

func noStdin(e *env) {
	s := e.sandbox()
	r := e.argv(s, "cat")
	equal(e, r.stdout, "", "what cat copied")
	e.ended(r.Result, cove.Exited, 0, "")
}

func largeStdin(e *env) {
	s := e.sandbox()
	in := pattern(8 << 20)
	var out bytes.Buffer
	e.run(s, cove.Command{Argv: []string{"cat"}, Stdin: bytes.NewReader(in), Stdout: &out})
	if !bytes.Equal(out.Bytes(), in) {
		e.Errorf("8 MiB through cat came back as %d bytes, not the same", out.Len())
	}
}

func unreadStdin(e *env) {
	s := e.sandbox()
	r := e.run(s, cove.Command{Argv: []string{"true"}, Stdin: bytes.NewReader(pattern(1 << 20))})
	e.ended(r.Result, cove.Exited, 0, "")
	r = e.run(s, cove.Command{Argv: []string{"head", "-c", "3"}, Stdin: bytes.NewReader(bytes.Repeat([]byte("abc"), 1<<20))})
	equal(e, r.stdout, "abc", "the start of a large input")
	e.ended(r.Result, cove.Exited, 0, "")
}

func failingStdin(e *env) {
	s := e.sandbox()
	in := io.MultiReader(reader("so far"), iotest.ErrReader(errors.New("the caller's reader broke")))
	c := shell("cat >f.new; mv f.new f")
	c.Stdin = in
	e.ended(e.run(s, c).Result, cove.Killed, 137, "KILL")
	_, err := s.Files().Stat(e.ctx(), "f")
	e.wants(cove.NotFound, err, "a file that is made when all the input was read")
}

func stdinPieces(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(`while read line; do echo "got $line"; done; echo end`))
	p.send("one\n")
	p.out.until("got one\n")
	p.send("two\n")
	p.out.until("got two\n")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, p.out.String(), "got one\ngot two\nend\n", "the output")
}

// stdinEarly writes to a program that reads only when that was written.
func stdinEarly(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell(`while [ ! -e go ]; do sleep 0.01; done; cat`))
	p.send("one\n")
	p.send("two\n")
	e.must(p.in.Close(), "close the input")
	e.write(s, "go", "")
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, p.out.String(), "one\ntwo\n", "what was written before it was read")
}

func streamsApart(e *env) {
	s := e.sandbox()
	r := e.sh(s, "echo out1; echo err1 >&2; echo out2; echo err2 >&2")
	equal(e, r.stdout, "out1\nout2\n", "stdout")
	equal(e, r.stderr, "err1\nerr2\n", "stderr")
}

func bytesUnchanged(e *env) {
	s := e.sandbox()
	in := pattern(4 << 20)
	e.must(s.Files().Write(e.ctx(), "blob", bytes.NewReader(in), 0o644), "write")
	var out, errs bytes.Buffer
	e.run(s, cove.Command{Argv: []string{"sh", "-c", "cat blob & cat blob >&2; wait"}, Stdout: &out, Stderr: &errs})
	if !bytes.Equal(out.Bytes(), in) || !bytes.Equal(errs.Bytes(), in) {
		e.Errorf("4 MiB came back as %d and %d bytes, not the same", out.Len(), errs.Len())
	}
}

func orderKept(e *env) {
	s := e.sandbox()
	var want strings.Builder
	for i := range 20000 {
		want.WriteString(strconv.Itoa(i+1) + "\n")
	}
	e.prints(s, want.String(), "seq 1 20000")
	e.prints(s, want.String()[:strings.Index(want.String(), "\n501\n")+1], "i=1; while [ $i -le 500 ]; do echo $i; i=$((i+1)); done")
}

func nothingLost(e *env) {
	s := e.sandbox()
	for range 25 {
		e.prints(s, strings.Repeat("x", 5000)+"end", "head -c 5000 /dev/zero | tr '\\0' x; printf end")
	}
	r := e.sh(s, "head -c 3000000 /dev/zero; exit 5")
	equal(e, len(r.stdout), 3000000, "the bytes before the end")
	e.ended(r.Result, cove.Exited, 5, "")
}

func unwantedOutput(e *env) {
	s := e.sandbox()
	p := e.start(s, shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 6"))
	e.ended(e.wait(p), cove.Exited, 6, "")
}

// brokenWriter takes a little and then fails.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("the caller's writer broke")
	}
	return len(b), nil
}

func failingWriter(e *env) {
	s := e.sandbox()
	p := e.start(s, cove.Command{Argv: []string{"yes"}, Stdout: &brokenWriter{100}})
	if r := e.wait(p); r.Outcome == cove.Exited && r.ExitCode == 0 {
		e.Errorf("a program that could not write ended well: %+v", r)
	}
	e.prints(s, "fine\n", "echo fine")
}

// slowTaker blocks in every write until it is let through.
type slowTaker struct {
	mu    sync.Mutex
	n     int
	gate  chan struct{}
	first chan struct{}
	once  sync.Once
}

func (w *slowTaker) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.first) })
	<-w.gate
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n += len(b)
	return len(b), nil
}

func slowWriter(e *env) {
	s := e.sandbox()
	w := &slowTaker{gate: make(chan struct{}), first: make(chan struct{})}
	p := e.start(s, cove.Command{Argv: []string{"head", "-c", "5000000", "/dev/zero"}, Stdout: w})
	select {
	case <-w.first:
	case <-e.ctx().Done():
		e.Fatal("the program never wrote")
	}
	ctx, cancel := context.WithTimeout(e.ctx(), moment)
	defer cancel()
	if _, err := p.Wait(ctx); err == nil {
		e.Errorf("the program ended before its output was delivered")
	}
	close(w.gate)
	e.ended(e.wait(p), cove.Exited, 0, "")
	w.mu.Lock()
	defer w.mu.Unlock()
	equal(e, w.n, 5000000, "the bytes delivered")
}

func outputLimit(e *env) {
	s := e.sandbox()
	r := e.run(s, cove.Command{Argv: []string{"yes"}, Limits: cove.Limits{Output: 1001}})
	e.ended(r.Result, cove.OutputLimit, 137, "KILL")
	equal(e, r.stdout, strings.Repeat("y\n", 500)+"y", "what was delivered")
}

func outputLimitBoth(e *env) {
	s := e.sandbox()
	cmd := shell("while :; do echo out; echo err >&2; done")
	cmd.Limits.Output = 5000
	r := e.run(s, cmd)
	e.ended(r.Result, cove.OutputLimit, 137, "KILL")
	equal(e, len(r.stdout)+len(r.stderr), 5000, "the bytes of both streams")
}

func outputAtLimit(e *env) {
	s := e.sandbox()
	cmd := shell("printf 01234; printf 56789 >&2")
	cmd.Limits.Output = 10
	r := e.run(s, cmd)
	e.ended(r.Result, cove.Exited, 0, "")
	equal(e, r.stdout+r.stderr, "0123456789", "the output")
}

package platformtest

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func outputCases() []testCase {
	return []testCase{
		{"budget", outputBudget},
		{"by_range", outputByRange},
		{"by_stream", outputByStream},
		{"grep", outputGrep},
		{"bad_ranges", outputBadRanges},
		{"kept_to_a_cap", outputKept},
		{"limit", outputLimit},
		{"binary", outputBinary},
	}
}

// long runs a program that writes more than the budget of 1 KiB to both streams.
func (r *rig) long(p cove.Platform) (cove.ID, *cove.Execution) {
	r.t.Helper()
	id := r.session(p, cove.Spec{}).ID
	e := r.exec(p, id, cove.ExecRequest{Line: "seq 1 5000; seq 1 3000 >&2"})
	if e.OutputID == "" {
		r.t.Fatal("output over the budget has no id")
	}
	return id, e
}

// pages reads kept output from page to page.
func (r *rig) pages(p cove.Platform, id cove.ID, output cove.OutputID, at cove.OutputRange) string {
	r.t.Helper()
	var text strings.Builder
	for range 1000 {
		page, err := p.Processes(id).Output(r.ctx, output, at)
		r.must(err, "read kept output")
		if at.Limit > 0 && int64(len(page.Data)) > at.Limit {
			r.t.Fatalf("a page of %d bytes has %d", at.Limit, len(page.Data))
		}
		text.Write(page.Data)
		if page.Next < 0 {
			return text.String()
		}
		if page.Next <= at.Offset {
			r.t.Fatalf("a page at %d goes on at %d", at.Offset, page.Next)
		}
		at.Offset = page.Next
	}
	r.t.Fatal("the pages of kept output never end")
	return ""
}

func outputBudget(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	_, e := r.long(p)
	for _, c := range []struct {
		got   cove.Output
		whole string
	}{{e.Stdout, seq(5000)}, {e.Stderr, seq(3000)}} {
		text := string(c.got.Data)
		if lines := int64(strings.Count(c.whole, "\n")); !c.got.Truncated || c.got.Bytes != int64(len(c.whole)) || c.got.Lines != lines {
			t.Errorf("truncated %t, %d bytes, %d lines; want %d and %d", c.got.Truncated, c.got.Bytes, c.got.Lines, len(c.whole), lines)
		}
		if len(text) > 1300 || !strings.HasPrefix(text, c.whole[:100]) || !strings.HasSuffix(text, c.whole[len(c.whole)-100:]) {
			t.Errorf("%d bytes are not head and tail within the budget: %q", len(text), text)
		}
	}
	if e.Outcome != cove.Exited || e.ExitCode != 0 {
		t.Errorf("a long output made the program end as %+v", e.Result)
	}
}

func outputByRange(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id, e := r.long(p)
	page, err := p.Processes(id).Output(r.ctx, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Offset: 10, Limit: 20})
	r.must(err, "read kept output")
	same(t, "one page", page, &cove.OutputPage{Data: []byte(seq(100)[10:30]), Offset: 10, Next: 30, Total: e.Stdout.Bytes})
	same(t, "all pages of 700 bytes", r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Limit: 700}), seq(5000))
	same(t, "all pages of the usual size", r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stdout}), seq(5000))
	both := r.pages(p, id, e.OutputID, cove.OutputRange{})
	if len(both) != len(seq(5000))+len(seq(3000)) {
		t.Errorf("both streams together have %d bytes", len(both))
	}
	end, err := p.Processes(id).Output(r.ctx, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Offset: e.Stdout.Bytes})
	r.must(err, "read at the end")
	if len(end.Data) > 0 || end.Next != -1 || end.Total != e.Stdout.Bytes {
		t.Errorf("at the end there is %+v", end)
	}
	_, err = p.Processes(id).Output(r.ctx, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Offset: 1 << 40})
	if err != nil {
		wantCode(t, err, cove.Invalid)
	}
}

func outputByStream(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id, e := r.long(p)
	same(t, "stdout", r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stdout}), seq(5000))
	same(t, "stderr", r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stderr}), seq(3000))
}

func outputGrep(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id, e := r.long(p)
	grep := func(expr string, limit int64) string {
		return r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Grep: expr, Limit: limit})
	}
	same(t, "one line", grep("^42$", 0), "42\n")
	same(t, "lines far apart", grep("^(7|2500|5000)$", 0), "7\n2500\n5000\n")
	same(t, "lines on many pages", grep("^499", 16), "499\n4990\n4991\n4992\n4993\n4994\n4995\n4996\n4997\n4998\n4999\n")
	same(t, "no line", grep("^x", 0), "")
}

func outputBadRanges(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB})
	p := r.user("acme")
	id, e := r.long(p)
	for _, at := range []cove.OutputRange{
		{Grep: "("}, {Grep: strings.Repeat("a", 1<<20)}, {Offset: -1}, {Limit: -1}, {Stream: "stdin"},
	} {
		_, err := p.Processes(id).Output(r.ctx, e.OutputID, at)
		wantCode(t, err, cove.Invalid)
	}
	_, err := p.Processes(id).Output(r.ctx, e.OutputID, cove.OutputRange{Grep: "("})
	wantField(t, err, cove.Invalid, "grep")
	for _, output := range []cove.OutputID{"none", "../../etc/passwd", e.OutputID + "x"} {
		_, err := p.Processes(id).Output(r.ctx, output, cove.OutputRange{})
		wantCode(t, err, cove.NotFound)
	}
	other := r.session(p, cove.Spec{}).ID
	_, err = p.Processes(other).Output(r.ctx, e.OutputID, cove.OutputRange{})
	wantCode(t, err, cove.NotFound)
}

func outputKept(t *testing.T, s *suite) {
	r := s.start(t, Options{OutputBudget: cove.KiB, OutputKept: 8 * cove.KiB})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	e := r.exec(p, id, cove.ExecRequest{Line: "seq 1 5000"})
	if e.Outcome != cove.Exited || e.Stdout.Bytes != int64(len(seq(5000))) {
		t.Errorf("a program over the cap on kept output ended as %+v with %d bytes", e.Result, e.Stdout.Bytes)
	}
	page, err := p.Processes(id).Output(r.ctx, e.OutputID, cove.OutputRange{Stream: cove.Stdout, Limit: 10})
	r.must(err, "read kept output")
	if page.Total > 8<<10 || page.Total == 0 || page.Total+page.Dropped != e.Stdout.Bytes {
		t.Errorf("with a cap of 8 KiB %d bytes are kept and %d dropped of %d", page.Total, page.Dropped, e.Stdout.Bytes)
	}
	same(t, "what was kept", r.pages(p, id, e.OutputID, cove.OutputRange{Stream: cove.Stdout}), seq(5000)[:page.Total])
}

func outputLimit(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	e := r.exec(p, id, cove.ExecRequest{Line: "yes", Limits: cove.Limits{Output: 10 * cove.KiB}})
	if e.Outcome != cove.OutputLimit || e.ExitCode == 0 {
		t.Errorf("a program over its output is told as %+v", e.Result)
	}
	same(t, "the next program", r.sh(p, id, "echo fine"), "fine\n")
}

func outputBinary(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	raw := make([]byte, 256)
	for i := range raw {
		raw[i] = byte(i)
	}
	e := r.exec(p, id, cove.ExecRequest{Line: "cat", Stdin: strings.NewReader(string(raw))})
	same(t, "bytes that are not text", e.Stdout.Data, raw)
}

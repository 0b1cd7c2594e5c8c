package kernel_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// say is a frame as a driver writes it.
func say(kind byte, seq int, words ...string) string {
	body := kernel.List(words...)
	return fmt.Sprintf("\x1emark%c %d %d\n%s", kind, seq, len(body), body)
}

// write puts texts into a stream.
func write(t *testing.T, w io.Writer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
		}
	}
}

func TestStream(t *testing.T) {
	done := say('D', 1, "0", "5", "6")
	for _, c := range []struct {
		name     string
		out, err []string
		heard    string
		values   []cove.Rich
		raised   *cove.CodeError
		over     bool
	}{
		{name: "output", out: []string{"a\n", "b"}, heard: "a\nb"},
		{name: "the end", out: []string{"a", done}, err: []string{"b", say('M', 1)}, heard: "ab", over: true},
		{name: "no mark", out: []string{done}},
		{name: "the mark is of stderr", out: []string{say('M', 1), done}},
		{name: "another run's end", out: []string{say('D', 2, "0", "0", "0")}, err: []string{say('M', 1)}},
		{name: "an end without numbers", out: []string{say('D', 1, "x", "0", "0"), say('D', 1, "0"), say('D', 1, "-1", "0", "0")}, err: []string{say('M', 1)}},
		{name: "a value", out: []string{say('R', 1, "text/plain", "1", "text/html", "<b>")}, values: []cove.Rich{{"text/plain": "1", "text/html": "<b>"}}},
		{name: "in parts", out: []string{"\x1emarkr 1 3\n10:", "x\x1emarkR 1 15\ntext/plain3:a\xffb", "y"}, heard: "xy", values: []cove.Rich{{"text/plain": "a\uFFFDb"}}},
		{name: "a part whose rest never comes", out: []string{"\x1emarkr 1 3\n10:", say('E', 1, "E", "v", "t", "7")}, raised: &cove.CodeError{Name: "E", Value: "v", Traceback: "t", Line: 7}},
		{name: "bad values", out: []string{say('R', 1), say('R', 1, "text/plain"), say('R', 1, "no type", "x"), say('R', 1, "TEXT/plain", "x"), "\x1emarkR 1 3\n9:x"}},
		{name: "an error", out: []string{say('E', 1, "E", "v", "t", "7")}, raised: &cove.CodeError{Name: "E", Value: "v", Traceback: "t", Line: 7}},
		{name: "a bad line", out: []string{say('E', 1, "E", "v", "t", "-7"), say('E', 1, "F")}, raised: &cove.CodeError{Name: "E", Value: "v", Traceback: "t"}},
		{name: "cut anywhere", out: slices.Collect(func(yield func(string) bool) {
			for _, b := range []byte("a" + say('R', 1, "text/plain", "1") + "b" + done) {
				if !yield(string([]byte{b})) {
					return
				}
			}
		}), err: []string{say('M', 1)}, heard: "ab", values: []cove.Rich{{"text/plain": "1"}}, over: true},
		{name: "no frame", out: []string{"\x1emark", "Z 1 0\n", "\x1emarkD 1\n", "\x1emarkD 1 9999\n", "\x1emarkD x 1\n", "\x1emark" + strings.Repeat("9", 40), "\x1emar", "c"}, heard: "\x1emarkZ 1 0\n\x1emarkD 1\n\x1emarkD 1 9999\n\x1emarkD x 1\n\x1emark" + strings.Repeat("9", 40) + "\x1emarc"},
		{name: "half a frame at the end", out: []string{"a\x1emarkD 1 50\n3:"}, heard: "a\x1emarkD 1 50\n3:"},
		{name: "a marker in a marker", out: []string{"\x1e\x1emark\x1emarkR 1 0\n"}, heard: "\x1e\x1emark"},
		{name: "other words", out: []string{say('L', 0, "bye"), say('H', 0, "1", "2", "3"), say('A', 0, ""), say('L', 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &heard{}
			ear := kernel.NewEar(h.hear)
			write(t, ear.Stdout(), c.out...)
			write(t, ear.Stderr(), c.err...)
			if ear.Done() != c.over {
				t.Errorf("it is over: %v", ear.Done())
			}
			got := ear.End()
			if d := cmp.Diff(c.heard, h.all.String()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.values, got.Results); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.raised, got.Error); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestOrder: where the driver says which came first, that is how they are heard.
func TestOrder(t *testing.T) {
	point, after := func(k int) string { return say('B', k) }, func(k int) string { return say('W', k) }
	out := []string{"1", point(1), after(2), "3", point(3), after(4), "5" + say('D', 1, "0", "0", "0")}
	err := []string{after(1), "2", point(2), after(3), "4", point(4), say('M', 1)}
	for name, whole := range map[string]func(*kernel.Ear){
		"stdout first":   func(e *kernel.Ear) { write(t, e.Stdout(), out...); write(t, e.Stderr(), err...) },
		"stderr first":   func(e *kernel.Ear) { write(t, e.Stderr(), err...); write(t, e.Stdout(), out...) },
		"stderr at once": func(e *kernel.Ear) { write(t, e.Stderr(), strings.Join(err, "")); write(t, e.Stdout(), out...) },
		"in turn": func(e *kernel.Ear) {
			for i := range err {
				write(t, e.Stdout(), out[i])
				write(t, e.Stderr(), err[i])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &heard{}
			ear := kernel.NewEar(h.hear)
			whole(ear)
			if h.all.String() != "12345" || !ear.Done() {
				t.Errorf("heard %q, over: %v", h.all.String(), ear.Done())
			}
		})
	}
	h := &heard{}
	ear := kernel.NewEar(h.hear)
	write(t, ear.Stderr(), after(9), "waits for what never comes")
	if h.all.Len() > 0 {
		t.Errorf("heard %q too early", h.all.String())
	}
	write(t, ear.Stderr(), strings.Repeat("x", kernel.MaxQueue))
	if h.all.Len() != 26+kernel.MaxQueue || ear.Held() > 0 {
		t.Errorf("heard %d bytes", h.all.Len())
	}
	write(t, ear.Stderr(), after(10), "y")
	ear.End()
	if !strings.HasSuffix(h.all.String(), "xy") {
		t.Error("at the end not all was heard")
	}
}

// TestBetweenRuns: what nobody hears is heard by the next, up to a bound.
func TestBetweenRuns(t *testing.T) {
	ear := kernel.NewEar((&heard{}).hear)
	ear.End()
	write(t, ear.Stdout(), "late", say('R', 1, "text/plain", "old"))
	write(t, ear.Stderr(), "too")
	h := &heard{}
	ear.Again(h.hear)
	write(t, ear.Stdout(), "new")
	if got := ear.End(); h.all.String() != "latetoonew" || len(got.Results) > 0 {
		t.Errorf("heard %q and %v", h.all.String(), got.Results)
	}
	for range kernel.MaxStray {
		write(t, ear.Stdout(), "a")
		write(t, ear.Stderr(), "bcd")
	}
	if ear.Held() > 2*kernel.MaxStray {
		t.Errorf("%d bytes are kept", ear.Held())
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("a"+say('R', 1, "text/plain", "1")+"b"), []byte("c"+say('M', 1)), uint8(1))
	f.Add([]byte("\x1emar\x1emarkD 1 3\n1:0"+say('W', 3)+"x"), []byte(say('B', 3)+say('D', 1, "0", "0", "0")), uint8(3))
	f.Add([]byte("\x1emarkr 1 1\nx\x1emarke 1 0\n"), []byte("\x1e"), uint8(2))
	f.Fuzz(func(t *testing.T, out, errs []byte, step uint8) {
		// Of the order of two streams nothing is said here: it depends on the pieces.
		order := func(b []byte) bool { return bytes.Contains(b, []byte("markW")) }
		hear := func(step int) (*heard, *cove.CodeResult) {
			h := &heard{}
			ear := kernel.NewEar(h.hear)
			for piece := range slices.Chunk(out, step) {
				_, _ = ear.Stdout().Write(piece)
				if ear.Held() > 2*kernel.MaxQueue+kernel.MaxFrame+step {
					t.Fatalf("%d bytes are held back", ear.Held())
				}
			}
			for piece := range slices.Chunk(errs, step) {
				_, _ = ear.Stderr().Write(piece)
			}
			return h, ear.End()
		}
		whole, result := hear(max(len(out), len(errs), 1))
		pieces, again := hear(int(step) + 1)
		if order(out) || order(errs) {
			return
		}
		if !bytes.Equal(whole.out.Bytes(), pieces.out.Bytes()) || !bytes.Equal(whole.err.Bytes(), pieces.err.Bytes()) {
			t.Errorf("in pieces %q and %q, at once %q and %q", pieces.out.Bytes(), pieces.err.Bytes(), whole.out.Bytes(), whole.err.Bytes())
		}
		again.CPU, result.CPU = 0, 0
		if d := cmp.Diff(result, again); d != "" {
			t.Error(d)
		}
	})
}

func TestList(t *testing.T) {
	for _, words := range [][]string{nil, {""}, {"a", "", "3:b"}, {strings.Repeat("x", 5000)}} {
		if got, ok := kernel.Unlist(kernel.List(words...), 3); !ok || !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
	for _, bad := range []string{"1", ":", "x:a", "2:a", "-1:a", "99999999999:a", "1:a1:b1:c1:d", strings.Repeat("1", 50)} {
		if got, ok := kernel.Unlist([]byte(bad), 3); ok {
			t.Errorf("%q is a list: %q", bad, got)
		}
	}
}

// TestFramesAreNeverTorn: what children write while a long value is sent is neither
// inside of it nor lost.
func TestFramesAreNeverTorn(t *testing.T) {
	b := python(t)
	const children, blocks, size = 8, 200, 10000
	h := &heard{}
	r, err := b.k.Run(t.Context(), cove.KernelRun{Code: fmt.Sprintf(`import subprocess
class V:
    def _repr_html_(self): return 'v' * (1 << 20)
ps = [subprocess.Popen(['dd', 'if=/dev/zero', 'bs=%d', 'count=%d', 'status=none']) for _ in range(%d)]
for _ in range(7): display(V())
for p in ps: p.wait()
`, size, blocks, children), Limits: cove.Limits{Wall: soon}, OnOutput: h.hear})
	if err != nil || r.Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if h.out.Len() != children*blocks*size || strings.Trim(h.stdout(), "\x00") != "" {
		t.Errorf("%d bytes came of %d", h.out.Len(), children*blocks*size)
	}
	if len(r.Results) != 7 {
		t.Fatalf("%d values came", len(r.Results))
	}
	for _, v := range r.Results {
		if v["text/html"] != strings.Repeat("v", 1<<20) {
			t.Errorf("a value has %d bytes", len(v["text/html"]))
		}
	}
}

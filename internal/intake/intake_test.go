package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
)

var (
	ann = cove.Principal{Tenant: "acme", Name: "ann"}
	bob = cove.Principal{Tenant: "acme", Name: "bob"}
)

func small() *Budget {
	b := New()
	b.server, b.key, b.spare = 100, 40, 0
	return b
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || e.Code != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonRateLimited || e.Details["retry_after"] != 1 || cove.RemedyOf(err) == "" {
		t.Fatalf("the error is %v", err)
	}
	if !strings.Contains(e.Message, want) {
		t.Errorf("%q does not name the bound: %s", e.Message, want)
	}
}

// TestShareOfAKey: a key over its share is refused at once, though the server has
// room, and others are not.
func TestShareOfAKey(t *testing.T) {
	b := small()
	one, two := b.Body(ann), b.Body(ann)
	if err := errors.Join(one.Take(t.Context(), 30), two.Take(t.Context(), 10)); err != nil {
		t.Fatal(err)
	}
	refused(t, two.Take(t.Context(), 1), "this key that are under way hold 40")
	other := b.Body(bob)
	if err := other.Take(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	one.Free()
	if err := two.Take(t.Context(), 30); err != nil {
		t.Errorf("after the other body: %v", err)
	}
	two.Free()
	other.Free()
	if b.used != 0 || len(b.keys) != 0 {
		t.Errorf("%d bytes are left, of %v", b.used, b.keys)
	}
}

// TestServerIsFull: a key within its share waits for others, and is refused when that
// takes too long.
func TestServerIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		var others []*Body
		for _, name := range []string{"1", "2", "3"} {
			one := b.Body(cove.Principal{Name: name})
			if err := one.Take(t.Context(), 30); err != nil {
				t.Fatal(err)
			}
			others = append(others, one)
		}
		mine := b.Body(ann)
		began := time.Now()
		refused(t, mine.Take(t.Context(), 20), "all keys that are under way hold 100")
		if waited := time.Since(began); waited != waitTime {
			t.Errorf("it waited %s", waited)
		}
		got := make(chan error, 1)
		go func() { got <- mine.Take(t.Context(), 20) }()
		synctest.Wait()
		others[0].Free()
		if err := <-got; err != nil {
			t.Errorf("when there is room: %v", err)
		}
		if err := b.Body(bob).Take(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := cove.Errorf(cove.Canceled, "gone")
		go func() { got <- mine.Take(ctx, 20) }()
		synctest.Wait()
		cancel(gone)
		if err := <-got; !errors.Is(err, gone) {
			t.Errorf("when the request ends: %v", err)
		}
	})
}

// TestBeginnings: where large bodies fill the server, small ones of other keys pass.
func TestBeginnings(t *testing.T) {
	b := New()
	b.wait = 0
	var large []*Body
	for _, name := range []string{"1", "2", "3", "4"} {
		one := b.Body(cove.Principal{Name: name})
		if err := one.Take(t.Context(), keyBytes); err != nil {
			t.Fatal(err)
		}
		large = append(large, one)
	}
	small := b.Body(ann)
	if err := small.Take(t.Context(), beginning); err != nil {
		t.Errorf("a small body: %v", err)
	}
	refused(t, small.Take(t.Context(), 1), "all keys that are under way hold 40")
	for n := int64(beginning); n+beginning <= spareBytes; n += beginning {
		if err := b.Body(bob).Take(t.Context(), beginning); err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	refused(t, b.Body(ann).Take(t.Context(), 1), "all keys that are under way hold 40")
	for _, one := range large {
		one.Free()
	}
	if err := b.Body(ann).Take(t.Context(), 1<<20); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}

// TestHold: a body that is held is charged until it is freed as often.
func TestHold(t *testing.T) {
	b := small()
	body := b.Body(ann)
	if err := body.Take(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	body.Hold()
	body.Free()
	if b.used != 40 {
		t.Errorf("%d bytes are charged while it is held", b.used)
	}
	body.Free()
	if b.used != 0 {
		t.Errorf("%d bytes are left", b.used)
	}
}

func TestReadAll(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 100_000)
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(want), "in halves": iotest.HalfReader(bytes.NewReader(want)), "with its end": iotest.DataErrReader(bytes.NewReader(want)),
	} {
		b := New()
		body := b.Body(ann)
		got, err := body.ReadAll(t.Context(), r, -1, int64(len(want)))
		if err != nil || !bytes.Equal(got, want) || b.used != int64(len(want)) {
			t.Errorf("%s: %d bytes, %v, %d charged", name, len(got), err, b.used)
		}
	}
	body := New().Body(ann)
	if _, err := body.ReadAll(t.Context(), bytes.NewReader(want), -1, int64(len(want))-1); cove.ReasonOf(err) != ReasonTooLarge {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := body.ReadAll(t.Context(), iotest.ErrReader(errors.New("read")), 11, 10); cove.ReasonOf(err) != ReasonTooLarge {
		t.Errorf("announced as too long: %v", err)
	}
	broken := errors.New("broken")
	if _, err := body.ReadAll(t.Context(), io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), -1, 10); !errors.Is(err, broken) {
		t.Errorf("broken off: %v", err)
	}
}

// TestHalfABody: what arrived is charged, not what was announced; beyond the share
// nothing more is read.
func TestHalfABody(t *testing.T) {
	b := small()
	inside, client := io.Pipe()
	defer inside.Close()
	got := make(chan error, 1)
	body := b.Body(ann)
	go func() {
		_, err := body.ReadAll(t.Context(), inside, 90, 90)
		got <- err
	}()
	for range 4 { // a write returns when it was read
		if _, err := client.Write(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = client.Write(make([]byte, 10)) }() // the reader may be gone
	refused(t, <-got, "hold 40")
	if b.used != 40 {
		t.Errorf("%d bytes are charged", b.used)
	}
	body.Free()
	if b.used != 0 {
		t.Errorf("%d bytes are left", b.used)
	}
}

func TestCheckJSON(t *testing.T) {
	list := func(n int, element string) string { return "[" + strings.Repeat(element+",", n-2) + element + "]" }
	for name, c := range map[string]struct {
		body string
		want string
	}{
		"as many as may be":  {list(MaxValues, "0"), ""},
		"numbers":            {list(MaxValues+1, "0"), "65536 values and names"},
		"texts":              {list(MaxValues+1, `"\",\""`), "65536 values and names"},
		"objects":            {list(MaxValues+1, "{}"), "65536 values and names"},
		"names":              {`{` + strings.Repeat(`"a":0,`, MaxValues/2) + `"a":0}`, "65536 values and names"},
		"spaces":             {list(MaxValues+1, " null \n"), "65536 values and names"},
		"as deep as may be":  {strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), ""},
		"deep":               {strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "64 levels"},
		"deep objects":       {strings.Repeat(`{"a":`, MaxDepth+1), "64 levels"},
		"brackets in a text": {`"` + strings.Repeat(`[{,`, MaxValues) + `"`, ""},
		"a text without end": {`"` + strings.Repeat(`\`, 11), ""},
	} {
		err := CheckJSON([]byte(c.body))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, cove.Invalid) || cove.ReasonOf(err) != ReasonTooLarge || cove.RemedyOf(err) == "" || !strings.Contains(cove.MessageOf(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzValueEnd: of JSON, it is the end of the first value.
func FuzzValueEnd(f *testing.F) {
	for _, seed := range []string{`1`, `"a\"b"`, `{"a":[1,{"b":null}]}`, `[]`, `true`, `[ [ ] , "]" ]`, `-1.5e3`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := strings.Trim(text, " \t\r\n")
		_ = CheckJSON([]byte(text))
		if !json.Valid([]byte(value)) {
			return
		}
		if n := ValueEnd([]byte(value + `,"more"]`)); n != len(value) {
			t.Fatalf("%q ends at %d", value, n)
		}
	})
}

package e2bapi_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/internal/intake"
)

// TestBodiesOfAKey: a key whose bodies fill its share is told to come back, in the form
// of each call, and others are served; afterwards nothing is left.
func TestBodiesOfAKey(t *testing.T) {
	bodies := intake.New()
	r := serve(t, func(c *e2bapi.Config) { c.Bodies = bodies })
	id := r.open(cove.Spec{})
	control := func(key string) *http.Request {
		req := must(http.NewRequestWithContext(t.Context(), "POST", r.server.URL+"/sandboxes/"+string(id)+"/timeout", strings.NewReader(`{"timeout":60}`)))(t)
		req.Header.Set("X-Api-Key", key)
		return req
	}
	calls := map[string]func() *http.Request{
		"control": func() *http.Request { return control(goodKey) },
		"unary": func() *http.Request {
			return r.inside(t.Context(), id, 49983, "POST", "/process.Process/List", strings.NewReader("{}"), "Content-Type", "application/json")
		},
		"interpreter": func() *http.Request {
			return r.inside(t.Context(), id, 49999, "POST", "/execute", strings.NewReader(`{"code":"1"}`))
		},
	}
	stream := func() *http.Request {
		frame := append([]byte{0, 0, 0, 0, 2}, "{}"...)
		return r.inside(t.Context(), id, 49983, "POST", "/process.Process/StreamInput", bytes.NewReader(frame), "Content-Type", "application/connect+json")
	}
	tester := principals[goodKey]
	full := bodies.Body(tester)
	if err := full.Take(t.Context(), 10<<20); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if status, text, _ := r.read(call()); status != http.StatusTooManyRequests || !strings.Contains(text, "that are under way hold 10m") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if _, text, _ := r.read(stream()); !strings.Contains(text, "resource_exhausted") || !strings.Contains(text, "that are under way hold 10m") {
		t.Errorf("stream: %s", text)
	}
	if status, text, _ := r.read(control(otherKey)); status != http.StatusNotFound {
		t.Errorf("another key: %d %s", status, text)
	}
	full.Free()
	for name, call := range calls {
		if status, text, _ := r.read(call()); status >= 300 {
			t.Errorf("%s afterwards: %d %s", name, status, text)
		}
	}
	if _, text, _ := r.read(stream()); strings.Contains(text, "resource_exhausted") {
		t.Errorf("stream afterwards: %s", text)
	}
	whole := bodies.Body(tester)
	for whole.Take(t.Context(), 10<<20) != nil { // the server may not have seen the end of a request that was answered
		<-time.After(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("something is left")
		}
	}
	whole.Free()
}

// TestFramesOfAStream: of a stream of any length only one message is charged at a time.
func TestFramesOfAStream(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	program := r.stream(t.Context(), id, startCall, bash("read a; echo got $a"))
	pid := program.began()
	body, w := io.Pipe()
	go func() {
		_, _ = w.Write(framed(0, fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid)))
		for range 6 {
			_, _ = w.Write(framed(0, `{"keepalive":{}}`+strings.Repeat(" ", 3<<20)))
		}
		_, _ = w.Write(framed(0, `{"data":{"input":{"stdin":"b25lCg=="}}}`))
		_ = w.Close()
	}()
	in := r.streamOf(t.Context(), id, streamInputCall, body)
	if text, err := io.ReadAll(in.resp.Body); err != nil || !bytes.Equal(text, append(framed(0, "{}"), framed(2, "{}")...)) {
		t.Fatalf("it is answered with %.300q, %v", text, err)
	}
	if o := program.all(); o.stdout != "got one\n" {
		t.Errorf("the program wrote %q", o.stdout)
	}
}

// TestHeaderOfAPart: the header of a part of a form has a bound, also where the form was
// compressed to next to nothing.
func TestHeaderOfAPart(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	form := "--b\r\nContent-Disposition: form-data; name=file; filename=x\r\nX-Large: " + strings.Repeat("x", 1<<20) + "\r\n\r\nx\r\n--b--\r\n"
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, form)
	_ = zip.Close()
	for name, body := range map[string]string{"plain": form, "gzip": packed.String()} {
		header := []string{"Content-Type", "multipart/form-data; boundary=b"}
		if name == "gzip" {
			header = append(header, "Content-Encoding", "gzip")
		}
		if status, text, _ := r.read(r.inside(t.Context(), id, 49983, "POST", "/files", strings.NewReader(body), header...)); status != 400 || !strings.Contains(text, "longer than 32768 bytes") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

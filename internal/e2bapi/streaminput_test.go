package e2bapi_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/cove-sandbox/cove"
)

const streamInputCall = "/process.Process/StreamInput"

// Input comes as it is written, and the program reads it before the stream ends.
func TestStreamInput(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		id := r.open(cove.Spec{})
		s := r.stream(t.Context(), id, startCall, bash("read a; echo 1 $a; read b; echo 2 $b; read c; echo 3 $c"))
		pid := s.began()
		body, w := io.Pipe()
		written := make(chan error, 1)
		go func() {
			defer close(written)
			put := func(message string) {
				if _, err := w.Write(framed(0, message)); err != nil {
					written <- err
				}
			}
			put(fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid))
			put(`{"data":{"input":{"stdin":"b25lCg=="}}}`)
			put(`{"keepalive":{}}`)
			put(`{"data":{"input":{"stdin":"dHdvCg=="}}}`)
			written <- w.Close()
		}()
		// One empty message and the end without an error.
		in := r.streamOf(t.Context(), id, streamInputCall, body)
		if text, err := io.ReadAll(in.resp.Body); err != nil || !bytes.Equal(text, append(framed(0, "{}"), framed(2, "{}")...)) {
			t.Errorf("it is answered with %q, %v", text, err)
		}
		for err := range written {
			if err != nil {
				t.Error(err)
			}
		}
		s.until("2 two\n")
		// The end of the stream is not the end of the input.
		status, got := r.unary(id, "/process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":"dGhyZWUK"}}`, pid))
		if status != 200 {
			t.Errorf("more input is answered with %d %s", status, got)
		}
		if o := s.all(); o.stdout != "3 three\n" {
			t.Errorf("it is %+v", o)
		}
	})
}

func TestStreamInputErrors(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.open(cove.Spec{})
	s := r.stream(t.Context(), id, startCall, bash("cat"))
	pid := s.began()
	start := string(framed(0, fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid)))
	for name, tc := range map[string]struct{ body, code string }{
		"nothing":         {"", "invalid_argument"},
		"no start":        {string(framed(0, `{"data":{"input":{"stdin":"eA=="}}}`)), "invalid_argument"},
		"unknown process": {string(framed(0, `{"start":{"process":{"pid":77}}}`)), "not_found"},
		"no process":      {string(framed(0, `{"start":{}}`)), "invalid_argument"},
		"two starts":      {start + start, "invalid_argument"},
		"another type":    {start + string(framed(0, `{"data":7}`)), "invalid_argument"},
		"half a frame":    {start + "\x00\x00", "invalid_argument"},
		"half a message":  {start + "\x00\x00\x00\x00\x09{", "invalid_argument"},
		"too long":        {start + "\x00\xff\xff\xff\xff{", "resource_exhausted"},
		"compressed":      {start + string(framed(1, "x")), "unimplemented"},
		"an end":          {start + string(framed(2, "{}")), "invalid_argument"},
	} {
		t.Run(name, func(t *testing.T) {
			if o := r.streamOf(t.Context(), id, streamInputCall, bytes.NewReader([]byte(tc.body))).all(); o.code != tc.code || o.message == "" {
				t.Errorf("it is %+v", o)
			}
		})
	}
	silent, w := io.Pipe()
	defer w.Close()
	if o := r.streamOf(t.Context(), id, streamInputCall, io.MultiReader(bytes.NewReader([]byte(start)), silent), "Connect-Timeout-Ms", "40").all(); o.code != "deadline_exceeded" {
		t.Errorf("a stream that says nothing ends with %+v", o)
	}
	if status, body := r.unary(id, "/process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid)); status != 200 {
		t.Fatalf("it is answered with %d %s", status, body)
	}
	s.all()
}

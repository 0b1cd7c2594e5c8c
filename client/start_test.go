package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// program is a server with one background program that takes input.
type program struct {
	inputs  chan wire.InputRequest
	started chan wire.ExecRequest
	running bool
	refuse  bool
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/processes"):
		var req wire.ExecRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		p.started <- req
		w.Header().Set("Content-Type", "application/json")
		say(w, fmt.Sprintf(`{"pid":5,"running":%t}`, p.running))
	case strings.HasSuffix(r.URL.Path, "/processes/5/input"):
		var req wire.InputRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		p.inputs <- req
		if p.refuse {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		say(w, "event: stdout\ndata: {\"data\":\"one\"}\n\nevent: stdout\ndata: {\"offset\":3,\"data\":\"two\"}\n\nevent: end\ndata: {}\n\n")
	}
}

func newProgram() *program {
	return &program{inputs: make(chan wire.InputRequest, 10), started: make(chan wire.ExecRequest, 10), running: true}
}

// TestStartWithInput: input that is not in memory follows the program.
func TestStartWithInput(t *testing.T) {
	for _, keep := range []bool{false, true} {
		p := newProgram()
		c := dialed(t, p.ServeHTTP)
		in, typing := io.Pipe()
		info, err := c.Processes("x").Start(t.Context(), cove.ExecRequest{Line: "cat", Stdin: in, KeepStdin: keep})
		if err != nil || info.PID != 5 {
			t.Fatal(info, err)
		}
		if req := <-p.started; !req.KeepStdin || req.Stdin != nil {
			t.Errorf("it was started with %+v", req)
		}
		_, _ = io.WriteString(typing, "typed")
		if got := <-p.inputs; string(got.Bytes()) != "typed" || got.EOF {
			t.Errorf("the first input is %+v", got)
		}
		_ = typing.Close()
		if !keep {
			if got := <-p.inputs; len(got.Bytes()) != 0 || !got.EOF {
				t.Errorf("the last input is %+v", got)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStartWithInputNobodyTakes: the pouring ends with the program, and with
// the client.
func TestStartWithInputNobodyTakes(t *testing.T) {
	p := newProgram()
	p.refuse = true
	c := dialed(t, p.ServeHTTP)
	if _, err := c.Processes("x").Start(t.Context(), cove.ExecRequest{Line: "cat", Stdin: io.LimitReader(spaces{}, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	<-p.inputs
	_ = c.Close()
	if len(p.inputs) != 0 {
		t.Errorf("%d more inputs came", len(p.inputs))
	}

	p = newProgram()
	c = dialed(t, p.ServeHTTP)
	never, typing := io.Pipe()
	defer typing.Close()
	if _, err := c.Processes("x").Start(t.Context(), cove.ExecRequest{Line: "cat", Stdin: never}); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()

	p = newProgram()
	p.running = false
	c = dialed(t, p.ServeHTTP)
	if _, err := c.Processes("x").Start(t.Context(), cove.ExecRequest{Line: "blocked", Stdin: never}); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestStartWithOutput(t *testing.T) {
	p := newProgram()
	c := dialed(t, p.ServeHTTP)
	got := make(chan string, 2)
	_, err := c.Processes("x").Start(t.Context(), cove.ExecRequest{Line: "echo", OnOutput: func(c cove.Chunk) { got <- string(c.Data) }})
	if err != nil {
		t.Fatal(err)
	}
	if one, two := <-got, <-got; one != "one" || two != "two" {
		t.Errorf("%q %q", one, two)
	}
}

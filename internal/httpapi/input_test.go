package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// cat answers with what it reads, a piece at a time.
func cat(_ context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	var n int64
	buf := make([]byte, 1000)
	for {
		got, err := req.Stdin.Read(buf)
		if got > 0 {
			req.OnOutput(cove.Chunk{Stream: cove.Stdout, Offset: n, Data: bytes.Clone(buf[:got])})
			n += int64(got)
		}
		if errors.Is(err, io.EOF) {
			return &cove.Execution{Result: cove.Result{Outcome: cove.Exited}, Stdout: cove.Output{Bytes: n}}, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// TestStreamedInput: input goes in while output comes out, one answering the
// other, so neither is held back until the other is over.
func TestStreamedInput(t *testing.T) {
	r := serve(t)
	r.fake.exec = cat
	in, typing := io.Pipe()
	lines := make(chan string)
	go func() {
		for _, line := range []string{"one\n", "two\r\n", "three"} {
			_, _ = io.WriteString(typing, line)
			if got := <-lines; got != line {
				t.Errorf("%q came back as %q", line, got)
			}
		}
		_ = typing.Close()
	}()
	x, err := r.client.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "cat", Stdin: in, OnOutput: func(c cove.Chunk) { lines <- string(c.Data) }})
	if err != nil || x.Stdout.Bytes != 14 {
		t.Errorf("%+v %v", x, err)
	}
}

func TestLargeInput(t *testing.T) {
	r := serve(t)
	r.fake.exec = cat
	want := strings.Repeat("0123456789abcdef\r\n--", 200_000)
	var got bytes.Buffer
	_, err := r.client.Processes(id).Exec(t.Context(), cove.ExecRequest{
		Line: "cat", Stdin: strings.NewReader(want), OnOutput: func(c cove.Chunk) { got.Write(c.Data) },
	})
	if err != nil || got.String() != want {
		t.Errorf("of %d bytes came %d back, %v", len(want), got.Len(), err)
	}
}

// TestInputThatIsNotRead: a program that ends early answers although its
// caller goes on sending, or has nothing to send yet.
func TestInputThatIsNotRead(t *testing.T) {
	r := serve(t)
	r.fake.exec = func(_ context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		_, err := io.ReadFull(req.Stdin, make([]byte, 10))
		return &cove.Execution{Result: cove.Result{Outcome: cove.Exited, ExitCode: 3}}, err
	}
	blocked, writer := io.Pipe()
	defer writer.Close()
	for name, stdin := range map[string]io.Reader{
		"endless": endless{},
		"idle":    io.MultiReader(strings.NewReader("0123456789"), blocked),
	} {
		t.Run(name, func(t *testing.T) {
			x, err := r.client.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "head", Stdin: stdin})
			if err != nil || x.ExitCode != 3 {
				t.Errorf("%+v %v", x, err)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestInputThatBreaksOff: a program whose input breaks off ends, and does not
// take the half for the whole.
func TestInputThatBreaksOff(t *testing.T) {
	r := serve(t)
	done := make(chan error, 1)
	r.fake.exec = func(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
		_, err := io.ReadAll(req.Stdin)
		done <- err
		<-ctx.Done()
		return nil, ctx.Err()
	}
	stdin := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("the source broke")))
	if _, err := r.client.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "cat", Stdin: stdin}); err == nil {
		t.Error("it worked")
	}
	if err := <-done; err == nil {
		t.Error("the program saw a whole input")
	}
}

func TestRequestLinesThatDoNotFit(t *testing.T) {
	r := serve(t)
	for name, body := range map[string]string{
		"nothing":          "",
		"bad json":         "{\"command\":\nx",
		"no end":           `{"command":"x"`,
		"background":       "{\"command\":\"x\",\"background\":true}\nx",
		"twice":            "{\"command\":\"x\",\"stdin\":\"y\"}\nx",
		"negative timeout": "{\"command\":\"x\",\"timeout\":-1}\nx",
	} {
		a := r.send("POST", "/api/sandboxes/x/execute", body, "Content-Type", wire.ExecStream)
		if name != "nothing" && a.status != 400 {
			t.Errorf("%s: %d %q", name, a.status, a.body)
		}
	}
	a := r.send("POST", "/api/sandboxes/x/execute", `{"command":"x","workdir":"`+strings.Repeat("x", 9<<20), "Content-Type", wire.ExecStream)
	if a.status != 413 {
		t.Errorf("a line without an end: %d %q", a.status, a.body)
	}
	a = r.send("POST", "/api/sandboxes/x/execute", `{"command":"x"}`, "Content-Type", wire.ExecStream)
	if a.status != 200 || !strings.Contains(a.body, "event: exit") {
		t.Errorf("a request without input: %d %q", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	a = r.send("POST", "/api/sandboxes/x/execute", "{\"command\":\"x\"}\ny", "Content-Type", wire.ExecStream)
	if a.status != 403 {
		t.Errorf("a request that is refused: %d %q", a.status, a.body)
	}
}

package msbtest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
)

// A call of msb is a process of its own, and the machines are in that of the test.
// The door is a socket between the two: the caller sends its arguments as a line of
// JSON and then its input; back come packets of a kind, a length and bytes.
const (
	packetOut  = 1
	packetErr  = 2
	packetExit = 3
	packetHead = 5
)

// Serve answers calls until the listener is closed, and waits for them.
func (p *Program) Serve(l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { p.answer(ctx, conn) })
	}
}

func (p *Program) answer(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := json.NewDecoder(conn)
	var args []string
	if in.Decode(&args) != nil {
		return
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, io.MultiReader(in.Buffered(), conn))
		_ = w.CloseWithError(err)
		if err != nil {
			cancel() // whoever called was killed
		}
	}()
	out := &packets{w: conn}
	code := p.Run(ctx, args, skipNewline(r), kindWriter{out, packetOut}, kindWriter{out, packetErr})
	_ = r.Close()
	_ = out.write(packetExit, []byte{byte(code)}) //nolint:gosec // exit codes are small
}

// skipNewline drops the one that ends the line of JSON.
func skipNewline(r io.Reader) io.Reader {
	return &skipper{r: r}
}

type skipper struct {
	r    io.Reader
	done bool
}

func (s *skipper) Read(b []byte) (int, error) {
	if !s.done {
		var one [1]byte
		if _, err := io.ReadFull(s.r, one[:]); err != nil {
			return 0, err
		}
		s.done = true
	}
	return s.r.Read(b)
}

type packets struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *packets) write(kind byte, b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b))) //nolint:gosec // pieces are small
	_, err := p.w.Write(append(head, b...))
	return err
}

type kindWriter struct {
	p    *packets
	kind byte
}

func (k kindWriter) Write(b []byte) (int, error) {
	if err := k.p.write(k.kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Call is the other side: one call of msb, through the door at path. It returns the
// exit code.
func Call(path string, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	conn, err := net.Dial("unix", path) //nolint:noctx // the process is its context
	if err != nil {
		return 1, err
	}
	defer func() { _ = conn.Close() }()
	if err := json.NewEncoder(conn).Encode(args); err != nil {
		return 1, err
	}
	go func() {
		_, _ = io.Copy(conn, stdin)
		if c, ok := conn.(*net.UnixConn); ok {
			_ = c.CloseWrite()
		}
	}()
	for {
		var head [packetHead]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return 1, err
		}
		n := int64(binary.BigEndian.Uint32(head[1:]))
		to := stdout
		switch head[0] {
		case packetErr:
			to = stderr
		case packetExit:
			var code [1]byte
			_, err := io.ReadFull(conn, code[:])
			return int(code[0]), err
		case packetOut:
		default:
			return 1, errors.New("an unknown packet")
		}
		if _, err := io.CopyN(to, conn, n); err != nil {
			return 1, err
		}
	}
}

//go:build linux

package e2b

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// Procedures of the daemon in a machine.
const (
	procStart   = "process.Process/Start"
	procConnect = "process.Process/Connect"
	procList    = "process.Process/List"
	procInput   = "process.Process/SendInput"
	procClose   = "process.Process/CloseStdin"
	procSignal  = "process.Process/SendSignal"
)

// selector names a process of a machine.
type selector struct {
	PID int `json:"pid"`
}

// processConfig is a program as the daemon starts one.
type processConfig struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs,omitempty"`
	Cwd  string            `json:"cwd,omitempty"`
}

// event is one of what a stream of the daemon tells. At most one field is set.
type event struct {
	Start *selector `json:"start"`
	Data  *struct {
		Stdout []byte `json:"stdout"`
		Stderr []byte `json:"stderr"`
	} `json:"data"`
	End *struct {
		ExitCode int    `json:"exitCode"`
		Error    string `json:"error"`
	} `json:"end"`
}

const (
	maxEvent = 4 << 20
	ping     = 20 * time.Second // how often a stream has something to say
)

// stream is the output of a program in a machine. One goroutine reads it.
type stream struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	silent *time.Timer // ends it when nothing comes for too long
	head   [5]byte
}

var errSilent = errors.New("the stream from the machine fell silent")

// open starts a stream. ctx bounds only how long that takes.
func (m *machine) open(ctx context.Context, procedure, user string, in any) (*stream, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the request to the machine cannot be written")
	}
	h := m.header(user)
	h["Content-Type"], h["Connect-Protocol-Version"] = "application/connect+json", "1"
	h["Keepalive-Ping-Interval"] = strconv.Itoa(int(ping / time.Second))
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	res, err := m.caller.send(life, request{
		method: http.MethodPost, url: m.base + "/" + procedure, header: h, body: bytes.NewReader(framed(body)), whom: whomMachine,
	})
	if !stop() && err == nil {
		err = context.Cause(ctx)
		_ = res.Body.Close()
	}
	if err == nil {
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/connect+json" {
			err = errors.Join(stranger(whomMachine, nil), res.Body.Close())
		}
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	s := &stream{body: res.Body, cancel: cancel}
	s.silent = time.AfterFunc(3*ping, func() { cancel(errSilent) })
	return s, nil
}

// framed is a message as the wire has it: a flag, a length and the bytes.
func framed(message []byte) []byte {
	b := make([]byte, 5, 5+len(message))
	binary.BigEndian.PutUint32(b[1:], uint32(len(message))) //nolint:gosec // what we send is small
	return append(b, message...)
}

// endFlag marks the last frame of a stream.
const endFlag = 2

// next returns what is told next; io.EOF after the end.
func (s *stream) next() (event, error) {
	if _, err := io.ReadFull(s.body, s.head[:]); err != nil {
		return event{}, cut(err)
	}
	n := binary.BigEndian.Uint32(s.head[1:])
	if n > maxEvent {
		return event{}, fmt.Errorf("a frame of %d bytes: %w", n, io.ErrShortBuffer)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.body, body); err != nil {
		return event{}, cut(err)
	}
	s.silent.Reset(3 * ping)
	if s.head[0]&endFlag != 0 {
		var end struct {
			Error *struct{ Code, Message string } `json:"error"`
		}
		if err := json.Unmarshal(body, &end); err != nil {
			return event{}, err
		}
		if end.Error != nil {
			return event{}, fmt.Errorf("the daemon says %.40q: %.200q", end.Error.Code, end.Error.Message)
		}
		return event{}, io.EOF
	}
	var message struct {
		Event event `json:"event"`
	}
	err := json.Unmarshal(body, &message)
	return message.Event, err
}

// cut is the error of a stream that ended without saying so.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// close ends the stream, and not the program.
func (s *stream) close() {
	s.silent.Stop()
	s.cancel(nil)
	_ = s.body.Close()
}

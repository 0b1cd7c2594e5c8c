//go:build linux

package microsandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/mailbox"
)

// ask runs the mailbox's executable with some words, and returns what it printed;
// wait is how long the question itself may take.
type ask func(ctx context.Context, wait time.Duration, words ...string) (string, error)

// Bounds on questions that are asked again.
const (
	takeWait  = 20 * time.Second // how long a question for more waits inside
	askTime   = 15 * time.Second // what the rest of a question may take
	mailTries = 8
	mailTime  = 60 * time.Second // after which no more is asked
	byeTime   = 3 * time.Second
)

// mail is a stream of bytes to an agent, through questions and answers. Each can
// be asked again, and is where no answer came or half of one.
type mail struct {
	ask  ask
	link string
	ctx  func() context.Context
	end  context.CancelCauseFunc

	reading sync.Mutex
	at      int64 // guarded by reading
	buf     []byte
	over    bool

	writing sync.Mutex
	changed *sync.Cond    // of what writing guards
	unsent  []byte        // guarded by writing
	failed  error         // why nothing more is sent; guarded by writing
	sent    chan struct{} // closed when nothing more is

	given int64 // of the one goroutine that sends
}

// openMail makes a link.
func openMail(ctx context.Context, ask ask) (io.ReadWriteCloser, error) {
	var lot [16]byte
	_, _ = rand.Read(lot[:]) // never fails since Go 1.24
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	m := &mail{ask: ask, link: hex.EncodeToString(lot[:]), ctx: func() context.Context { return life }, end: end, sent: make(chan struct{})}
	m.changed = sync.NewCond(&m.writing)
	a, err := m.question(ctx, 0, "open", m.link, strconv.Itoa(user))
	if err == nil && a.Status != mailbox.Live {
		err = cove.Wrap(cove.Unavailable, errors.New(strings.ToValidUTF8(string(a.Data), "?")), "the agent cannot be started in the machine").Reason(cove.ReasonSandboxCreation)
	}
	if err != nil {
		end(err)
		return nil, err
	}
	go m.send()
	return m, nil
}

// question asks until there is an answer, a few times.
func (m *mail) question(ctx context.Context, wait time.Duration, words ...string) (mailbox.Answer, error) {
	var last error
	begun := time.Now()
	for try := range mailTries {
		if try > 0 && time.Since(begun) > mailTime {
			break
		}
		if try > 0 {
			if err := pause(ctx, mailPause<<try); err != nil {
				return mailbox.Answer{}, err
			}
		}
		text, err := m.ask(ctx, wait, words...)
		if err == nil {
			var a mailbox.Answer
			// The server may have lost the line, or put others beside it.
			for line := range strings.SplitSeq(text, "\n") {
				if a, err = mailbox.ParseAnswer(line); err == nil {
					return a, nil
				}
			}
		}
		if ctx.Err() != nil {
			return mailbox.Answer{}, ctx.Err()
		}
		if final(err) {
			return mailbox.Answer{}, err
		}
		last = err
	}
	return mailbox.Answer{}, last
}

// Read implements [io.Reader].
func (m *mail) Read(b []byte) (int, error) {
	m.reading.Lock()
	defer m.reading.Unlock()
	for len(m.buf) == 0 {
		if m.over {
			return 0, io.EOF
		}
		a, err := m.question(m.ctx(), takeWait, "take", m.link, strconv.FormatInt(m.at, 10), strconv.FormatInt(takeWait.Milliseconds(), 10))
		switch {
		case err != nil:
			return 0, err
		case a.Status == mailbox.Gone || a.At != m.at:
			return 0, io.ErrUnexpectedEOF
		}
		if len(a.Data) == 0 && a.Status == mailbox.Live { // whoever answers at once must not make us ask without end
			if err := pause(m.ctx(), mailPause); err != nil {
				return 0, err
			}
		}
		m.buf, m.at, m.over = a.Data, m.at+int64(len(a.Data)), a.Status == mailbox.Over
	}
	n := copy(b, m.buf)
	m.buf = m.buf[n:]
	return n, nil
}

// maxUnsent is how much waits to be sent before Write does.
const maxUnsent = mailbox.MaxGive

// Write implements [io.Writer]. It returns before the bytes are sent, so that many
// short ones go with one question. What cannot be sent ends the link.
func (m *mail) Write(b []byte) (int, error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	for len(m.unsent) >= maxUnsent && m.failed == nil {
		m.changed.Wait()
	}
	if m.failed != nil {
		return 0, m.failed
	}
	m.unsent = append(m.unsent, b...)
	m.changed.Broadcast()
	return len(b), nil
}

// send sends what was written until the link ends.
func (m *mail) send() {
	defer close(m.sent)
	defer context.AfterFunc(m.ctx(), func() { m.fail(io.ErrClosedPipe) })()
	for {
		m.writing.Lock()
		for len(m.unsent) == 0 && m.failed == nil {
			m.changed.Wait()
		}
		piece, failed := m.unsent[:min(len(m.unsent), mailbox.MaxGive)], m.failed
		m.writing.Unlock()
		if failed != nil {
			return
		}
		taken, err := m.give(piece)
		if err != nil {
			m.fail(err)
			m.end(err) // whoever reads learns of it
			return
		}
		m.writing.Lock()
		m.unsent = append([]byte(nil), m.unsent[taken:]...)
		m.changed.Broadcast()
		m.writing.Unlock()
	}
}

// fail says why nothing more is sent, once.
func (m *mail) fail(why error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.failed == nil {
		m.failed = why
	}
	m.changed.Broadcast()
}

// give hands in some bytes, and returns how many were taken.
func (m *mail) give(piece []byte) (int, error) {
	a, err := m.question(m.ctx(), 0, append([]string{"give", m.link, strconv.FormatInt(m.given, 10)}, mailbox.Pieces(piece)...)...)
	if err != nil {
		return 0, err
	}
	taken := a.Given - m.given
	if a.Status != mailbox.Live || taken < 0 || taken > int64(len(piece)) {
		return 0, io.ErrClosedPipe
	}
	m.given = a.Given
	if taken == 0 {
		return 0, pause(m.ctx(), mailPause)
	}
	return int(taken), nil
}

// flush waits until all that was written is sent, or cannot be, or it takes too long.
func (m *mail) flush() {
	late := time.AfterFunc(byeTime, func() { m.fail(io.ErrClosedPipe) })
	defer late.Stop()
	m.writing.Lock()
	defer m.writing.Unlock()
	for len(m.unsent) > 0 && m.failed == nil {
		m.changed.Wait()
	}
}

// Close sends the rest and ends the link, and tells the box if it can be told.
func (m *mail) Close() error {
	if m.ctx().Err() != nil {
		<-m.sent
		return nil
	}
	m.flush()
	m.end(io.ErrClosedPipe)
	<-m.sent
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx()), byeTime)
	defer cancel()
	_, _ = m.ask(ctx, 0, "close", m.link)
	return nil
}

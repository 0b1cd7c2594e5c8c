package e2bapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// lineKeepalive is how often a run of code that is silent says that it lives. Clients
// do not ask for it; it finds out that one is gone.
const lineKeepalive = 5 * time.Second

// The kinds of lines beside those of output, which are called as their streams.
const (
	lineResult    = "result"
	lineError     = "error"
	lineCount     = "number_of_executions"
	lineKeepAlive = "keepalive"
	lineEnd       = "end_of_execution"
)

// outputLine is a piece of output.
type outputLine struct {
	Type      cove.Stream `json:"type"`
	Text      string      `json:"text"`
	Timestamp time.Time   `json:"timestamp"`
}

// errorLine is what code raised, or why it did not run.
type errorLine struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// countLine is how many pieces of code an interpreter has run.
type countLine struct {
	Type  string `json:"type"`
	Count int    `json:"execution_count"`
}

// bareLine is a line that says no more than its kind.
type bareLine struct {
	Type string `json:"type"`
}

// lineWriter is an answer in lines of JSON. It is safe for concurrent use.
type lineWriter struct {
	c      *call
	cancel context.CancelCauseFunc // ends what feeds it
	quit   chan struct{}
	beats  sync.WaitGroup

	mu     sync.Mutex
	broken error                  // guarded by mu, as are all below: why nothing more goes out
	cut    map[cove.Stream][]byte // a character whose end has not come yet
}

// newLineWriter begins the answer at once: clients begin to count the time of the code
// when they see its status.
func newLineWriter(c *call, cancel context.CancelCauseFunc) *lineWriter {
	w := &lineWriter{c: c, cancel: cancel, quit: make(chan struct{}), cut: map[cove.Stream][]byte{}}
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(nil)
	w.beats.Go(w.beat)
	return w
}

// beat says at intervals that the run lives.
func (w *lineWriter) beat() {
	tick := time.NewTicker(min(lineKeepalive, w.c.h.cfg.Keepalive))
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
			w.send(bareLine{lineKeepAlive})
		}
	}
}

// close makes sure that nothing is written once the call is over.
func (w *lineWriter) close() {
	close(w.quit)
	w.beats.Wait()
}

// send sends one line.
func (w *lineWriter) send(line any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(line)
}

func (w *lineWriter) put(line any) {
	text, err := lineText(line)
	if err != nil {
		text, _ = lineText(errorLine{Type: lineError, Name: "Internal", Value: "what the code gave cannot be written"})
	}
	w.write(text)
}

// write sends bytes, and ends the run where the client takes none.
func (w *lineWriter) write(text []byte) {
	if w.broken != nil {
		return
	}
	control := w.c.control()
	_ = control.SetWriteDeadline(time.Now().Add(w.c.h.cfg.Stall))
	_, err := w.c.w.Write(text)
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		w.broken = cove.Wrap(cove.Canceled, err, "the client does not read what it asked for")
		w.cancel(w.broken)
	}
}

// maxLineText bounds the output in one line.
const maxLineText = 32 << 10

// chunk sends output as text. A character whose end is in the next chunk waits for it.
func (w *lineWriter) chunk(c cove.Chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data := append(w.cut[c.Stream], c.Data...)
	for len(data) > 0 {
		part := data[:min(len(data), maxLineText)]
		part = part[:len(part)-unfinished(part)]
		if len(part) == 0 {
			break
		}
		data = data[len(part):]
		w.put(outputLine{c.Stream, valid(part), time.Now().UTC()})
	}
	w.cut[c.Stream] = bytes.Clone(data)
}

// rest sends what waited for the end of a character that never came.
func (w *lineWriter) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range []cove.Stream{cove.Stdout, cove.Stderr} {
		if data := w.cut[s]; len(data) > 0 {
			w.put(outputLine{s, valid(data), time.Now().UTC()})
		}
	}
	clear(w.cut)
}

// unfinished is how many bytes at the end of data begin a character that goes on.
func unfinished(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func valid(data []byte) string { return string(bytes.ToValidUTF8(data, []byte("\uFFFD"))) }

// lineText is a value as one line of JSON in ASCII: clients take characters apart
// where the network does.
func lineText(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // it ends with a newline
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return inASCII(text.Bytes()), nil
}

// inASCII escapes what is not ASCII in JSON.
func inASCII(text []byte) []byte {
	const hex = "0123456789abcdef"
	if bytes.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)*2)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r < utf8.RuneSelf {
			out = append(out, text[0])
			text = text[1:]
			continue
		}
		text = text[n:]
		for _, unit := range utf16.Encode([]rune{r}) {
			out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
		}
	}
	return out
}

package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// History is what is in a file.
type History struct {
	Run    Run
	Events []*Event // by their number
}

// maxLine and maxEvents bound what is read.
const (
	maxLine   = 1 << 20
	maxEvents = 10_000_000
)

// Load reads a history to its end. A last line that is cut short, as after a kill,
// is left out.
func Load(r io.Reader) (*History, error) {
	h, s := &History{}, bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; s.Scan(); n++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		l := line{Run: &Run{}, Event: &Event{}}
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			if !s.Scan() {
				break
			}
			return nil, fmt.Errorf("read history: line %d: %w", n, err)
		}
		if err := h.add(l); err != nil {
			return nil, fmt.Errorf("read history: line %d: %w", n, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return h, nil
}

func (h *History) add(l line) error {
	switch l.Kind {
	case KindRun:
		h.Run = *l.Run
		return nil
	case KindCall:
		if l.Number != len(h.Events)+1 || l.Number > maxEvents {
			return fmt.Errorf("number %d comes after %d", l.Number, len(h.Events))
		}
		e := l.Event
		e.End, e.Status = Never, 0
		h.Events = append(h.Events, e)
		return nil
	case KindReturn:
		if l.Number < 1 || l.Number > len(h.Events) {
			return fmt.Errorf("number %d returns and was never called", l.Number)
		}
		began := h.Events[l.Number-1]
		if began.Op != l.Op || began.Start != l.Start || l.End < l.Start {
			return fmt.Errorf("number %d does not return what was called", l.Number)
		}
		*began = *l.Event
		return nil
	}
	return fmt.Errorf("%q is no kind of line", l.Kind)
}

package talk

import "sync"

// Head keeps the beginning of what a program writes. It is safe for concurrent use.
type Head struct {
	most int

	mu   sync.Mutex
	text []byte // guarded by mu
}

// NewHead returns one that keeps so many bytes.
func NewHead(most int) *Head { return &Head{most: most} }

// Write implements [io.Writer]. It takes all, whatever it keeps.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), h.most-len(h.text))]...)
	return len(p), nil
}

// String is what it kept, as it was written.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}

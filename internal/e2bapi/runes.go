package e2bapi

import "unicode/utf8"

// halves keeps the first bytes of a rune that were written without the rest, until
// that comes: older clients decode every message of a stream by itself.
type halves struct {
	held []byte
}

// whole returns what can be sent of what was held and data, which ends with a whole
// rune, or with what is none.
func (h *halves) whole(data []byte) []byte {
	if len(h.held) > 0 {
		data = append(h.held, data...)
		h.held = nil
	}
	cut := len(data)
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if at := len(data) - back; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				cut = at
			}
			break
		}
	}
	h.held = append(h.held, data[cut:]...)
	return data[:cut]
}

// rest returns what is left when nothing more comes.
func (h *halves) rest() []byte {
	data := h.held
	h.held = nil
	return data
}

package e2bapi

import "testing"

func TestHalves(t *testing.T) {
	const text = "aé€😀\xff\xe2\x82b\xf0\x9f"
	for size := 1; size <= len(text); size++ {
		var h halves
		var got string
		for data := []byte(text); len(data) > 0; {
			n := min(size, len(data))
			piece := h.whole(data[:n])
			if len(h.held) > 3 {
				t.Fatalf("in pieces of %d: %q is held", size, h.held)
			}
			got, data = got+string(piece), data[n:]
		}
		if got += string(h.rest()); got != text {
			t.Errorf("in pieces of %d: %q, not %q", size, got, text)
		}
	}
	for in, want := range map[string]string{"a": "a", "\xe2\x82": "", "a\xe2\x82": "a", "\xe2\x82\xac": "€", "\x82": "\x82", "\xff": "\xff", "": ""} {
		var h halves
		if got := string(h.whole([]byte(in))); got != want {
			t.Errorf("%q is sent as %q, not %q", in, got, want)
		}
	}
}

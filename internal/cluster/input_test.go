package cluster

import (
	"io"
	"strings"
	"testing"
)

// Who was asked first gets nothing any more when another is asked, and nobody else is
// asked when he got something.
func TestInputIsReadOnce(t *testing.T) {
	in, each := rewound(io.MultiReader(strings.NewReader("text"))) // not one that can seek
	first := each()
	if !in.rewind() {
		t.Fatal("nothing was read, and it cannot be read again")
	}
	second := each()
	if data, err := io.ReadAll(first); err == nil || len(data) > 0 {
		t.Errorf("the first reads %q, %v", data, err)
	}
	if data, err := io.ReadAll(second); err != nil || string(data) != "text" {
		t.Errorf("the second reads %q, %v", data, err)
	}
	if in.rewind() {
		t.Error("it was read, and is read again")
	}
	again, whole := rewound(strings.NewReader("text"))
	for range 2 {
		if data, err := io.ReadAll(whole()); err != nil || string(data) != "text" || !again.rewind() {
			t.Errorf("what is in memory: %q, %v", data, err)
		}
	}
}

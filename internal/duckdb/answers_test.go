package duckdb_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// FuzzAnswers: whatever is said, in whatever pieces, there is at most one answer,
// which is a whole frame, and nothing around it goes unnoticed.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`00000002{}`), 3)
	f.Add([]byte(`00000002{}0`), 9)
	f.Add([]byte(`99999999{}`), 1)
	f.Add([]byte(`0000000`), 0)
	f.Add([]byte("hello"), 2)
	f.Fuzz(func(t *testing.T, said []byte, at int) {
		at = max(0, min(at, len(said)))
		answer, fine := duckdb.Hear(said[:at], said[at:])
		if whole, wasFine := duckdb.Hear(said); !bytes.Equal(whole, answer) || wasFine != fine {
			t.Fatalf("in one piece it is %q, %v; in two %q, %v", whole, wasFine, answer, fine)
		}
		if answer == nil {
			return
		}
		frame := fmt.Appendf(nil, "%08d%s", len(answer), answer)
		if len(answer) > ask.MaxFrame || !bytes.HasPrefix(said, frame) || fine != (len(frame) == len(said)) {
			t.Errorf("of %q it heard %q, fine: %v", said, answer, fine)
		}
	})
}

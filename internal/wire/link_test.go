package wire_test

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestLinkRequests(t *testing.T) {
	for method, put := range map[string]bool{"": false, "GET": false, "PUT": true} {
		back := func(w wire.FileLinkRequest) (cove.FileLink, error) {
			r, got, err := w.Cove("ID-2")
			if got != put {
				t.Errorf("%q is for writing: %t", method, got)
			}
			return r, err
		}
		trip(t, func(r cove.FileLink) wire.FileLinkRequest { return wire.FileLinkRequestOf(method, r) }, back, nil)
	}
	if r, _, err := wire.FileLinkRequestOf("GET", cove.FileLink{Path: "a\xff"}).Cove("s"); err != nil || r.Path != "a\xff" || r.TTL != 0 {
		t.Errorf("%+v %v", r, err)
	}
	for _, method := range []string{"get", "POST", "DELETE"} {
		if _, _, err := (wire.FileLinkRequest{Path: "a", Method: method}).Cove("s"); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", method, err)
		}
	}
	if d, err := wire.LinkRequestOf(90 * time.Second).TTL(); err != nil || d != 90*time.Second {
		t.Errorf("%s %v", d, err)
	}
	if _, err := (wire.LinkRequest{TTLSeconds: new(-1.0)}).TTL(); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a negative time: %v", err)
	}
}

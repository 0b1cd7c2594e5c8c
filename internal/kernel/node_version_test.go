package kernel

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestStrips(t *testing.T) {
	for version, want := range map[string]bool{
		"20.20.2": false, "22.12.0": false, "22.13.0": true, "22.20.1": true, "23.1.0": false, "23.2.0": true, "24.0.0": true, "26.1.0-nightly": true,
		"": false, "x.y": false, "22": false,
	} {
		if err := strips(version); (err == nil) != want || err != nil && cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("%q: %v", version, err)
		}
	}
}

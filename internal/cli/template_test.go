package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestBuildProgress(t *testing.T) {
	var b strings.Builder
	cli.BuildProgress(&b, []daemon.TemplateProgress{
		{Step: "fetch", What: "a\x1b[31m", Done: 1, Total: 3, Bytes: 1536, Of: 3 << 20},
		{Step: "fetch", Done: 2, Total: 3}, // too soon to be seen
		{Step: "unpack", Bytes: 5 << 30},
		{Step: "check", Bytes: 12},
	})
	want := []string{"", `fetch  1/3  1.5 KiB of 3.0 MiB  a\x1b[31m`, "unpack  5.0 GiB", "check  12 B", ""}
	if diff := cmp.Diff(want, strings.Split(b.String(), "\r\x1b[K")); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if cli.BuildProgress(&b, nil); b.String() != "" {
		t.Errorf("nothing to say, and it says %q", b.String())
	}
}

func TestVerified(t *testing.T) {
	for want, tpl := range map[string]wire.Template{
		"x: abc\n": {Name: "x", Digest: "abc", Ready: true},
		"x: the host's own files, nothing to compare\n": {Name: "x", Ready: true},
		"x: it is not built\n":                          {Name: "x", Why: "it is not built"},
	} {
		if got := cli.Verified(tpl); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

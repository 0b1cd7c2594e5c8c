package seccomp_test

import (
	"bytes"
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

var update = flag.Bool("update", false, "rewrite the compiled policy of this machine")

func TestCompiled(t *testing.T) {
	program, err := seccomp.Sandbox().Compile()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("sandbox_"+runtime.GOARCH+".bpf", program.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(seccomp.Compiled(), program.Bytes()) {
		t.Error("the compiled policy is old; run go test ./internal/linux/seccomp -run Compiled -update, here and on the other machine")
	}
}

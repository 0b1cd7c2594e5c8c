package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// childDir names the environment variable that makes the test binary a writer.
const childDir = "COVE_AUDIT_TEST_CHILD"

// child appends until it is killed and prints the number of every line that was
// promised to be on the disk.
func child(dir string) {
	j, err := audit.Open(audit.Config{Dir: dir, SegmentBytes: 32 * cove.KiB})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				e := sample(i)
				durable := (w+i)%3 == 0
				if err := j.Append(context.Background(), &e, durable); err != nil {
					return
				}
				if durable {
					out.Lock()
					_, err := os.Stdout.WriteString(strconv.FormatInt(e.Seq, 10) + "\n")
					out.Unlock()
					if err != nil {
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestKilledWriterLosesNothingItPromised(t *testing.T) {
	dir := newDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var promised []int64
	for round := range 3 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			seq, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				break // the last number was cut off
			}
			promised = append(promised, seq)
			if n == 100+50*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		mustClose(t, mustOpen(t, audit.Config{Dir: dir}))
		if r := mustVerify(t, dir); !r.OK() {
			t.Fatalf("round %d: %v", round, r.Problems)
		}
	}
	there := map[int64]bool{}
	for _, e := range collect(t, audit.Read(t.Context(), dir, cove.EventFilter{})) {
		there[e.Seq] = true
	}
	for _, seq := range promised {
		if !there[seq] {
			t.Errorf("line %d was promised and is gone", seq)
		}
	}
	if len(promised) < 300 {
		t.Errorf("the writers promised only %d lines", len(promised))
	}
}

package fence

import (
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// Tools are what jobs are done with: a descriptor of a /proc that shows this
// process, which stays the caller's.
type Tools struct {
	Proc int
	// Become is as in the plan.
	Become bool
}

// Done is what a job made.
type Done struct {
	Files []int // which the caller closes
	Bytes int64 // of the files that were copied, written down or measured
	Count int64 // of the files that were measured
}

// Do carries a job out in this process, which must have the rights of who built
// the sandbox. The files stay the caller's.
func (t Tools) Do(j Job, files []int) (Done, error) {
	if err := j.check(len(files)); err != nil {
		return Done{}, err
	}
	switch j.Kind {
	case JobShow:
		return Done{}, t.show(&j, files[0], files[1], files[2:])
	case JobStore:
		return t.store(&j)
	case JobCopy:
		return t.copy(&j, files[0], files[1])
	case JobErase:
		return Done{}, t.erase(&j, files[0])
	case JobChanges:
		return Done{}, t.writeChanges(j, files[0], files[1:])
	case JobPack:
		return t.pack(&j, files[0], files[1:])
	case JobUnpack:
		return t.unpack(&j, files[0], files[1])
	case JobWalls:
		return t.walls(j.Bare, files[0])
	case JobBefore:
		return Done{}, t.before(&j, files[0], files[1:])
	case JobMeasure:
		return t.measure(&j, files)
	}
	return Done{}, protocol.ErrMalformed
}

// check refuses what is no job: names that lead elsewhere, and descriptors that
// do not fit.
func (j *Job) check(files int) error {
	names := []string{j.Stack.Upper, j.Name, j.To}
	for _, l := range j.Stack.Lower {
		names = append(names, l.Name)
	}
	for _, n := range names {
		if n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
			return protocol.ErrMalformed
		}
	}
	lower := len(j.Stack.Lower)
	need := map[JobKind]int{
		JobShow: 2 + lower, JobStore: 0, JobCopy: 2, JobErase: 1, JobChanges: 2 + lower, JobPack: 1 + lower, JobUnpack: 2, JobWalls: 1, JobBefore: 1 + lower, JobMeasure: lower,
	}
	if n, ok := need[j.Kind]; !ok || n != files || lower > mount.MaxLayers {
		return protocol.ErrMalformed
	}
	return nil
}

// onThread runs f on a thread that ends with it.
func onThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return // still locked
	}
	// The first thread of a process cannot end before the process.
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

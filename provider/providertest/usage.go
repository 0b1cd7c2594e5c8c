package providertest

import (
	"bytes"
	"time"

	"github.com/cove-sandbox/cove"
)

func usageTests() []test {
	return []test{
		{"grows", usageGrows},
		{"counts_processes", usageProcesses},
	}
}

func (e *env) usage(s cove.Sandbox) cove.Usage {
	e.Helper()
	u, err := s.Usage(e.ctx())
	e.must(err, "usage")
	if u.PeakMemory < u.Memory {
		e.Errorf("the peak of memory is below the memory in use: %+v", u)
	}
	return u
}

func usageGrows(e *env) {
	s := e.sandbox()
	before := e.usage(s)
	e.prints(s, "", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done") // several clock ticks of 10 ms, the unit of /proc
	e.must(s.Files().Write(e.ctx(), "big", bytes.NewReader(make([]byte, 1<<20)), 0o644), "write")
	e.prints(s, "", "touch a b c")
	after := e.usage(s)
	if after.CPU <= before.CPU {
		e.Errorf("CPU time went from %s to %s", before.CPU, after.CPU)
	}
	if after.Disk < before.Disk+cove.MiB {
		e.Errorf("disk went from %d to %d after 1 MiB was written", before.Disk, after.Disk)
	}
	if after.Files < before.Files+4 {
		e.Errorf("the number of files went from %d to %d after 4 were made", before.Files, after.Files)
	}
}

// usageProcesses: programs count as long as they run. How many there are of a provider's
// own may change by itself at the start, so what is compared is with and after them.
func usageProcesses(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell("sleep 1000 & sleep 1000 & echo up; wait"))
	p.out.until("up")
	during := e.usage(s).PIDs
	e.must(p.Kill(e.ctx()), "kill")
	e.wait(p)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for after := e.usage(s).PIDs; after > during-3; after = e.usage(s).PIDs {
		select {
		case <-tick.C:
		case <-late.C:
			e.Fatalf("the number of processes went from %d to %d after 3 were ended", during, after)
		}
	}
}

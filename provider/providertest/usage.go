package providertest

import (
	"bytes"

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
	e.prints(s, "", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
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

func usageProcesses(e *env) {
	s := e.sandbox()
	before := e.usage(s)
	p := e.interact(s, shell("sleep 1000 & sleep 1000 & echo up; wait"))
	p.out.until("up")
	if during := e.usage(s); during.PIDs < before.PIDs+3 {
		e.Errorf("the number of processes went from %d to %d after 3 were started", before.PIDs, during.PIDs)
	}
	e.must(p.Kill(e.ctx()), "kill")
	e.wait(p)
}

package fake

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// What a machine has where nobody asked for less, and what things cost on it.
const (
	machineMemory = cove.GiB
	machinePIDs   = 1024
	processMemory = 16 * cove.KiB
	stepCPU       = time.Microsecond

	// A process rests after every turn of so many steps, so that a simulated
	// clock goes on; one that spins for long gets lazier.
	stepsPerTurn = 1024
	turnsToTire  = 32
	shortRest    = time.Millisecond
	longRest     = 64 * time.Millisecond
)

// machine is the simulated kernel of one sandbox.
type machine struct {
	tree  *tree
	tools map[string]program
	facts atomic.Pointer[facts]

	mu      sync.Mutex
	maxMem  cove.Bytes
	maxPIDs int
	procs   map[int]*proc
	lastPID int
	mem     cove.Bytes
	peak    cove.Bytes
	cpu     time.Duration
	gate    chan struct{} // not nil while paused; closed by resume
	ports   map[int]*listener
	kept    map[string]*job // by Command.Keep
	down    bool
}

func newMachine(id cove.ID, spec cove.Spec, iso cove.Isolation, t *tree, tools map[string]program) *machine {
	m := &machine{
		tree: t, tools: tools,
		maxMem: machineMemory, maxPIDs: machinePIDs,
		procs: map[int]*proc{}, lastPID: 1, ports: map[int]*listener{}, kept: map[string]*job{},
	}
	self := &facts{
		host: string(id), cpus: max(1, int(spec.Resources.CPUs+0.999)),
		env: map[string]string{
			"PATH": defaultPath, "HOME": homeDir, "USER": "sandbox", "LOGNAME": "sandbox",
			"SHELL": "/bin/bash", "LANG": "C.UTF-8", "HOSTNAME": string(id),
		},
	}
	maps.Copy(self.env, spec.Env)
	m.facts.Store(self)
	if spec.Resources.Memory > 0 && iso.Memory == cove.Hard {
		m.maxMem = spec.Resources.Memory
	}
	if spec.Resources.PIDs > 0 && iso.PIDs == cove.Hard {
		m.maxPIDs = spec.Resources.PIDs
	}
	return m
}

// fork makes a process with the descriptors given, which it then owns unless
// fork fails: EAGAIN means that there are too many. A dead parent has no
// children, so that killing a tree leaves no branch.
func (m *machine) fork(j *job, parent *proc, fds table) (*proc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.down || parent != nil && parent.ended:
		return nil, errDead
	case len(m.procs) >= m.maxPIDs:
		return nil, syscall.EAGAIN
	case m.mem+processMemory > m.maxMem:
		return nil, syscall.ENOMEM
	}
	m.lastPID++
	p := &proc{
		m: m, job: j, pid: m.lastPID, ppid: 1, fds: fds,
		dead: make(chan struct{}), buried: make(chan struct{}), poke: make(chan struct{}, 1),
	}
	if parent == nil {
		j.main = p
	} else {
		p.ppid, p.detached, p.ignored = parent.pid, parent.detached, maps.Clone(parent.ignored)
	}
	m.procs[p.pid] = p
	m.grow(p, processMemory)
	return p, nil
}

// grow books memory. Called with mu held.
func (m *machine) grow(p *proc, n cove.Bytes) {
	m.mem += n
	p.mem += n
	p.job.mem += n
	m.peak = max(m.peak, m.mem)
	p.job.peak = max(p.job.peak, p.job.mem)
}

// end takes a process off the table and returns what is left of it, to bury.
// Called with mu held.
func (m *machine) end(p *proc, st status) (left remains) {
	if p.ended {
		return left
	}
	p.ended, p.status = true, st
	left = remains{p, p.fds}
	p.fds = table{}
	delete(m.procs, p.pid)
	m.mem -= p.mem
	p.job.mem -= p.mem
	for _, c := range m.procs {
		if c.ppid == p.pid {
			c.ppid = 1
		}
	}
	close(p.dead)
	return left
}

// remains is what is left of a process that was ended; its zero value is nothing.
type remains struct {
	p   *proc
	fds table
}

// bury closes the descriptors. Called without mu.
func (r *remains) bury() {
	if r.p != nil {
		r.fds.release()
		close(r.p.buried)
	}
}

// kill ends the processes that match, at once: when it returns, none of them
// changes anything any more.
func (m *machine) kill(match func(*proc) bool, why cove.Outcome) {
	m.mu.Lock()
	var left []remains
	for _, p := range m.procs {
		if !match(p) {
			continue
		}
		if why != "" && p == p.job.main && p.job.cause == "" {
			p.job.cause = why
		}
		left = append(left, m.end(p, status{sig: "KILL"}))
	}
	m.mu.Unlock()
	for i := range left {
		left[i].bury()
	}
	// A write that was under way when its process died ends before this does.
	m.tree.mu.Lock()
	m.tree.mu.Unlock() //nolint:staticcheck // the empty section is the wait
}

func (m *machine) killJob(j *job, why cove.Outcome) {
	m.kill(func(p *proc) bool { return p.job == j }, why)
}

// shutdown ends all processes for good.
func (m *machine) shutdown() {
	m.mu.Lock()
	m.down = true
	for port, l := range m.ports {
		delete(m.ports, port)
		l.shut()
	}
	m.mu.Unlock()
	m.kill(func(*proc) bool { return true }, cove.Killed)
}

// pause holds every process at its next step.
func (m *machine) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gate == nil {
		m.gate = make(chan struct{})
	}
}

func (m *machine) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gate != nil {
		close(m.gate)
		m.gate = nil
	}
}

// running waits until the machine is not paused.
func (m *machine) running(ctx context.Context) error {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usage adds the books of the tree to those of the machine.
func (m *machine) usage() cove.Usage {
	m.mu.Lock()
	u := cove.Usage{CPU: m.cpu, Memory: m.mem, PeakMemory: m.peak, PIDs: len(m.procs)}
	m.mu.Unlock()
	m.tree.mu.Lock()
	defer m.tree.mu.Unlock()
	u.Disk, u.Files = cove.Bytes(m.tree.work.bytes), m.tree.work.files
	return u
}

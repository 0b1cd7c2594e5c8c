package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// Bounds on the background programs of one session.
const (
	maxRunning   = 256
	maxEndedKept = 64
)

// process is a background program.
type process struct {
	info  cove.ProcessInfo // fixed when it is made, but for Running and Result
	x     *execution
	in    *input        // nil when the program takes no input
	ended chan struct{} // closed once result or err is set
	out   *cove.Execution
	err   error
}

// processes is the part of the platform that runs programs in one session.
type processes struct {
	v  view
	id cove.ID
}

func (p processes) runs(verb cove.Verb, req *cove.ExecRequest) action {
	a := on(verb, p.id)
	a.Exec = req
	a.data = p.v.e.contentOf(textOf(*req, "\x00"))
	return a
}

// Exec implements [cove.Processes].
func (p processes) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	return actOrBlock(ctx, p.v, p.runs(cove.ProcessExec, &req), func(ctx context.Context, st *step) (*cove.Execution, error) {
		if err := p.ready(ctx, req); err != nil {
			return nil, err
		}
		if err := inForeground(req); err != nil {
			return nil, err
		}
		if req.TTY != nil {
			return nil, cove.InvalidField("tty", "a program with a terminal runs in the background; start it instead")
		}
		if req.Limits.Wall == 0 {
			req.Limits.Wall = p.v.e.cfg.ExecTimeout
		}
		sandbox, err := st.lease.enter()
		if err != nil {
			return nil, err
		}
		defer st.lease.leave()
		x, err := p.v.e.begin(ctx, st.lease, sandbox, req, st.limits, nil)
		if err != nil {
			return nil, err
		}
		out, err := x.finish(ctx)
		if err == nil {
			st.ended(out.Result)
			out.Restarted = st.lease.tellRestart()
		}
		return out, err
	}, func(x *cove.Execution) *cove.Execution { return x })
}

// ready reports a request that cannot run, or a tenant that has used up its
// CPU time or its disk.
func (p processes) ready(ctx context.Context, req cove.ExecRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	err := p.v.e.mayBegin(ctx, p.v.p.Tenant)
	return err
}

// Start implements [cove.Processes].
func (p processes) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	return actOrBlock(ctx, p.v, p.runs(cove.ProcessStart, &req), func(ctx context.Context, st *step) (*cove.ProcessInfo, error) {
		if err := p.ready(ctx, req); err != nil {
			return nil, err
		}
		info, err := p.startOnce(ctx, st, req)
		st.ran = err == nil
		return info, err
	}, func(x *cove.Execution) *cove.ProcessInfo {
		return &cove.ProcessInfo{
			Command: shortText(req), Argv: shortWords(req.Argv), Dir: req.Dir, Tag: req.Tag, StartedAt: time.Now(), Result: x,
		}
	})
}

// background starts a program that outlives the call. numbered is told its number
// before anything is started.
func (e *Engine) background(
	ctx context.Context, l *lease, req cove.ExecRequest, limits cove.Limits, numbered func(cove.PID) error,
) (*cove.ProcessInfo, error) {
	sandbox, err := l.enter()
	if err != nil {
		return nil, err
	}
	pr := &process{ended: make(chan struct{})}
	if req.TTY != nil || req.KeepStdin {
		pr.in = newInput()
		req.Stdin = withInput(req.Stdin, pr.in)
	}
	pid, err := e.number(ctx, l)
	note := &keepNote{
		PID: pid, Command: shortText(req), Argv: shortWords(req.Argv), Dir: req.Dir, Tag: req.Tag,
		TTY: req.TTY != nil, Input: pr.in != nil, Started: time.Now(),
	}
	if err == nil {
		err = numbered(pid)
	}
	if err == nil {
		pr.x, err = e.begin(ctx, l, sandbox, req, limits, note)
	}
	if err != nil {
		l.leave()
		return nil, err
	}
	pr.info = note.info(pr.x.id)
	l.mu.Lock()
	l.procs[pid] = pr
	old := l.oldest()
	l.mu.Unlock()
	e.dropPrograms(ctx, l, sandbox, old)
	go pr.follow(l) //nolint:gosec // a background program outlives the request that started it
	info := pr.info
	return &info, nil
}

// follow waits for the end of a background program and keeps its result.
func (pr *process) follow(l *lease) {
	ctx := context.Background()
	pr.out, pr.err = pr.x.finish(ctx)
	gone := errors.Is(pr.err, errLetGo)
	if pr.x.keep != "" && !gone {
		pr.x.e.settleKept(l, pr.x)
	}
	if pr.out != nil {
		pr.out.PID = pr.info.PID
	}
	if pr.in != nil && !gone {
		pr.in.close()
	}
	if pr.x.keep != "" && !pr.x.counted && !gone {
		pr.x.e.booked(ctx, l, pr.info.PID)
	}
	if !gone && !pr.x.counted {
		pr.x.e.tellEnd(ctx, l, pr)
	}
	close(pr.ended)
	l.leave()
}

func (pr *process) isOver() bool {
	select {
	case <-pr.ended:
		return true
	default:
		return false
	}
}

// describe returns what a list shows of the program.
func (pr *process) describe() cove.ProcessInfo {
	info := pr.info
	if pr.isOver() {
		info.Running = false
		info.Result = pr.out
	}
	return info
}

// oldest takes ended programs beyond the bound out of the table, for their
// output to be removed. The caller holds mu.
func (l *lease) oldest() []*process {
	var ended []cove.PID
	for pid, pr := range l.procs {
		if pr.isOver() {
			ended = append(ended, pid)
		}
	}
	slices.Sort(ended)
	var old []*process
	for i := 0; len(ended)-i > maxEndedKept; i++ {
		old = append(old, l.procs[ended[i]])
		delete(l.procs, ended[i])
	}
	return old
}

// dropPrograms frees what is held of programs that left the table.
func (e *Engine) dropPrograms(ctx context.Context, l *lease, sandbox cove.Sandbox, old []*process) {
	if len(old) == 0 {
		return
	}
	l.change(func(s *cove.Session) {
		s.Counted = slices.DeleteFunc(slices.Clone(s.Counted), func(pid cove.PID) bool {
			return slices.ContainsFunc(old, func(pr *process) bool { return pr.info.PID == pid })
		})
	})
	r, ok := cove.As[cove.Resumer](sandbox)
	for _, pr := range old {
		removeLogs([]*spool.Log{pr.x.log})
		if ok && pr.x.keep != "" {
			e.forgetPrograms(ctx, l.id, r, pr.x.keep)
			e.freeDisk(keptItem(l.id, pr.x.keep))
		}
	}
}

// List implements [cove.Processes].
func (p processes) List(ctx context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return actSeq(ctx, p.v, on(cove.ProcessList, p.id), func(_ context.Context, st *step) (iter.Seq2[cove.ProcessInfo, error], error) {
		st.lease.mu.Lock()
		list := make([]cove.ProcessInfo, 0, len(st.lease.procs))
		for _, pr := range st.lease.procs {
			list = append(list, pr.describe())
		}
		st.lease.mu.Unlock()
		slices.SortFunc(list, func(a, b cove.ProcessInfo) int { return cmp.Compare(a.PID, b.PID) })
		return each(list), nil
	})
}

// Connect implements [cove.Processes].
func (p processes) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	return actSeq(ctx, p.v, on(cove.ProcessConnect, p.id), func(ctx context.Context, st *step) (iter.Seq2[cove.Chunk, error], error) {
		pr, err := st.lease.process(pid)
		if err != nil {
			return nil, err
		}
		return pr.chunks(ctx, offset), nil
	})
}

// Wait implements [cove.Processes].
func (p processes) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	return act(ctx, p.v, on(cove.ProcessWait, p.id), func(ctx context.Context, st *step) (*cove.Execution, error) {
		pr, err := st.lease.process(pid)
		if err != nil {
			return nil, err
		}
		select {
		case <-pr.ended:
			return pr.out, pr.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// process finds a background program.
func (l *lease) process(pid cove.PID) (*process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pr := l.procs[pid]; pr != nil {
		return pr, nil
	}
	if pid > 0 && pid <= l.lastPID {
		return nil, cove.Errorf(cove.NotFound, "process %d is no longer known: it ended long ago, or when the session or the server stopped", pid)
	}
	return nil, cove.Errorf(cove.NotFound, "there is no process %d in this session", pid)
}

// shortText is the command for a list.
func shortText(req cove.ExecRequest) string {
	text := textOf(req, " ")
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(text, "�")
}

// maxWords bounds the words of one command in a list.
const maxWords = 4 << 10

// shortWords is an argv for a list.
func shortWords(argv []string) []string {
	room := maxWords
	var words []string
	for _, word := range argv {
		if len(word) >= room { // also what is left of an empty word
			if room > 0 {
				words = append(words, strings.ToValidUTF8(word[:room], "�"))
			}
			break
		}
		room -= len(word) + 1
		words = append(words, strings.ToValidUTF8(word, "�"))
	}
	return words
}

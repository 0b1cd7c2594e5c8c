package e2btest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// process is a program in a machine. Who listens gets what it writes from then on,
// and slows it down; what nobody listens to is lost.
type process struct {
	pid    int
	tag    string
	config json.RawMessage
	stdin  *io.PipeWriter
	proc   cove.Process
	over   chan struct{} // closed when it has ended

	mu   sync.Mutex
	ears map[*ear]bool // guarded by mu
	end  map[string]any
}

// ear is somebody who listens.
type ear struct {
	events chan map[string]any
	gone   chan struct{}
}

func (p *process) listen() *ear {
	e := &ear{events: make(chan map[string]any), gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ears[e] = true
	return e
}

func (p *process) unlisten(e *ear) {
	p.mu.Lock()
	delete(p.ears, e)
	p.mu.Unlock()
	close(e.gone)
}

// tell hands what was written to all who listen.
func (p *process) tell(stream string, data []byte) {
	event := map[string]any{"data": map[string][]byte{stream: append([]byte(nil), data...)}}
	p.mu.Lock()
	ears := make([]*ear, 0, len(p.ears))
	for e := range p.ears {
		ears = append(ears, e)
	}
	p.mu.Unlock()
	for _, e := range ears {
		select {
		case e.events <- event:
		case <-e.gone:
		}
	}
}

// writer is one of its streams.
type writer struct {
	p      *process
	stream string
}

func (w writer) Write(b []byte) (int, error) {
	w.p.tell(w.stream, b)
	return len(b), nil
}

// shut closes its input; the sandbox ends the rest.
func (p *process) shut() { _ = p.stdin.Close() }

func (m *machine) start(w http.ResponseWriter, r *http.Request) {
	body, err := message(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_argument", err.Error())
		return
	}
	var in struct {
		Process json.RawMessage `json:"process"`
		Tag     string          `json:"tag"`
		Stdin   bool            `json:"stdin"`
	}
	var program struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args"`
		Envs map[string]string `json:"envs"`
		Cwd  string            `json:"cwd"`
	}
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(in.Process, &program) != nil {
		refuse(w, http.StatusBadRequest, "invalid_argument", "this is no program")
		return
	}
	read, write := io.Pipe()
	p := &process{tag: in.Tag, config: in.Process, stdin: write, over: make(chan struct{}), ears: map[*ear]bool{}}
	cmd := cove.Command{
		Argv: append([]string{program.Cmd}, program.Args...), Dir: program.Cwd, Env: program.Envs,
		Stdout: writer{p, "stdout"}, Stderr: writer{p, "stderr"},
	}
	if in.Stdin {
		cmd.Stdin = read
	}
	e := p.listen()
	// The program outlives the request.
	if p.proc, err = m.box.Start(context.WithoutCancel(r.Context()), cmd); err != nil {
		p.unlisten(e)
		refuse(w, http.StatusNotFound, "not_found", cove.MessageOf(err))
		return
	}
	if !m.add(p) {
		p.unlisten(e)
		refuse(w, http.StatusNotFound, "not_found", "the machine is gone")
		return
	}
	go m.wait(p, read) //nolint:gosec // the program outlives the request
	p.show(w, r, e)
}

func (m *machine) add(p *process) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.procs == nil {
		return false
	}
	m.last++
	p.pid = m.last
	m.procs[p.pid] = p
	return true
}

// wait takes down how a program ended.
func (m *machine) wait(p *process, stdin io.Closer) {
	res, err := p.proc.Wait(context.Background())
	end := map[string]any{"exitCode": res.ExitCode, "exited": res.Outcome == cove.Exited, "status": string(res.Outcome)}
	if err != nil {
		end["error"] = cove.MessageOf(err)
	}
	_ = stdin.Close()
	m.mu.Lock()
	delete(m.procs, p.pid)
	m.mu.Unlock()
	p.mu.Lock()
	p.end = end
	p.mu.Unlock()
	close(p.over)
}

// show streams what a program does until it has ended or nobody looks any more.
func (p *process) show(w http.ResponseWriter, r *http.Request, e *ear) {
	defer p.unlisten(e)
	w.Header().Set("Content-Type", "application/connect+json")
	if frame(w, 0, told(map[string]any{"start": map[string]int{"pid": p.pid}})) != nil {
		return
	}
	ping := time.NewTicker(pinging(r))
	defer ping.Stop()
	for {
		select {
		case event := <-e.events:
			if frame(w, 0, told(event)) != nil {
				return
			}
		case <-ping.C:
			if frame(w, 0, told(map[string]any{"keepalive": struct{}{}})) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-p.over:
			p.mu.Lock()
			end := p.end
			p.mu.Unlock()
			if frame(w, 0, told(map[string]any{"end": end})) == nil {
				_ = frame(w, endFlag, struct{}{}) // the client may be gone
			}
			return
		}
	}
}

const endFlag = 2

func told(event map[string]any) map[string]any { return map[string]any{"event": event} }

package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/clustersim"
)

// docs/scale.md has a table of the one in internal/clustersim/testdata.
var traceFile = flag.String("keep", "", "keep the trace of the run in this file")

// runLease is shorter than that of the model, and all else is faster by as much.
const (
	runLease   = 4 * time.Second
	modelLease = 10 * time.Second
)

// inRun is how long something takes that the model has for so long.
func inRun(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(runLease) / float64(modelLease))
}

// The nodes of the run, and its callers, in the time of the model.
const (
	runMemory   = 16 * cove.GiB
	runSessions = 12
	runLength   = 50 * time.Second
	runCrash    = 20 * time.Second
	runPatience = 5 * time.Second
)

// BenchmarkModel has three nodes serve some hundred callers, of whom not all fit, and
// ends one of the nodes in the middle. The model is told who came, and must come to
// about as many who waited, were refused and lost theirs. It is no test, because a
// machine that has other things to do is not what the model is of: tests compare the
// model with the run that is kept.
func BenchmarkModel(t *testing.B) {
	r := newRun(t)
	for _, a := range r.arrivals(t) {
		r.wg.Go(func() { r.visit(a) })
	}
	r.wg.Go(func() { r.until(runCrash); r.crash(r.nodes[2]) })
	r.wg.Wait()
	r.sayLost()
	r.failIfSlow()
	var out strings.Builder
	err := clustersim.Replay(&out, clustersim.Config{Patience: runPatience, Queue: 64}, r.read())
	if t.Log("\n" + out.String()); err != nil {
		t.Error(err)
	}
	if *traceFile != "" {
		if err := os.WriteFile(*traceFile, r.lines(), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// modelRun is a run that is under way.
type modelRun struct {
	testing.TB

	nodes []*node
	began time.Time
	wg    sync.WaitGroup

	mu    sync.Mutex
	dead  *node                        // the one that crashed
	died  int64                        // and when
	here  map[cove.ID]clustersim.Event // who has a session, by how it began
	trace clustersim.Trace
	took  []time.Duration // from when callers wanted to come until they were in, of those who did not wait
}

func newRun(t testing.TB) *modelRun {
	t.Helper()
	redis := newRedis(t)
	prefix := settled(t, redis.URL(), 1)()
	r := &modelRun{TB: t, here: map[cove.ID]clustersim.Event{}}
	for _, name := range []string{"a", "b", "c"} {
		n := newNode(t, redis.URL(), prefix, name)
		n.lease, n.o.MaxMemory, n.o.MaxSessions, n.o.QueueLength = runLease, runMemory, runSessions, 64
		r.nodes = append(r.nodes, n)
		r.trace = append(r.trace, clustersim.Event{Event: clustersim.EventNode, Node: name, Memory: runMemory, Sessions: runSessions})
	}
	start(t, r.nodes...)
	r.began = time.Now()
	return r
}

// visitor is a caller, in the time of the model.
type visitor struct {
	at, length time.Duration
	memory     cove.Bytes
}

// arrivals are those of a day of the model, as they are where all of them fit.
func (r *modelRun) arrivals(t testing.TB) []visitor {
	t.Helper()
	const from = 9 * time.Hour // o'clock
	day, err := clustersim.Record(clustersim.Config{
		Seed: 12, Nodes: 1, Sandboxes: 36, Length: from + 10*time.Minute, Median: 5 * time.Second, Sigma: 0.8, NodeMemory: cove.TiB, NodeSessions: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []visitor
	open := map[cove.Bytes][]int{}
	for _, e := range day {
		at := time.Duration(e.At)*time.Millisecond - from
		switch e.Event {
		case clustersim.EventOpen:
			open[e.Memory] = append(open[e.Memory], len(all))
			all = append(all, visitor{at: at, length: runLength, memory: e.Memory})
		case clustersim.EventClose:
			first := open[e.Memory][0]
			open[e.Memory] = open[e.Memory][1:]
			all[first].length = at - all[first].at
		}
	}
	all = slices.DeleteFunc(all, func(v visitor) bool { return v.at < 0 || v.at >= runLength })
	return all
}

// now is the time of the model.
func (r *modelRun) now() int64 {
	return int64(float64(time.Since(r.began).Milliseconds()) * float64(modelLease) / float64(runLease))
}

// until waits for a time of the model.
func (r *modelRun) until(at time.Duration) {
	<-time.After(time.Until(r.began.Add(inRun(at))))
}

// face is the platform as a caller finds it, at any node that lives.
func (r *modelRun) face() cove.Sessions {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if n := r.nodes[rand.IntN(len(r.nodes))]; n != r.dead {
			return n.member.As(somebody()).Sessions()
		}
	}
}

// visit is what a caller does.
func (r *modelRun) visit(v visitor) {
	r.until(v.at)
	ctx, cancel := context.WithTimeout(r.Context(), inRun(runPatience))
	defer cancel()
	came, waits := r.now(), false
	s, err := r.face().Open(ctx, cove.OpenRequest{
		Spec: cove.Spec{Resources: cove.Resources{Memory: v.memory}}, OnFull: cove.WaitWhenFull, OnQueue: func(int) { waits = true },
	})
	e := clustersim.Event{At: r.now(), Event: clustersim.EventOpen, Memory: v.memory}
	if waits {
		e.Waited = e.At - came
	}
	if err != nil {
		e.Event = clustersim.EventRefused
		r.note(e)
		return
	}
	e.Node = s.Node
	if !waits {
		r.mu.Lock()
		r.took = append(r.took, time.Since(r.began)-inRun(v.at))
		r.mu.Unlock()
	}
	if !r.opened(s.ID, e) {
		return
	}
	<-time.After(inRun(v.length))
	r.leave(s.ID)
}

func (r *modelRun) note(e clustersim.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace = append(r.trace, e)
}

// opened notes a session. One that began while its node ended began before.
func (r *modelRun) opened(id cove.ID, e clustersim.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := r.dead != nil && r.dead.name == e.Node
	if late {
		e.At = min(e.At, r.died-1)
		e.Waited = min(e.Waited, e.At)
	}
	r.trace = append(r.trace, e)
	r.here[id] = e
	return !late
}

// leave closes a session, if it is still there.
func (r *modelRun) leave(id cove.ID) {
	e, gone := r.held(id)
	if gone {
		return
	}
	_, err := r.face().Close(r.Context(), id, false)
	begun := e.At
	e.At, e.Event, e.Waited = r.now(), clustersim.EventClose, 0
	_, gone = r.held(id)
	switch {
	case err != nil && !gone:
		r.Errorf("close a session on %s: %v", e.Node, err)
		return
	case err != nil:
		return // it is lost
	case gone:
		e.At = max(begun, r.died-1) // the node still said so
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.here, id)
	r.trace = append(r.trace, e)
}

// held is how a session began, and whether its node is gone.
func (r *modelRun) held(id cove.ID) (clustersim.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.here[id]
	return e, r.dead != nil && e.Node == r.dead.name
}

// crash ends a node at once.
func (r *modelRun) crash(n *node) {
	r.mu.Lock()
	r.dead, r.died = n, r.now()
	r.mu.Unlock()
	n.crash()
}

// failIfSlow ends a run on a machine that has so much else to do that a session is not
// there at once, as it is in the model.
func (r *modelRun) failIfSlow() {
	if len(r.took) == 0 {
		r.Fatal("nobody got a session at once")
	}
	slices.Sort(r.took)
	r.Logf("half of the sessions were there after %s, nine of ten after %s", r.took[len(r.took)/2], r.took[len(r.took)*9/10])
	const most = 150 * time.Millisecond
	if p90 := r.took[len(r.took)*9/10]; p90 > most {
		r.Fatalf("this machine is too busy for a run that is compared: one of ten sessions took longer than %s", p90)
	}
}

// sayLost notes the sessions that the platform gave up with the node: all that were
// there and were not closed before.
func (r *modelRun) sayLost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.here {
		if e.Node != r.dead.name {
			r.Errorf("session %s on %s was not closed", id, e.Node)
			continue
		}
		r.waitLost(id)
		r.trace = append(r.trace, clustersim.Event{At: r.died, Event: clustersim.EventLost, Node: e.Node, Memory: e.Memory})
	}
}

// waitLost waits until the directory says that a session is lost.
func (r *modelRun) waitLost(id cove.ID) {
	for range 600 {
		s, err := r.nodes[0].directory.Locate(r.Context(), id)
		if err == nil && s.State == cove.Ended && s.Cause == cove.ReasonNodeLost {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	r.Errorf("session %s of the node that crashed is not lost", id)
}

func (r *modelRun) lines() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range r.trace {
		if err := enc.Encode(e); err != nil {
			r.Error(err)
		}
	}
	return b.Bytes()
}

// read is the trace as the command reads it.
func (r *modelRun) read() clustersim.Trace {
	t, err := clustersim.ReadTrace(bytes.NewReader(r.lines()))
	if err != nil {
		r.Fatal(err)
	}
	return t
}

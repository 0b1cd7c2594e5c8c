package history

import (
	"math"
	"slices"
)

// Kind says what a line is about.
type Kind string

// The kinds of lines.
const (
	KindRun    Kind = "run"
	KindCall   Kind = "call"
	KindReturn Kind = "return"
)

// Op is what was done: by a client to a session, or by the nemesis to the cluster.
type Op string

// What clients do.
const (
	Open  Op = "open"
	Write Op = "write"
	Read  Op = "read"
	Exec  Op = "exec" // reads the file by a program, and tells which sandbox it ran in
	List  Op = "list"
	Get   Op = "get"
	Close Op = "close"
)

// What the nemesis does. All but two are done to one node.
const (
	Crash        Op = "crash"         // the server is killed, and comes back; its sandboxes are held meanwhile
	Power        Op = "power"         // all processes of the node are killed, and the server comes back
	Leave        Op = "leave"         // the server is asked to end, and comes back
	Freeze       Op = "freeze"        // the server gets no time
	CutRedis     Op = "cut-redis"     // no packet passes between the node and Redis
	CutNodes     Op = "cut-nodes"     // nor between two nodes
	RedisRestart Op = "redis-restart" // Redis is killed, and comes back with all that it knew
	RedisLoss    Op = "redis-loss"    // and comes back empty
)

// Faults returns every thing that the nemesis does.
func Faults() []Op {
	return []Op{Crash, Power, Leave, Freeze, CutRedis, CutNodes, RedisRestart, RedisLoss}
}

// IsFault reports whether it is the nemesis who does it.
func (o Op) IsFault() bool { return slices.Contains(Faults(), o) }

// Final is the client that asks for every session once more when all is healed.
const Final = "final"

// Never is the end of what nobody saw the end of.
const Never int64 = math.MaxInt64

// Run is the first line.
type Run struct {
	Seed  uint64   `json:"seed"`
	Nodes []string `json:"nodes"`
	Lease int64    `json:"lease_ns"` // how long a node may serve without a word from Redis
	// Grace is how long a node that leaves in order may be away before it is lost.
	Grace int64 `json:"grace_ns"`
	// Settle is how long Redis may lack sessions after it came back empty.
	Settle int64 `json:"settle_ns"`
}

// Event is one thing that was done and what came of it.
type Event struct {
	Number int    `json:"number"`
	Client string `json:"client,omitempty"`
	Op     Op     `json:"op,omitempty"`
	Start  int64  `json:"start,omitempty"`
	End    int64  `json:"end,omitempty"`

	Node    string `json:"node,omitempty"`    // that was asked, or to which it was done
	Session string `json:"session,omitempty"` // that was asked for, or that an open returned
	Key     string `json:"key,omitempty"`     // the user and thread of an open; "" has none
	File    string `json:"file,omitempty"`
	Value   string `json:"value,omitempty"` // that was written, or read

	Status  int      `json:"status,omitempty"` // of the answer; 0: there was none
	Code    string   `json:"code,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Home    string   `json:"home,omitempty"`    // the node that has the session, by the answer
	Created bool     `json:"created,omitempty"` // by this very open
	Absent  bool     `json:"absent,omitempty"`  // the session answered that it has no such file
	Token   string   `json:"token,omitempty"`   // of the sandbox that an exec ran in
	Files   []string `json:"files,omitempty"`   // that a list has
	Other   string   `json:"other,omitempty"`   // the session that answered, where it is another one
	Unsent  bool     `json:"unsent,omitempty"`  // no byte of it left the client
	Error   string   `json:"error,omitempty"`   // why there was no answer, for people

	Peer    string `json:"peer,omitempty"`    // the other node of a cut
	Applied int64  `json:"applied,omitempty"` // when a fault was wholly there
	Healing int64  `json:"healing,omitempty"` // when it began to go; End is when it was gone
}

// Answered reports whether the cluster said something.
func (e *Event) Answered() bool { return e.Status != 0 }

// Done reports whether the cluster did what was asked.
func (e *Event) Done() bool { return e.Status >= 200 && e.Status < 300 }

// Served reports whether the session itself answered, so that it was alive at some
// time between Start and End.
func (e *Event) Served() bool {
	return !e.Op.IsFault() && e.Op != Close && e.Session != "" && (e.Done() || e.Absent)
}

// notFound is the status of a session that is not there.
const notFound = 404

// Reasons that a session is not there. The first is final only where nobody could
// know better.
const (
	noSession     = "no_such_session"
	nodeLost      = "node_lost"
	sessionClosed = "session_closed"
)

// Gone reports whether the answer is that the session is not there any more.
func (e *Event) Gone() bool {
	return e.Session != "" && e.Status == notFound && !e.Absent && e.Reason != ""
}

// Maybe reports whether what was asked may yet have been done, or be done later,
// although nobody said so.
func (e *Event) Maybe() bool { return !e.Done() && !e.Unsent }

// over is when its effect can no longer come.
func (e *Event) over() int64 {
	if e.Done() {
		return e.End
	}
	return Never
}

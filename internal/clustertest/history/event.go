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
	Stop  Op = "stop"  // gives the sandbox back and keeps the files
	Start Op = "start" // makes a sandbox of them

	Replace Op = "replace" // has a program write its input to a new file and rename that to the file
	Append  Op = "append"  // has a program add a line to the log of the session; each value is sent once
	Tally   Op = "tally"   // reads that log
	Set     Op = "set"     // gives a variable of an interpreter that remembers a value
	Recall  Op = "recall"  // reads it
	Begin   Op = "begin"   // starts a background program, which prints the value
	Look    Op = "look"    // asks whether it runs, and for its output
)

// What the nemesis does: to one node, to Redis or, by EmptyCluster, to all of them.
const (
	Crash        Op = "crash"         // the server is killed, and comes back; its sandboxes are held meanwhile
	Power        Op = "power"         // all processes of the node are killed, and the server comes back
	Leave        Op = "leave"         // the server is asked to end, and comes back
	Freeze       Op = "freeze"        // the server gets no time
	CutRedis     Op = "cut-redis"     // no packet passes between the node and Redis
	CutNodes     Op = "cut-nodes"     // nor between two nodes
	RedisRestart Op = "redis-restart" // Redis is killed, and comes back with all that it knew
	RedisLoss    Op = "redis-loss"    // and comes back empty
	EmptyStart   Op = "empty-start"   // the server is killed, Redis comes back empty, and then the server starts
	EmptyCluster Op = "empty-cluster" // the same with all servers
	DiskFull     Op = "disk-full"     // the disk of the node has no byte free
	DatabaseLoss Op = "database-loss" // a server by itself is killed, loses its database, and its sessions are taken up from what else it has
)

// Faults returns what the nemesis does to a cluster.
func Faults() []Op {
	return []Op{Crash, Power, Leave, Freeze, CutRedis, CutNodes, RedisRestart, RedisLoss, EmptyStart, EmptyCluster, DiskFull}
}

// ServerFaults returns what it does to a server by itself.
func ServerFaults() []Op { return []Op{Crash, Freeze, DiskFull, DatabaseLoss} }

// IsFault reports whether it is the nemesis who does it.
func (o Op) IsFault() bool {
	return slices.Contains(Faults(), o) || slices.Contains(ServerFaults(), o)
}

// empties reports whether Redis loses all in it.
func (o Op) empties() bool { return o == RedisLoss || o == EmptyStart || o == EmptyCluster }

// writes reports whether it gives a file another content.
func (o Op) writes() bool { return o == Write || o == Replace }

// runs reports whether a program or code is run by it, which can fail by itself.
func (o Op) runs() bool {
	return slices.Contains([]Op{Exec, Replace, Append, Set, Recall, Begin}, o)
}

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
	// Bound is how many sandboxes the tenant may have at once; 0: as many as there is room for.
	Bound int `json:"bound,omitempty"`
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
	Error   string   `json:"error,omitempty"`   // why there was no answer, or that what was done failed, for people
	Again   bool     `json:"again,omitempty"`   // the answer says after which time to ask again (Retry-After)
	State   string   `json:"state,omitempty"`   // of the session, by the answer
	Context string   `json:"context,omitempty"` // that code ran in
	Fresh   bool     `json:"fresh,omitempty"`   // the interpreter was started for this code
	Program string   `json:"program,omitempty"` // the number of a background program
	Running bool     `json:"running,omitempty"` // it runs, by the answer

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

// acked reports whether the answer says that all of it was done.
func (e *Event) acked() bool { return e.Done() && e.Error == "" }

// Maybe reports whether what was asked may yet have been done, or be done later,
// although nobody said so.
func (e *Event) Maybe() bool { return !e.acked() && !e.refused() && !e.Unsent }

// refused reports whether the answer says that a program was not run: a caller that obeys asks
// again. What is the same when it is done twice may get such an answer all the same.
func (e *Event) refused() bool { return e.Op.runs() && e.Again && e.Answered() && !e.Done() }

// over is when its effect can no longer come.
func (e *Event) over() int64 {
	switch {
	case e.acked():
		return e.End
	case e.refused() || e.Unsent:
		return e.Start
	}
	return Never
}

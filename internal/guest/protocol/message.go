package protocol

// Version is that of the protocol. It is not that of the build: an agent is
// started from the executable of its first host, and may outlive that. So a host
// speaks to older agents too, from Oldest on, and sends nothing that those do not
// know.
const (
	Version = 10
	Oldest  = 2  // without Whole
	Whole   = 3  // trees have hard links, pipes, all bits of a mode, attributes and holes
	Doors   = 4  // agents listen, and hold what is kept
	Owners  = 5  // descriptions have owners and attributes, and files get attributes
	Moves   = 6  // changes tell files that move, and those whose attributes change
	Lists   = 7  // programs can be kept to a list of executables, and the greeting says whether
	Losses  = 8  // what follows a program is told how much of its output was dropped
	Guards  = 9  // an agent keeps the input of a program open when its host is gone
	Marks   = 10 // programs get names while they run, and of those that are held output can be marked as read
)

// What an agent's executable is besides, by its first argument.
const (
	ListenWord = "listen" // an agent that waits for hosts at [Address]
	DoorWord   = "door"   // what brings such an agent the streams of a host
	FilterWord = "filter" // after ListenWord: with a filter of system calls
	BesideWord = "beside" // after ListenWord and DoorWord: both have one parent, which is told apart by that where nobody is root
	WatchWord  = "watch"  // as FilterWord, for an agent that does not listen and whose filter is there: it watches what the kernel keeps
	MountWord  = "mount"  // what gives a sandbox its room for files
)

// GoesOn is what a poke to forget has as its signal where the streams of the program
// are read on.
const GoesOn = 1

// Alone is what a poke to follow has as its signal where nobody else ever will.
const Alone = 1

// Mounted is what somebody says who was told to mount and did.
const Mounted = "MOUNTED\n"

// Address is the name of the abstract socket at which an agent listens.
const Address = "@cove-agent"

// Magic is what an agent that took a door's streams writes there first. What comes
// before it was said by who opened the door.
const Magic = "COVE4\n"

// Bounds on messages.
const (
	MaxBody    = 4 << 20  // the body of a request
	MaxPacket  = 32 << 10 // one packet to the agent; a larger body goes in a file in memory
	MaxReply   = 16 << 10 // one message to the host
	MaxStreams = 4        // of one message
	MaxPath    = 4096     // Linux's own
	MaxText    = 1 << 10  // what an agent says of an error
	MaxArgs    = 128 << 10
	MaxArg     = MaxBody
	MaxKeep    = 64       // the name of a program that outlives its host
	MaxProgram = 64       // a name in Programs
	MaxListed  = 512      // of these
	MaxKept    = 512      // such programs of one agent
	KeptPage   = 100      // of these in one message
	MaxNote    = 48 << 10 // what a host has held with such a program
	MaxPorts   = 256      // of one request to listen
	MaxQuery   = 4 << 10  // a packet for the name server
)

// Kind says what a message is.
type Kind byte

// The kinds. All but Reply and Exited are requests of the host.
const (
	KindHello Kind = iota + 1
	KindStart
	KindSignal
	KindKill
	KindResize
	KindStat
	KindRead
	KindWrite
	KindList
	KindMkdir
	KindMove
	KindRemove
	KindArchive
	KindUnpack
	KindWatch
	KindDial
	KindUsage
	KindPing
	KindShutdown
	KindKept   // what a greeting had no room for
	KindForget // of a program that is kept
	KindLeave  // the host is gone; there is no reply
	KindReply  // of the agent, with the id of the request
	KindExited // of the agent, with the id of the request that started the program
	KindTake   // of the host: a child of the agent that somebody put there becomes a program
	KindHold   // of the host, as all below: start a program whose streams the agent holds
	KindFollow // what such a program writes
	KindLook   // its note and its input
	KindShut   // the end of its input
	KindListen // at ports of the sandbox, for a way out of it
	KindBound  // the memory of the sandbox, where no kernel does

	KindAccepted // of the agent, with the id of the request to listen: a connection

	KindTag   // of the host: attributes for a file
	KindKills // how often the kernel ended a process for want of memory

	KindExcess // of the agent, without an id: it ends the sandbox, and why

	KindMark // of the host: a name for a program, and what of its output is not wanted again

	lastKind = KindMark
)

// Flow is the direction of a stream, seen by who receives the message that it
// is attached to.
type Flow byte

// The directions.
const (
	Readable Flow = iota + 1 // the receiver reads
	Writable                 // the receiver writes
	Duplex                   // the receiver does both
)

// Message is one request, reply or event.
type Message struct {
	Kind    Kind
	ID      uint64
	Body    []byte
	Streams []*Stream
}

// header is what stands before the body.
type header struct {
	kind  Kind
	id    uint64
	large bool // the body is in a file in memory, which is the last descriptor
	flows []Flow
	lanes []uint64 // with frames: the numbers of the streams
}

func (h *header) encode(e *Encoder) {
	e.b = append(e.b, byte(h.kind))
	e.Bool(h.large)
	e.Uint(h.id)
	e.b = append(e.b, byte(len(h.flows))) //nolint:gosec // MaxStreams at most
	for i, f := range h.flows {
		e.b = append(e.b, byte(f))
		if h.lanes != nil {
			e.Uint(h.lanes[i])
		}
	}
}

// decodeHeader reads what stands before the body, and returns the body.
func decodeHeader(b []byte, lanes bool) (header, []byte, error) {
	d := NewDecoder(b)
	var h header
	h.kind = Kind(d.Byte(byte(lastKind)))
	h.large = d.Bool()
	h.id = d.Uint()
	for range d.Byte(MaxStreams) {
		f := Flow(d.Byte(byte(Duplex)))
		if f == 0 {
			d.fail()
		}
		h.flows = append(h.flows, f)
		if lanes {
			h.lanes = append(h.lanes, d.Uint())
		}
	}
	if h.kind == 0 || lanes && h.large {
		d.fail()
	}
	body := d.rest()
	return h, body, d.End()
}

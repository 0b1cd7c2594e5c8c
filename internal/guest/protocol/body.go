package protocol

// Reason says more about a failure than an errno can.
type Reason byte

// The reasons.
const (
	ReasonNone        Reason = iota
	ReasonExec               // Start: the program cannot be executed
	ReasonDir                // Start: the directory is not there
	ReasonKind               // it is not a regular file, or not a directory
	ReasonUnsafe             // Unpack: the way to an entry leads through a link
	ReasonBroken             // the stream ended before its end
	ReasonNoEntry            // there is no such program
	ReasonBusy               // too many at once
	ReasonNoTTY              // the program has no terminal
	ReasonUnknown            // the agent does not know the request
	ReasonKernelFiles        // the path enters a file system of the kernel, such as /proc
	lastReason        = ReasonKernelFiles
)

// Reply answers a request. Errno 0 with ReasonNone means that it was done.
type Reply struct {
	Errno  uint32
	Reason Reason
	Text   string // what the errno is about, such as a name
	Body   []byte
}

// OK reports whether the request was done.
func (r Reply) OK() bool { return r.Errno == 0 && r.Reason == ReasonNone }

// Encode returns the body of a message.
func (r Reply) Encode() []byte {
	var e Encoder
	e.Uint(uint64(r.Errno))
	e.b = append(e.b, byte(r.Reason))
	e.Text(r.Text[:min(len(r.Text), MaxText)])
	e.b = append(e.b, r.Body...)
	return e.Bytes()
}

// DecodeReply is the inverse of [Reply.Encode].
func DecodeReply(b []byte) (Reply, error) {
	d := NewDecoder(b)
	r := Reply{Errno: uint32(d.UpTo(4095)), Reason: Reason(d.Byte(byte(lastReason))), Text: d.Text(MaxText)} //nolint:gosec // bounded
	r.Body = d.rest()
	return r, d.End()
}

// Greeting is what the agent answers to hello.
type Greeting struct {
	Version uint64
	PID     int
	Proc    bool   // it sees /proc: without it, killing a tree misses what left its group
	Highest uint64 // of the ids that earlier hosts used; 0 if there was none
	Kept    []Kept // in the order of their ids
	More    bool   // there are more
	// Confines says that the agent can keep programs to a list of executables; since
	// version 7.
	Confines bool
}

// Kept is a program that outlives its host.
type Kept struct {
	Keep    string
	Program uint64 // the id of the request that started it
	Ended   bool
	Exited        // how, if it has
	Wall    int64 // microseconds that it ran, if it has ended
}

// Encode returns the body of a message.
func (g Greeting) Encode() []byte {
	var e Encoder
	e.Uint(g.Version)
	e.Int(int64(g.PID))
	e.Bool(g.Proc)
	e.Uint(g.Highest)
	e.Uint(uint64(len(g.Kept)))
	for _, k := range g.Kept {
		e.Text(k.Keep)
		e.Uint(k.Program)
		e.Bool(k.Ended)
		k.encode(&e)
		e.Int(k.Wall)
	}
	e.Bool(g.More)
	if g.Version >= Lists {
		e.Bool(g.Confines)
	}
	return e.Bytes()
}

// GreetingVersion reads the first field of a greeting, which every version has.
func GreetingVersion(b []byte) (uint64, error) {
	d := NewDecoder(b)
	v := d.Uint()
	d.rest()
	return v, d.End()
}

// DecodeGreeting is the inverse of [Greeting.Encode].
func DecodeGreeting(b []byte) (Greeting, error) {
	d := NewDecoder(b)
	g := Greeting{Version: d.Uint(), PID: int(d.Int()), Proc: d.Bool(), Highest: d.Uint()}
	for range d.UpTo(KeptPage) {
		k := Kept{Keep: d.Text(MaxKeep), Program: d.Uint(), Ended: d.Bool()}
		k.Exited = decodeExited(d)
		k.Wall = d.Int()
		g.Kept = append(g.Kept, k)
	}
	g.More = d.Bool()
	if g.Version >= Lists {
		g.Confines = d.Bool()
	}
	return g, d.End()
}

// Stdio says which of a program's streams are attached to its start, in this
// order. One that is not is /dev/null.
type Stdio byte

// The streams of a program.
const (
	Stdin Stdio = 1 << iota
	Stdout
	Stderr
	Merged // stderr goes where stdout goes
	TTY    // none is attached: the agent makes a terminal and attaches it to the reply
	listed // the request has Programs
	// Guarded says that after the input comes the end of its pipe that the host writes to,
	// once more: the agent closes it when the host shuts the input, or when the program has
	// ended. It is for descriptors.
	Guarded

	allStdio = Stdin | Stdout | Stderr | Merged | TTY | listed | Guarded
)

// Start asks for a program.
type Start struct {
	Argv, Env  []string
	Dir        string
	Stdio      Stdio
	Cols, Rows uint16
	// Processes is how many there may be in the sandbox beside the agent; 0 means
	// that nobody counts.
	Processes uint32
	// Keep names a program that outlives its host; "" is one that does not.
	Keep string
	// Programs, if it is not nil, is all that the program and what it starts may
	// execute. An agent that cannot enforce it fails the request.
	Programs *Programs
}

// Programs is a list of executables.
type Programs struct {
	Names   []string // found in the directories of PATH that the sandbox's user cannot write to
	Helpers []string // absolute paths of files, or of directories with all below
	Offline bool     // sockets of the internet families are refused
}

// Hold asks for a program whose streams the agent holds, so that it can be found
// again by any host. Start has its name, and says with Stdin that the reply is to
// have the input attached.
type Hold struct {
	Start

	Note []byte // given back to who looks
	Most uint64 // bytes of what it writes that are remembered
}

// Encode returns the body of a message.
func (h Hold) Encode() []byte {
	e := Encoder{b: h.Start.Encode()}
	e.Text(string(h.Note))
	e.Uint(h.Most)
	return e.Bytes()
}

// DecodeHold is the inverse of [Hold.Encode].
func DecodeHold(b []byte) (Hold, error) {
	d := NewDecoder(b)
	h := Hold{Start: decodeStart(d)}
	h.Note = []byte(d.Text(MaxNote))
	h.Most = d.UpTo(1 << 30)
	if h.Keep == "" {
		d.fail()
	}
	return h, d.End()
}

// Encode returns the body of a message.
func (s Start) Encode() []byte {
	n := 64 + len(s.Dir)
	for _, list := range [][]string{s.Argv, s.Env} {
		for _, a := range list {
			n += len(a) + 4
		}
	}
	e := Encoder{b: make([]byte, 0, n)}
	e.List(s.Argv)
	e.List(s.Env)
	e.Text(s.Dir)
	stdio := s.Stdio &^ listed
	if s.Programs != nil {
		stdio |= listed
	}
	e.b = append(e.b, byte(stdio))
	e.Uint(uint64(s.Cols))
	e.Uint(uint64(s.Rows))
	e.Uint(uint64(s.Processes))
	e.Text(s.Keep)
	if p := s.Programs; p != nil {
		e.List(p.Names)
		e.List(p.Helpers)
		e.Bool(p.Offline)
	}
	return e.Bytes()
}

// DecodeStart is the inverse of [Start.Encode].
func DecodeStart(b []byte) (Start, error) {
	d := NewDecoder(b)
	s := decodeStart(d)
	return s, d.End()
}

func decodeStart(d *Decoder) Start {
	s := Start{Argv: d.List(MaxArgs, MaxArg), Env: d.List(MaxArgs, MaxArg), Dir: d.Text(MaxPath), Stdio: Stdio(d.Byte(byte(allStdio)))}
	s.Cols, s.Rows = uint16(d.UpTo(0xffff)), uint16(d.UpTo(0xffff)) //nolint:gosec // bounded
	s.Processes = uint32(d.UpTo(1<<32 - 1))                         //nolint:gosec // bounded
	s.Keep = d.Text(MaxKeep)
	if s.Stdio&listed != 0 {
		s.Stdio &^= listed
		s.Programs = &Programs{Names: d.List(MaxListed, MaxProgram), Helpers: d.List(MaxListed, MaxPath), Offline: d.Bool()}
	}
	if len(s.Argv) == 0 {
		d.fail()
	}
	return s
}

// Streams returns how many streams are attached.
func (s Stdio) Streams() int {
	n := 0
	for _, one := range []Stdio{Stdin, Guarded, Stdout, Stderr} {
		if s&one != 0 {
			n++
		}
	}
	return n
}

// Exited tells how a program ended.
type Exited struct {
	Status uint32 // as wait(2) gives it
	CPU    int64  // microseconds, with the children it waited for
	MaxRSS int64  // KiB
	// Starved says that the agent killed it, because more memory was in use than
	// there may be. It is a bit of the status, which earlier versions never set.
	Starved bool
}

const starvedBit = 1 << 16

// Encode returns the body of a message.
func (x Exited) Encode() []byte {
	var e Encoder
	x.encode(&e)
	return e.Bytes()
}

func (x Exited) encode(e *Encoder) {
	status := uint64(x.Status)
	if x.Starved {
		status |= starvedBit
	}
	e.Uint(status)
	e.Int(x.CPU)
	e.Int(x.MaxRSS)
}

// DecodeExited is the inverse of [Exited.Encode].
func DecodeExited(b []byte) (Exited, error) {
	d := NewDecoder(b)
	x := decodeExited(d)
	return x, d.End()
}

func decodeExited(d *Decoder) Exited {
	status := d.UpTo(starvedBit | 0xffff)
	return Exited{Status: uint32(status & 0xffff), Starved: status&starvedBit != 0, CPU: d.Int(), MaxRSS: d.Int()}
}

// Bound says how much memory the sandbox may use; 0 lifts the bound.
type Bound struct {
	Memory uint64 // bytes, with those of files in memory
}

// Encode returns the body of a message.
func (b Bound) Encode() []byte {
	var e Encoder
	e.Uint(b.Memory)
	e.Uint(0) // agents of earlier builds read what files may have besides
	return e.Bytes()
}

// DecodeBound is the inverse of [Bound.Encode].
func DecodeBound(b []byte) (Bound, error) {
	d := NewDecoder(b)
	v := Bound{Memory: d.Uint()}
	d.Uint()
	return v, d.End()
}

// Excess is why an agent ends its sandbox: its programs had the kernel keep more of a
// kind than they may.
type Excess struct {
	Kind        ExcessKind
	Count, Most uint64
}

// ExcessKind is what there is too much of.
type ExcessKind byte

// The kinds.
const (
	Locks ExcessKind = iota + 1
	Sockets
)

// Encode returns the body of a message.
func (x Excess) Encode() []byte {
	var e Encoder
	e.Uint(uint64(x.Kind))
	e.Uint(x.Count)
	e.Uint(x.Most)
	return e.Bytes()
}

// DecodeExcess is the inverse of [Excess.Encode].
func DecodeExcess(b []byte) (Excess, error) {
	d := NewDecoder(b)
	x := Excess{Kind: ExcessKind(d.UpTo(uint64(Sockets))), Count: d.Uint(), Most: d.Uint()} //nolint:gosec // bounded
	return x, d.End()
}

// Poke is a signal for a program, or a new size for its terminal.
type Poke struct {
	Program    uint64
	Signal     uint8
	Cols, Rows uint16
}

// Encode returns the body of a message.
func (p Poke) Encode() []byte {
	var e Encoder
	e.Uint(p.Program)
	e.Uint(uint64(p.Signal))
	e.Uint(uint64(p.Cols))
	e.Uint(uint64(p.Rows))
	return e.Bytes()
}

// DecodePoke is the inverse of [Poke.Encode].
func DecodePoke(b []byte) (Poke, error) {
	d := NewDecoder(b)
	p := Poke{Program: d.Uint(), Signal: uint8(d.UpTo(64))}         //nolint:gosec // bounded
	p.Cols, p.Rows = uint16(d.UpTo(0xffff)), uint16(d.UpTo(0xffff)) //nolint:gosec // bounded
	return p, d.End()
}

// Mark makes a program one that is kept, if it is not yet. Of one whose streams the agent
// holds, nothing is dropped any more but what was before the offsets, and the note is
// the new one.
type Mark struct {
	Program  uint64
	Keep     string
	Note     []byte
	Out, Err int64 // offsets of its streams
}

// Encode returns the body of a message.
func (m Mark) Encode() []byte {
	var e Encoder
	e.Uint(m.Program)
	e.Text(m.Keep)
	e.Text(string(m.Note))
	e.Int(m.Out)
	e.Int(m.Err)
	return e.Bytes()
}

// DecodeMark is the inverse of [Mark.Encode].
func DecodeMark(b []byte) (Mark, error) {
	d := NewDecoder(b)
	m := Mark{Program: d.Uint(), Keep: d.Text(MaxKeep), Note: []byte(d.Text(MaxNote)), Out: d.Int(), Err: d.Int()}
	if m.Out < 0 || m.Err < 0 {
		d.fail()
	}
	return m, d.End()
}

// File asks for something to be done to a file.
type File struct {
	Name, To string // To: of a move
	Offset   int64  // of a read
	Length   int64  // of a read; 0 means to the end
	Mode     uint32 // of a write: permissions
	Depth    int    // of a list; of a usage, more than 0 counts file by file
	Port     uint16 // of a dial
}

// Encode returns the body of a message.
func (f File) Encode() []byte {
	var e Encoder
	e.Text(f.Name)
	e.Text(f.To)
	e.Int(f.Offset)
	e.Int(f.Length)
	e.Uint(uint64(f.Mode))
	e.Uint(uint64(f.Depth)) //nolint:gosec // checked by the host before
	e.Uint(uint64(f.Port))
	return e.Bytes()
}

// DecodeFile is the inverse of [File.Encode].
func DecodeFile(b []byte) (File, error) {
	d := NewDecoder(b)
	f := File{Name: d.Text(MaxPath), To: d.Text(MaxPath), Offset: d.Int(), Length: d.Int()}
	f.Mode = uint32(d.UpTo(0o777)) //nolint:gosec // bounded
	f.Depth = int(d.UpTo(1 << 10)) //nolint:gosec // bounded
	f.Port = uint16(d.UpTo(65535)) //nolint:gosec // bounded
	if f.Offset < 0 || f.Length < 0 {
		d.fail()
	}
	return f, d.End()
}

// Usage is what the agent can count.
type Usage struct {
	CPU   int64 // microseconds, of all processes that it sees
	PIDs  int64
	Disk  int64 // bytes in use where the workspace is
	Files int64
}

// Encode returns the body of a message.
func (u Usage) Encode() []byte {
	var e Encoder
	for _, v := range []int64{u.CPU, u.PIDs, u.Disk, u.Files} {
		e.Int(v)
	}
	return e.Bytes()
}

// DecodeUsage is the inverse of [Usage.Encode].
func DecodeUsage(b []byte) (Usage, error) {
	d := NewDecoder(b)
	u := Usage{CPU: d.Int(), PIDs: d.Int(), Disk: d.Int(), Files: d.Int()}
	return u, d.End()
}

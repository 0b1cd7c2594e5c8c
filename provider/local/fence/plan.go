package fence

import "github.com/cove-sandbox/cove/internal/guest/protocol"

// Plan is what the sandboxes of one kind have in common.
type Plan struct {
	Root Root
	Host string // what the sandbox calls itself
	// Inside is the user, and the group, that programs are to themselves.
	Inside uint32
	// Become says that the builder is root and can give every sandbox a user of
	// the host for itself.
	Become bool
	Proc   bool // there is a /proc
	// Network gives the sandbox a network of its own, with nothing but loopback.
	Network bool
	// Groups hides the control groups around the sandbox from it.
	Groups   bool
	Landlock bool
	// Layers makes workspaces stores, whose directories are layers that jobs are
	// about. Landlock cannot tell then where a sandbox may write: the rules of
	// what is at /workspace now are not those of what will be.
	Layers bool
	// Nested says that processes come into sandboxes from a [Nest], too. To landlock
	// they are others than those of the agent, and neither could reach the other if
	// it kept them apart from what is outside; the namespaces do that alone then.
	Nested bool
	// Cover gives each sandbox files of its own at the top of the root, as the kernel
	// sees them: their locks are its own. Their content is shared all the same.
	Cover  bool
	Filter []byte // a seccomp program
	Limits []Limit
	Shared Bounds // of /dev/shm
	Argv   []string
	Env    []string // of the agent
}

// Root is the read-only tree that programs see.
type Root struct {
	// Stage is an empty directory of the host, over which the tree is built.
	Stage string
	// Shallow makes the tree read-only without what is mounted on its parts. It
	// is there to show that this is not enough.
	Shallow bool
	Dirs    []Dir
	Links   []Link
	Files   []File
	Binds   []Bind
	Devices []string // names in /dev
	// Evidence is a path of the tree at which the host's /proc is mounted until
	// the sandbox has its own: to an ordinary user the kernel gives a new one only
	// where he sees one already. Root needs none.
	Evidence string
}

// Dir is a directory of the tree. Those above it exist or come before it.
type Dir struct {
	Path string
	Mode uint32
}

// Link is a symbolic link.
type Link struct{ Path, To string }

// File is a file with a text.
type File struct {
	Path string
	Text []byte
}

// Bind shows a path of the host in the tree, read-only with all that is mounted
// below it; without a source, an empty directory or file.
type Bind struct {
	Source, Path string
	Dir          bool
	// Over are directories of the host that lie over the source, the topmost
	// first. With them, or with Keep, nothing is shown of what is mounted below
	// the source.
	Over []string
	// Keep leaves what the tree itself has at the path on top.
	Keep bool
}

// Limit is a bound on a resource, RLIMIT_….
type Limit struct {
	Resource int
	Most     uint64
}

// Bounds is how much a file system in memory takes.
type Bounds struct{ Size, Files int64 }

// Order is what one sandbox has for itself.
type Order struct {
	// Outside is the user of the host that programs are; of no matter unless the
	// plan says Become.
	Outside uint32
	Places  Places
	// Handles asks for descriptors of the places, by which they can be resized.
	Handles bool
	// Solo makes the first process one for a single program, package solo, instead
	// of the agent.
	Solo bool
	// Volumes are what else it sees of the host. One at /workspace takes the place
	// of the file system in memory.
	Volumes []Volume
}

// Volume is a file or a directory of the host that a sandbox sees, with all that
// is mounted below it.
type Volume struct {
	// Source is where it is, without links, for a builder in another mount
	// namespace than its host: it must be what the host's descriptor stands for.
	Source string
	Target string // clean and absolute
	Write  bool
	Dir    bool
	// Ready says that the host's descriptor is a mount already, and nobody else's.
	Ready bool
	// Within is a directory of it that is shown instead of the whole; "" is none.
	Within string
	// Mapped says that a user namespace comes with it, by which the users of its
	// files are others.
	Mapped bool
}

// Places are how much room there is in what a sandbox can write to.
type Places struct {
	Workspace Bounds
	Temp      Bounds // of /tmp
}

// MaxVolumes is how many volumes an order can have: each needs descriptors.
const MaxVolumes = 33

// Bounds of what is sent, to have some.
const (
	maxEntries = 4096
	maxOver    = 8 // layers over one directory
	maxPath    = 4096
	maxText    = 1 << 20
)

// encode writes the plan down.
func (p *Plan) encode() []byte {
	var e protocol.Encoder
	e.Text(p.Host)
	e.Uint(uint64(p.Inside))
	for _, b := range []bool{p.Become, p.Proc, p.Network, p.Groups, p.Landlock, p.Layers, p.Root.Shallow, p.Nested, p.Cover} {
		e.Bool(b)
	}
	e.Text(string(p.Filter))
	e.Uint(uint64(len(p.Limits)))
	for _, l := range p.Limits {
		e.Int(int64(l.Resource))
		e.Uint(l.Most)
	}
	p.Shared.encode(&e)
	e.List(p.Argv)
	e.List(p.Env)
	p.Root.encode(&e)
	return e.Bytes()
}

func (r *Root) encode(e *protocol.Encoder) {
	e.Text(r.Stage)
	e.Text(r.Evidence)
	e.List(r.Devices)
	e.Uint(uint64(len(r.Dirs)))
	for _, d := range r.Dirs {
		e.Text(d.Path)
		e.Uint(uint64(d.Mode))
	}
	e.Uint(uint64(len(r.Links)))
	for _, l := range r.Links {
		e.Text(l.Path)
		e.Text(l.To)
	}
	e.Uint(uint64(len(r.Files)))
	for _, f := range r.Files {
		e.Text(f.Path)
		e.Text(string(f.Text))
	}
	e.Uint(uint64(len(r.Binds)))
	for _, b := range r.Binds {
		e.Text(b.Source)
		e.Text(b.Path)
		e.Bool(b.Dir)
		e.List(b.Over)
		e.Bool(b.Keep)
	}
}

// decodePlan reads what encode wrote.
func decodePlan(b []byte) (*Plan, error) {
	d := protocol.NewDecoder(b)
	p := &Plan{Host: d.Text(maxPath), Inside: uint32(d.UpTo(1<<32 - 1))} //nolint:gosec // bounded
	for _, f := range []*bool{&p.Become, &p.Proc, &p.Network, &p.Groups, &p.Landlock, &p.Layers, &p.Root.Shallow, &p.Nested, &p.Cover} {
		*f = d.Bool()
	}
	p.Filter = []byte(d.Text(maxText))
	for range d.UpTo(maxEntries) {
		p.Limits = append(p.Limits, Limit{Resource: int(d.Int()), Most: d.Uint()})
	}
	p.Shared.decode(d)
	p.Argv, p.Env = d.List(maxEntries, maxText), d.List(maxEntries, maxText)
	p.Root.decode(d)
	return p, d.End()
}

func (r *Root) decode(d *protocol.Decoder) {
	r.Stage, r.Evidence = d.Text(maxPath), d.Text(maxPath)
	r.Devices = d.List(maxEntries, maxPath)
	for range d.UpTo(maxEntries) {
		r.Dirs = append(r.Dirs, Dir{d.Text(maxPath), uint32(d.UpTo(1<<32 - 1))}) //nolint:gosec // bounded
	}
	for range d.UpTo(maxEntries) {
		r.Links = append(r.Links, Link{d.Text(maxPath), d.Text(maxPath)})
	}
	for range d.UpTo(maxEntries) {
		r.Files = append(r.Files, File{d.Text(maxPath), []byte(d.Text(maxText))})
	}
	for range d.UpTo(maxEntries) {
		r.Binds = append(r.Binds, Bind{Source: d.Text(maxPath), Path: d.Text(maxPath), Dir: d.Bool(), Over: d.List(maxOver, maxPath), Keep: d.Bool()})
	}
}

// encode writes the order down.
func (o *Order) encode(e *protocol.Encoder) {
	e.Uint(uint64(o.Outside))
	o.Places.encode(e)
	e.Bool(o.Handles)
	e.Bool(o.Solo)
	e.Uint(uint64(len(o.Volumes)))
	for _, v := range o.Volumes {
		e.Text(v.Source)
		e.Text(v.Target)
		e.Bool(v.Write)
		e.Bool(v.Dir)
		e.Bool(v.Mapped)
		e.Bool(v.Ready)
		e.Text(v.Within)
	}
}

func (o *Order) decode(d *protocol.Decoder) {
	o.Outside = uint32(d.UpTo(1<<32 - 1)) //nolint:gosec // bounded
	o.Places.decode(d)
	o.Handles, o.Solo = d.Bool(), d.Bool()
	for range d.UpTo(MaxVolumes) {
		o.Volumes = append(o.Volumes, Volume{
			Source: d.Text(maxPath), Target: d.Text(maxPath), Write: d.Bool(), Dir: d.Bool(), Mapped: d.Bool(), Ready: d.Bool(), Within: d.Text(maxPath),
		})
	}
}

func (p *Places) encode(e *protocol.Encoder) {
	p.Workspace.encode(e)
	p.Temp.encode(e)
}

func (p *Places) decode(d *protocol.Decoder) {
	p.Workspace.decode(d)
	p.Temp.decode(d)
}

func (b *Bounds) encode(e *protocol.Encoder) {
	e.Int(b.Size)
	e.Int(b.Files)
}

func (b *Bounds) decode(d *protocol.Decoder) {
	b.Size, b.Files = d.Int(), d.Int()
}

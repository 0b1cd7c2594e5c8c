package escape

// Via is the way by which an attack comes in.
type Via string

// The ways in.
const (
	Exec     Via = "exec"     // a program with pipes
	Terminal Via = "terminal" // a program on a terminal
	Solo     Via = "solo"     // a program that has its sandbox to itself
	Kernel   Via = "kernel"   // a program that code starts in an interpreter which remembers
	Files    Via = "files"    // the calls on files, with or without a program that helps
)

// Vias returns every way in.
func Vias() []Via { return []Via{Exec, Terminal, Solo, Kernel, Files} }

// Finding is how one attack went, by one way in.
type Finding struct {
	Attack  string `json:"attack"`
	Try     string `json:"try"`
	Via     Via    `json:"via"`
	Held    bool   `json:"held"`              // it was stopped
	By      string `json:"by,omitempty"`      // what stopped it, as it was seen
	Detail  string `json:"detail,omitempty"`  // what got through, or why nobody can tell
	Skipped string `json:"skipped,omitempty"` // why it was not tried; then Held says nothing
}

// GotThrough reports whether the attack was tried and nothing stopped it.
func (f Finding) GotThrough() bool { return f.Skipped == "" && !f.Held }

// verdict is what one attempt came to.
type verdict struct {
	held   bool
	by     string
	detail string
}

func heldBy(by string) verdict     { return verdict{held: true, by: by} }
func breach(detail string) verdict { return verdict{detail: detail} }
func untold(detail string) verdict { return verdict{detail: "inconclusive: " + detail} }
func failed(err error) verdict     { return untold(err.Error()) }
func (v verdict) also(w verdict) verdict {
	switch {
	case !v.held:
		return v
	case !w.held:
		return w
	case v.by == "" || v.by == w.by:
		return w
	case w.by == "":
		return v
	}
	return heldBy(v.by + "; " + w.by)
}

// most is how much of a text from a sandbox is shown.
const most = 300

func clip(text string) string {
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

//go:build linux

package agent

// Tape is what is remembered of a program.
type Tape = tape

// Room is what all tapes share.
type Room = room

// NewTape returns one that may have so many bytes.
func NewTape(r *Room, most uint64) *Tape { return newTape(r, most) }

// Write, Join, Next, Moved, Leave, End and Forget are what is done to a tape.
var (
	Write  = (*tape).write
	Join   = (*tape).join
	Next   = (*tape).next
	Moved  = (*tape).moved
	Leave  = (*tape).leave
	End    = (*tape).close
	Forget = (*tape).forget
)

// AheadOf is the score of programs.
var AheadOf = aheadOf

// ParseUse and Gap are how memory is watched.
var (
	ParseUse = parseUse
	Gap      = gap
)

// Needs are the files that a file with this beginning needs.
func Needs(begin []byte, dirs ...string) []string {
	return (&executables{dirs: dirs}).needs(begin)
}

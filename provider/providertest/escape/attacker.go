package escape

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
)

// Name is the name under which the attacker is started in a sandbox.
const Name = "cove-attacker"

// hello is the attack that attacks nothing.
const hello = "hello"

// Main is the attacker: it makes the attack that its first argument names and
// prints one line with its verdict. It returns the exit code of the process,
// which is 0 when it could tell how the attack went.
func Main(args []string) int {
	if len(args) < 2 {
		say("this program attacks the sandbox it runs in; cove verify starts it")
		return 2
	}
	var m mission
	if err := json.Unmarshal([]byte(args[1]), &m); err != nil {
		say("mission: " + err.Error())
		return 2
	}
	attack, ok := attackers()[args[0]]
	if !ok {
		say("there is no attack " + args[0])
		return 2
	}
	v := attack(m)
	// Attacks on terminals may have left something on the line.
	_, _ = io.WriteString(os.Stdout, "\n") // nobody else listens
	if v.held {
		say(wordHeld + v.by)
	} else {
		say(wordBreach + v.detail)
	}
	return 0
}

// say prints one line.
func say(text string) {
	_, _ = io.WriteString(os.Stdout, strings.Map(func(r rune) rune { // nobody else listens
		if r < ' ' {
			return ' '
		}
		return r
	}, text)+"\n")
}

// tally collects what stopped the parts of an attack.
type tally struct {
	stops []stop
	got   string // the first thing that got through
}

// stop is one thing that stopped something.
type stop struct {
	by   string
	what []string
}

// stop notes who stopped what; what may be "".
func (t *tally) stop(by, what string) {
	i := slices.IndexFunc(t.stops, func(s stop) bool { return s.by == by })
	if i < 0 {
		i = len(t.stops)
		t.stops = append(t.stops, stop{by: by})
	}
	if s := &t.stops[i]; what != "" && !slices.Contains(s.what, what) {
		s.what = append(s.what, what)
	}
}

func (t *tally) through(what string) {
	if t.got == "" {
		t.got = what
	}
}

// verdict shows what stopped the attack, and a few examples of each.
func (t *tally) verdict() verdict {
	const shown = 4
	if t.got != "" {
		return breach(t.got)
	}
	if len(t.stops) == 0 {
		return heldBy("there is nothing to try it on")
	}
	var all []string
	for _, s := range t.stops {
		text := s.by
		if len(s.what) > shown {
			s.what = append(s.what[:shown:shown], "…")
		}
		if len(s.what) > 0 {
			text += " (" + strings.Join(s.what, ", ") + ")"
		}
		all = append(all, text)
	}
	return heldBy(strings.Join(all, "; "))
}

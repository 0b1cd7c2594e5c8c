package kernel

import (
	"embed"
	"fmt"
	"maps"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

//go:embed drivers
var drivers embed.FS

// language is how an interpreter is driven.
type language struct {
	name    string
	program string   // what must be in the sandbox, as people call it
	argv    []string // starts the interpreter so that it reads its driver's source and runs it
	// drivers are its programs, each of one or more files in drivers: the first is
	// run, and reads the others by the same rule.
	drivers [][]string
	env     map[string]string
	// passes: it passes an interrupt on to its group, may be ended by a second one that
	// comes while it leaves code, and is asked to be calm before it runs code after one.
	passes bool
	// fit reports code that the interpreter cannot be given; nil: it takes all.
	fit func(code string) error
	// suits reports an interpreter that is not good enough, by its version; nil: all are.
	suits func(version string) error
}

// languages are all there are, in the order they are told.
func languages() []language { return []language{python(), node(), typescript(), bash()} }

// source is what a driver's interpreter reads first: for each program of the driver
// eight digits of length and the text.
func (l *language) source() ([]byte, error) {
	var out []byte
	for _, files := range l.drivers {
		var text []byte
		for _, name := range files {
			part, err := drivers.ReadFile("drivers/" + name)
			if err != nil {
				return nil, cove.Wrap(cove.Internal, err, "the driver of %s is not part of this build", l.name)
			}
			text = append(text, part...)
		}
		out = append(fmt.Appendf(out, "%08d", len(text)), text...)
	}
	return out, nil
}

// command is the program of an interpreter.
func (l *language) command(spec cove.KernelSpec, x *exchange, in *talk.Inbox) cove.Command {
	env := map[string]string{}
	maps.Copy(env, l.env)
	maps.Copy(env, spec.Env)
	dir := spec.Dir
	if spec.Warm {
		dir = "/"
	}
	return cove.Command{Argv: l.argv, Dir: dir, Env: env, Stdin: in, Stdout: &x.out, Stderr: &x.err, Programs: spec.Programs, Keep: spec.Keep, Record: spec.Keep != ""}
}

// begin is the first request: who the driver is for, and what to have ready.
func begin(x *exchange, spec cove.KernelSpec) []byte {
	warm := ""
	if spec.Warm {
		warm = "warm"
	}
	return request(askBegin, 0, list(append([]string{string(x.marker), warm}, spec.Preload...)...))
}

// adopt is the request that makes a warm interpreter somebody's.
func adopt(dir string, env map[string]string) []byte {
	words := []string{dir}
	for k, v := range env {
		words = append(words, k, v)
	}
	return request(askAdopt, 0, list(words...))
}

// lend is the request that sets variables for the run that follows it.
func lend(env map[string]string) []byte {
	var words []string
	for k, v := range env {
		words = append(words, k, v)
	}
	return request(askEnv, 0, list(words...))
}

// reserved begins the names that drivers written in a shell use themselves.
const reserved = "__cove"

// takes reports code that the interpreter cannot be given.
func (l *language) takes(what cove.KernelRun) error {
	for name := range what.Env {
		if strings.HasPrefix(name, reserved) {
			return cove.InvalidField("env", "%.80q is a name that interpreters use themselves; choose one that does not begin with %s", name, reserved)
		}
	}
	if l.fit != nil {
		return l.fit(what.Code)
	}
	return nil
}

// names are the languages in words.
func names(all []language) []string {
	var out []string
	for _, l := range all {
		out = append(out, l.name)
	}
	return out
}

// unknown is the answer about a language that nobody drives.
func unknown(word string, all []language) error {
	return cove.InvalidField("language", "%.40q is unknown; use one of %s", word, strings.Join(names(all), ", "))
}

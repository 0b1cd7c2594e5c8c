package msbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Program is msb, for machines that outlive one call of it.
type Program struct {
	machines *Machines

	mu     sync.Mutex
	quirks ProgramQuirks
}

// ProgramQuirks are what msb does wrong.
type ProgramQuirks struct {
	Doctor      string // what doctor says on standard error, and fails
	Hang        bool   // nothing comes to an end
	CreateFails bool   // as where no machine can boot; a record is left
	Garbage     bool   // lists are no JSON
}

// NewProgram plays msb over machines.
func NewProgram(m *Machines) *Program { return &Program{machines: m} }

// Set changes what the program does wrong.
func (p *Program) Set(q ProgramQuirks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quirks = q
}

// Run is one call of msb. It returns the exit code.
func (p *Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p.mu.Lock()
	q := p.quirks
	p.mu.Unlock()
	if q.Hang {
		<-ctx.Done()
		return 1
	}
	fail := func(format string, a ...any) int {
		_, _ = fmt.Fprintf(stderr, "error: "+format+"\n", a...)
		return 1
	}
	words, options := split(args)
	if len(words) == 0 {
		return fail("no command")
	}
	switch words[0] {
	case "doctor":
		if q.Doctor != "" {
			_, _ = io.WriteString(stderr, q.Doctor)
			return 1
		}
		return 0
	case "create":
		return p.create(ctx, options, q, fail)
	case "ls":
		return p.list(stdout, q)
	}
	if len(words) < 2 {
		return fail("a name is missing")
	}
	name := words[1]
	if words[0] == "cp" && len(words) > 2 {
		name, _, _ = strings.Cut(words[2], ":")
	}
	m := p.machines.get(name)
	if _, quiet := options["-q"]; m == nil && quiet && words[0] == "rm" {
		return 1 // the original says nothing, either
	}
	if m == nil || m.failed && words[0] != "rm" {
		return fail("sandbox not found: %s", name)
	}
	switch words[0] {
	case "rm":
		if err := p.machines.Remove(context.WithoutCancel(ctx), name); err != nil {
			return fail("%s", err)
		}
		return 0
	case "metrics":
		_, _ = io.WriteString(stdout, `{"cpu_percent":19.3,"cpus":1,"memory_bytes":15720448,"memory_limit_bytes":268435456,"state":"running","uptime_secs":16.899}`)
		return 0
	case "exec":
		return p.exec(ctx, m, args, stdin, stdout, stderr, fail)
	case "cp":
		return p.copy(ctx, m, words, fail)
	}
	return fail("unrecognized subcommand '%s'", words[0])
}

// valued are the options that have a value.
var valued = map[string]bool{"-n": true, "-c": true, "-m": true, "-u": true, "--format": true, "--net": true, "--label": true}

// split tells words from options, up to "--".
func split(args []string) (words []string, options map[string]string) {
	options = map[string]string{}
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		switch {
		case valued[args[i]] && i+1 < len(args):
			options[args[i]] = args[i+1]
			i++
		case strings.HasPrefix(args[i], "-"):
			options[args[i]] = ""
		default:
			words = append(words, args[i])
		}
	}
	options["image"] = words[len(words)-1]
	return words, options
}

func (p *Program) create(ctx context.Context, options map[string]string, q ProgramQuirks, fail func(string, ...any) int) int {
	name := options["-n"]
	if p.machines.get(name) != nil {
		return fail("sandbox already exists: %s", name)
	}
	if q.CreateFails {
		p.machines.mu.Lock()
		p.machines.all[name] = &made{failed: true}
		p.machines.mu.Unlock()
		return fail("sandbox process exited before agent relay became available")
	}
	cpus, _ := strconv.Atoi(options["-c"])
	memory, _ := strconv.ParseInt(strings.TrimSuffix(options["-m"], "M"), 10, 64)
	size := Size{Image: options["image"], CPUs: cpus, Memory: cove.Bytes(memory) * cove.MiB, Network: options["--net"]}
	if _, none := options["--no-net"]; none {
		size.Network = "none"
	}
	if err := p.machines.create(ctx, name, size); err != nil {
		return fail("%s", err)
	}
	return 0
}

func (p *Program) list(stdout io.Writer, q ProgramQuirks) int {
	if q.Garbage {
		_, _ = io.WriteString(stdout, "NAME  STATUS\n")
		return 0
	}
	all := []map[string]any{}
	for _, name := range p.machines.Names() {
		status := "Running"
		if m := p.machines.get(name); m == nil || m.failed {
			status = "Stopped"
		}
		all = append(all, map[string]any{"created_at": "2026-01-01 00:00:00", "image": "image", "name": name, "status": status})
	}
	_ = json.NewEncoder(stdout).Encode(all)
	return 0
}

// exec runs what stands after "--". Standard input goes in only with --stream.
func (p *Program) exec(ctx context.Context, m *made, args []string, stdin io.Reader, stdout, stderr io.Writer, fail func(string, ...any) int) int {
	stream := false
	for i, a := range args {
		if a == "--stream" {
			stream = true
		}
		if a != "--" || i+1 >= len(args) {
			continue
		}
		if !stream {
			stdin = nil
		}
		code, err := m.exec(ctx, args[i+1:], stdin, stdout, stderr)
		if err != nil {
			return fail("%s", err)
		}
		return code
	}
	return fail("no command")
}

// copy takes a file of the host into a machine.
func (p *Program) copy(ctx context.Context, m *made, words []string, fail func(string, ...any) int) int {
	_, path, ok := strings.Cut(words[2], ":")
	f, err := os.Open(words[1])
	if err != nil || !ok {
		return fail("cannot copy %s", words[1])
	}
	defer func() { _ = f.Close() }()
	code, err := m.exec(ctx, []string{"sh", "-c", `cat > "$1"`, "sh", path}, f, io.Discard, io.Discard)
	if err != nil || code != 0 {
		return fail("cannot copy to %s", words[2])
	}
	return 0
}

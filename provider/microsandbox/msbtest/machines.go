package msbtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Machines are what a server or a program has made.
type Machines struct {
	provider cove.Provider
	spec     func(Size) cove.Spec

	mu  sync.Mutex
	all map[string]*made
}

type made struct {
	box    cove.Sandbox
	size   Size
	failed bool // of msb: what a create that failed leaves
}

// Size is what was asked for a machine.
type Size struct {
	Image   string
	CPUs    int
	Memory  cove.Bytes
	Network string // "" is the usual one
}

// NewMachines makes machines with a provider. spec says which sandbox a machine is.
func NewMachines(p cove.Provider, spec func(Size) cove.Spec) *Machines {
	return &Machines{provider: p, spec: spec, all: map[string]*made{}}
}

// Names returns the machines that there are, also broken ones.
func (m *Machines) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.all))
}

// Size returns what was asked for a machine.
func (m *Machines) Size(name string) Size {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[name]; one != nil {
		return one.size
	}
	return Size{}
}

// Remove ends a machine behind everybody's back.
func (m *Machines) Remove(ctx context.Context, name string) error {
	m.mu.Lock()
	one := m.all[name]
	delete(m.all, name)
	m.mu.Unlock()
	if one == nil || one.box == nil {
		return nil
	}
	return one.box.Destroy(ctx)
}

func (m *Machines) get(name string) *made {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[name]
}

func (m *Machines) create(ctx context.Context, name string, size Size) error {
	// The original makes the machine to its end, whether anybody waits or not.
	box, err := m.provider.Create(context.WithoutCancel(ctx), cove.NewID(), m.spec(size))
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[name] = &made{box: box, size: size}
	return nil
}

// exec runs a program to its end.
func (o *made) exec(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	p, err := o.box.Start(ctx, cove.Command{Argv: argv, Dir: "/", Stdin: stdin, Stdout: stdout, Stderr: stderr})
	if err != nil {
		return 0, err
	}
	r, err := p.Wait(ctx)
	if err != nil {
		_ = p.Kill(context.WithoutCancel(ctx))
	}
	return r.ExitCode, err
}

// collect is exec whose output is kept.
func (o *made) collect(ctx context.Context, argv []string) (code int, stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	code, err = o.exec(ctx, argv, nil, &out, &errs)
	return code, out.Bytes(), errs.Bytes(), err
}

package main

import (
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
)

// together runs two languages at once, each piece of code in a session of its own.
func (s show) together(ctx context.Context) error {
	tasks := []struct{ language, code string }{
		{"python", "print('task', 1)"},
		{"node", "console.log('task', 2)"},
		{"python", "import asyncio\nawait asyncio.sleep(0.01)\nprint('task', 3)"},
		{"node", "const n = await Promise.resolve(4); console.log('task', n)"},
	}
	said, errs := make([]string, len(tasks)), make([]error, len(tasks))
	var all sync.WaitGroup
	for i, t := range tasks {
		all.Go(func() {
			errs[i] = s.with(ctx, cove.Spec{}, func(session *cove.Session) error {
				r, err := s.code(ctx, session.ID, t.language, t.code)
				if err == nil {
					said[i] = string(r.Stdout.Data)
				}
				return err
			})
		})
	}
	all.Wait()
	for i, t := range tasks {
		if errs[i] != nil {
			return errs[i]
		}
		s.line("at once: %s said %q", t.language, said[i])
	}
	return nil
}

// resources shows what the platform has, and what uses it.
func (s show) resources(ctx context.Context) error {
	return s.with(ctx, cove.Spec{User: "ada", Thread: "stats", Flavor: "medium"}, func(session *cove.Session) error {
		if _, err := s.code(ctx, session.ID, "python", "data = bytearray(1 << 20)"); err != nil {
			return err
		}
		stats, err := s.Admin().Stats(ctx)
		if err != nil {
			return err
		}
		s.line("resources: %d session, %d of them medium, %s of memory, %g CPUs", stats.ActiveSessions, stats.SessionsByFlavor["medium"], stats.Memory, stats.CPUs)
		for one, err := range s.Sessions().List(ctx, cove.SessionFilter{}) {
			if err != nil {
				return err
			}
			s.line("%s of %s: %s, %s, %s", one.Spec.Thread, one.Spec.User, one.Spec.Template, one.Spec.Flavor, one.State)
		}
		usage, err := s.Sessions().Usage(ctx, session.ID)
		if err != nil {
			return err
		}
		s.line("it uses memory %v", usage.Memory > 0)
		return nil
	})
}

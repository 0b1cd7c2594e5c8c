package providertest

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/cove-sandbox/cove"
)

func concurrencyTests() []test {
	return []test{
		{"thirty_two_programs_at_once", manyPrograms},
		{"programs_while_files_are_used", programsAndFiles},
		{"destroy_while_programs_run", destroyWhileRunning},
		{"destroy_from_many_sides", destroyMany},
		{"many_waiters", manyWaiters},
	}
}

func manyPrograms(e *env) {
	s := e.sandbox()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			var out bytes.Buffer
			p, err := s.Start(e.ctx(), cove.Command{
				Argv: []string{"sh", "-c", `cat; echo "$1"; exit "$1"`, "sh", strconv.Itoa(i)}, Stdin: reader(fmt.Sprintf("in %d\n", i)), Stdout: &out,
			})
			if err != nil {
				e.Errorf("start: %v", err)
				return
			}
			r, err := p.Wait(e.ctx())
			if want := fmt.Sprintf("in %d\n%d\n", i, i); err != nil || r.ExitCode != i || out.String() != want {
				e.Errorf("program %d: %v, code %d, output %q", i, err, r.ExitCode, out.String())
			}
		})
	}
	wg.Wait()
}

func programsAndFiles(e *env) {
	s := e.sandbox()
	big := pattern(1 << 20)
	e.must(s.Files().Write(e.ctx(), "big", bytes.NewReader(big), 0o644), "write")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 5 {
				text, err := e.content(s, "big", 0, 0)
				if err != nil || text != string(big) {
					e.Errorf("read: %v, %d bytes", err, len(text))
				}
				name := fmt.Sprintf("w%d/%d", i, n)
				e.check(s.Files().Write(e.ctx(), name, reader(name), 0o644), "write")
			}
		})
		wg.Go(func() {
			for range 5 {
				p, err := s.Start(e.ctx(), shell("cat big > /dev/null; echo $$ >> log; ls > /dev/null"))
				if err != nil {
					e.Errorf("start: %v", err)
					return
				}
				if r, err := p.Wait(e.ctx()); err != nil || r.ExitCode != 0 {
					e.Errorf("wait: %v, %+v", err, r)
				}
			}
		})
	}
	wg.Wait()
	e.prints(s, "20\n", "wc -l < log | tr -d ' '")
}

func destroyWhileRunning(e *env) {
	s := e.sandbox()
	var running []*interactive
	for range 8 {
		p := e.interact(s, shell("echo up; cat; sleep 1000"))
		p.out.until("up")
		running = append(running, p)
	}
	e.must(s.Destroy(e.ctx()), "destroy")
	for _, p := range running {
		e.ended(e.wait(p), cove.Killed, 137, "KILL")
		e.wants(cove.NotFound, p.Signal(e.ctx(), "TERM"), "a signal after Destroy")
		e.check(p.Kill(e.ctx()), "kill after Destroy")
	}
	_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
	e.wants(cove.NotFound, err, "Start")
	_, err = s.Files().Stat(e.ctx(), ".")
	e.wants(cove.NotFound, err, "Stat")
}

func destroyMany(e *env) {
	s := e.sandbox()
	p := e.start(s, cove.Command{Argv: []string{"sleep", "1000"}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { e.check(s.Destroy(e.ctx()), "destroy") })
		wg.Go(func() {
			// Whatever it gives, it must not be a surprise.
			q, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
			if err != nil {
				e.wants(cove.NotFound, err, "Start during Destroy")
				return
			}
			_, err = q.Wait(e.ctx())
			e.check(err, "wait")
		})
	}
	wg.Wait()
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
}

func manyWaiters(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell("read x; exit 12"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r, err := p.Wait(e.ctx())
			if err != nil || r.ExitCode != 12 {
				e.Errorf("wait: %v, %+v", err, r)
			}
		})
	}
	p.send("go\n")
	wg.Wait()
}

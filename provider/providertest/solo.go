package providertest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// soloTests are cases about sandboxes for one program: those of their own, and
// those of other groups in which each program has a sandbox to itself.
func soloTests() []test {
	tests := []test{
		{"one_program_and_nothing_else", soloOnly},
		{"unclaimed_leaves_nothing", soloDiscarded},
		{"claimed_with_other_bounds_than_were_expected", soloOtherBounds},
		{"workdir_that_is_missing_is_invalid", soloWorkdir},
		{"what_the_program_left_ends_with_it", soloSurvivors},
		{"first_process_is_out_of_reach", soloFirst},
		{"destroy_ends_the_program", soloDestroyed},
	}
	for _, g := range []struct {
		tests []test
		names []string
	}{
		{execTests(), []string{
			"arguments_arrive_as_they_are", "ten_thousand_arguments", "an_argument_of_128_kib", "an_argument_of_2_mb_works_or_is_126", "exit_codes",
			"unknown_program_is_127", "variables_that_cannot_be_are_invalid", "command_without_a_name_is_invalid", "wait_gives_up_and_can_be_repeated",
			"programs_are_not_root", "result_has_numbers",
		}},
		{streamTests(), []string{
			"stdin_arrives", "no_stdin_is_empty", "large_stdin", "stdin_that_nobody_reads", "stdin_that_fails_ends", "stdin_piece_by_piece",
			"streams_are_apart", "order_within_a_stream", "nothing_is_lost_at_the_end", "output_that_nobody_wants",
			"writer_that_fails_ends_the_program", "writer_that_is_slow_loses_nothing",
			"output_limit", "output_limit_counts_both_streams", "output_at_the_limit_is_fine",
		}},
		{limitTests(), []string{"memory_ends_the_program", "memory_below_the_limit_is_fine"}},
		{signalTests(), nil},
		{timeoutTests(), nil},
	} {
		for _, c := range g.tests {
			if g.names == nil || slices.Contains(g.names, c.name) {
				tests = append(tests, test{c.name, func(e *env) {
					e.needsPower(cove.PowerSolo)
					e.p = soloing{e.p}
					c.run(e)
				}})
			}
		}
	}
	return tests
}

// soloing is a provider whose sandboxes give every program one of its own.
type soloing struct{ cove.Provider }

func (p soloing) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := p.Provider.Create(ctx, id, spec)
	return &soloists{box, p.Provider, spec}, err
}

type soloists struct {
	cove.Sandbox

	p    cove.Provider
	spec cove.Spec
}

func (s *soloists) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	box, err := claimSolo(ctx, s.p, s.spec)
	if err != nil {
		return nil, err
	}
	proc, err := box.Start(ctx, cmd)
	if err != nil {
		return nil, errors.Join(err, box.Destroy(context.WithoutCancel(ctx)))
	}
	return &soloist{proc, box}, nil
}

// soloist is a program whose sandbox ends with it.
type soloist struct {
	cove.Process

	box cove.Sandbox
}

func (p *soloist) Kill(ctx context.Context) error {
	return errors.Join(p.Process.Kill(ctx), p.box.Destroy(ctx))
}

func claimSolo(ctx context.Context, p cove.Provider, spec cove.Spec) (cove.Sandbox, error) {
	soloist, ok := cove.As[cove.Soloist](p)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "the provider is no Soloist")
	}
	spare, err := soloist.PrepareSolo(ctx, cove.Mold{Provider: p.Name(), Template: spec.Template, Workspace: spec.Workspace.Kind, Solo: true, Resources: spec.Resources})
	if err != nil {
		return nil, err
	}
	return spare.Claim(ctx, cove.NewID(), spec)
}

// solo is a sandbox for one program, which is destroyed with the case.
func (e *env) solo(changes ...func(*cove.Spec)) cove.Sandbox {
	e.Helper()
	e.needsPower(cove.PowerSolo)
	box, err := claimSolo(e.ctx(), e.p, e.spec(changes...))
	e.must(err, "claim")
	e.destroyLater(box)
	return box
}

func soloOnly(e *env) {
	s := e.solo(func(s *cove.Spec) { s.Env = map[string]string{"WHO": "solo"} })
	e.isolated(s, e.spec().Workspace.Kind)
	if !slices.Contains(e.ids(), s.ID()) {
		e.Errorf("List lacks the sandbox")
	}
	_, err := s.Files().Stat(e.ctx(), ".")
	e.wants(cove.Unsupported, err, "looking at files")
	e.wants(cove.Unsupported, s.Files().Write(e.ctx(), "x", reader(""), 0o644), "writing a file")
	for _, err := range s.Files().List(e.ctx(), ".", 1) {
		e.wants(cove.Unsupported, err, "listing files")
	}
	_, err = s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, TTY: &cove.WindowSize{Cols: 80, Rows: 24}})
	e.wants(cove.Unsupported, err, "a terminal")
	e.prints(s, "solo /workspace\n", `echo "$WHO $(pwd)"`)
	_, err = s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
	e.wants(cove.Unsupported, err, "a second program")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.must(s.Destroy(e.ctx()), "destroy again")
	_, err = s.Start(e.ctx(), cove.Command{Argv: []string{"true"}})
	e.wants(cove.NotFound, err, "starting after the end")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

func soloDiscarded(e *env) {
	e.needsPower(cove.PowerSolo)
	spare, err := as[cove.Soloist](e, e.p).PrepareSolo(e.ctx(), e.mold())
	e.must(err, "prepare")
	equal(e, len(e.ids()), 0, "the number of sandboxes while there is a spare")
	e.must(spare.Discard(e.ctx()), "discard")
	e.must(spare.Discard(e.ctx()), "discard again")
}

// soloOtherBounds: what was expected of the claim holds for nobody who asks for
// something else.
func soloOtherBounds(e *env) {
	e.needsPower(cove.PowerSolo)
	e.needsHard(cove.LimitPIDs)
	for _, most := range []int{0, 400} {
		m := e.mold()
		m.Solo, m.Resources = true, cove.Resources{PIDs: 8}
		spare, err := as[cove.Soloist](e, e.p).PrepareSolo(e.ctx(), m)
		e.must(err, "prepare")
		s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Resources.PIDs = most }))
		e.must(err, "claim")
		e.destroyLater(s)
		e.prints(s, "all\n", `i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all; kill -9 -1`)
	}
}

func soloWorkdir(e *env) {
	for _, dir := range []string{"missing", "/no/such/dir", "/etc/passwd"} {
		p, err := e.solo().Start(e.ctx(), cove.Command{Argv: []string{"true"}, Dir: dir})
		if err == nil {
			_, err = p.Wait(e.ctx())
		}
		e.wants(cove.Invalid, err, "starting in "+dir)
		if err != nil && !strings.Contains(err.Error(), dir) {
			e.Errorf("the error does not name %s: %v", dir, err)
		}
	}
	r := e.run(e.solo(), cove.Command{Argv: []string{"pwd"}, Dir: "/tmp/../tmp"})
	equal(e, r.stdout, "/tmp\n", "pwd")
}

// soloSurvivors: what holds the streams open does not hold up the end.
func soloSurvivors(e *env) {
	s := e.solo()
	r := e.sh(s, "(sleep 1000; echo late) & setsid sleep 1000 & echo first; exit 4")
	equal(e, r.stdout, "first\n", "the output")
	e.ended(r.Result, cove.Exited, 4, "")
	e.must(s.Destroy(e.ctx()), "destroy")
}

// soloFirst: programs have the user of the first process, and can do nothing to
// it or see anything of it.
func soloFirst(e *env) {
	e.needs("namespaces", e.caps.Isolation.Boundary == cove.BoundaryNamespaces)
	e.prints(e.solo(), "alive\n", `for f in mem maps environ fd/0 auxv stack; do
	cat /proc/1/$f >/dev/null 2>&1 && echo "read $f"; done
ls /proc/1/fd /proc/1/map_files >/dev/null 2>&1 && echo listed
readlink /proc/1/exe /proc/1/cwd /proc/1/root 2>/dev/null
for s in KILL STOP TERM INT HUP USR1 CHLD SEGV CONT; do kill -$s 1 2>/dev/null; done
echo alive`)
}

func soloDestroyed(e *env) {
	s := e.solo()
	p := e.interact(s, cove.Command{Argv: []string{"cat"}})
	p.send("up\n")
	p.out.until("up")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.ended(e.wait(p), cove.Killed, 137, "KILL")
	e.must(p.Kill(e.ctx()), "kill after the end")
}

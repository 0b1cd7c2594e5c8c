package providertest

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// templateTests are cases about each template that the provider has.
func templateTests() []test {
	return []test{
		{"every_one_runs_programs", eachTemplate(templateRuns)},
		{"nobody_can_change_one", eachTemplate(templateReadOnly)},
		{"the_workspace_is_the_sandboxs_own", eachTemplate(templateWorkspace)},
		{"spares_have_their_template", eachTemplate(templateSpare)},
		{"fork_keeps_the_template", eachTemplate(templateFork)},
		{"snapshot_of_one_starts_another", eachTemplate(templateSnapshot)},
		{"volumes_work", eachTemplate(templateVolume)},
		{"after_a_restart", eachTemplate(templateRestart)},
		{"resources_hold", eachTemplate(templateBound)},
	}
}

// eachTemplate runs a case for each of the provider's templates.
func eachTemplate(run func(e *env, template string)) func(*env) {
	return func(e *env) {
		for _, name := range slices.Clone(e.caps.Templates) {
			run(e, name)
		}
	}
}

func (e *env) of(template string, changes ...func(*cove.Spec)) cove.Sandbox {
	e.Helper()
	return e.sandbox(append(changes, func(s *cove.Spec) { s.Template = template })...)
}

func templateRuns(e *env, template string) {
	s := e.of(template, func(s *cove.Spec) { s.Env = map[string]string{"WHO": "me"} })
	e.prints(s, "me /workspace\n", `echo "$WHO $(pwd)"`)
	e.prints(s, "ok\n", `test -w "$HOME" && test -w /tmp && test -n "$PATH" && echo x > /dev/null && echo ok`)
}

// templateReadOnly tries to change what a template shows, and demands that another
// sandbox sees nothing of it.
func templateReadOnly(e *env, template string) {
	s := e.of(template)
	look := "ls / /etc /bin/; cat /etc/passwd; wc -c < /bin/sh"
	before := e.sh(s, look).stdout
	for _, script := range []string{
		"echo x > /bin/new", "echo x > /bin/sh", "echo x >> /bin/sh", "rm -f /bin/sh; test ! -e /bin/sh", "mv /bin/sh /bin/hs", "chmod 777 /bin/sh",
		"ln -s x /bin/link", "mkdir /bin/dir", "echo x > /etc/new", "echo x >> /etc/passwd", "rm /etc/passwd", "echo x > /new", "mkdir /dir", "touch /bin",
	} {
		if r := e.sh(s, script); r.ExitCode == 0 {
			e.Errorf("template %s: %s succeeds", template, script)
		}
	}
	for _, name := range []string{"/bin/new", "/etc/passwd", "/new"} {
		if err := s.Files().Write(e.ctx(), name, reader("x"), 0o755); err == nil {
			e.Errorf("template %s: Files.Write changes %s", template, name)
		}
	}
	if after := e.sh(e.of(template), look).stdout; after != before {
		e.Errorf("template %s shows, after somebody tried to change it,\n%s\nand before\n%s", template, clip(after), clip(before))
	}
}

func templateWorkspace(e *env, template string) {
	s := e.of(template)
	e.prints(s, "", "ls -A; ls -A /tmp")
	e.furnish(s)
	e.furnished(s)
	e.prints(e.of(template), "", "ls -A; ls -A /tmp")
}

func templateSpare(e *env, template string) {
	if !slices.Contains(e.caps.Powers, cove.PowerPrepare) {
		return
	}
	m := e.mold()
	m.Template = template
	preparer := as[cove.Preparer](e, e.p)
	spare, err := preparer.Prepare(e.ctx(), m)
	e.must(err, "prepare "+template)
	s, err := spare.Claim(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = template }))
	e.must(err, "claim "+template)
	e.destroyLater(s)
	e.prints(s, "up\n", "echo up")
	e.same(template, s)
	for _, other := range e.caps.Templates {
		if other == template {
			continue
		}
		spare, err := preparer.Prepare(e.ctx(), m)
		e.must(err, "prepare "+template)
		_, err = spare.Claim(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = other }))
		e.wants(cove.Invalid, err, "claiming a spare of "+template+" for "+other)
		return
	}
}

// same demands that a sandbox has the programs that others of a template have.
func (e *env) same(template string, s cove.Sandbox) {
	e.Helper()
	look := "ls /bin/ /etc; env | grep -v '^HOSTNAME=' | sort"
	want := e.sh(e.of(template), look)
	if got := e.sh(s, look); got.stdout != want.stdout || want.ExitCode != 0 {
		e.Errorf("a sandbox of template %s shows\n%s\nand another\n%s%s", template, clip(got.stdout), clip(want.stdout), clip(want.stderr))
	}
}

func templateFork(e *env, template string) {
	if !slices.Contains(e.caps.Powers, cove.PowerFork) {
		return
	}
	s := e.of(template)
	e.furnish(s)
	fork, err := as[cove.Forker](e, s).Fork(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = template }))
	e.must(err, "fork")
	e.destroyLater(fork)
	e.furnished(fork)
	e.same(template, fork)
}

// templateSnapshot starts a sandbox of each template from a snapshot of one: files
// of a workspace belong to no template.
func templateSnapshot(e *env, template string) {
	if !slices.Contains(e.caps.Powers, cove.PowerSnapshot) {
		return
	}
	s := e.of(template)
	e.furnish(s)
	name := cove.NewID()
	_, err := as[cove.Snapshotter](e, s).Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	for _, other := range e.caps.Templates {
		e.furnished(e.of(other, from(name)))
	}
}

func templateVolume(e *env, template string) {
	if !e.caps.Volumes {
		return
	}
	dir, _ := e.volume(true)
	s := e.of(template, func(s *cove.Spec) {
		s.Volumes = []cove.Volume{{Source: dir, Target: "/data", Write: true}, {Source: dir, Target: "/mnt/read"}}
	})
	e.prints(s, "from the hostmade\n", "cat /data/given; echo made > /data/made; cat /mnt/read/made")
	if r := e.sh(s, "echo x > /mnt/read/made"); r.ExitCode == 0 {
		e.Errorf("template %s: a read-only volume can be written to", template)
	}
	_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) {
		s.Template, s.Volumes = template, []cove.Volume{{Source: dir, Target: "/bin/sh"}}
	}))
	e.wants(cove.Invalid, err, "a volume over a program of template "+template)
}

func templateRestart(e *env, template string) {
	if !slices.Contains(e.caps.Powers, cove.PowerAttach) {
		return
	}
	s := e.of(template)
	e.furnish(s)
	look := "ls /bin/ /etc; env | grep -v '^HOSTNAME=' | sort"
	before := e.sh(s, look).stdout
	e.restart()
	again, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	e.furnished(again)
	equal(e, e.sh(again, look).stdout, before, "what a sandbox of template "+template+" shows after a restart")
	if slices.Contains(e.caps.Powers, cove.PowerFork) {
		fork, err := as[cove.Forker](e, again).Fork(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = template }))
		e.must(err, "fork")
		e.furnished(fork)
		e.check(fork.Destroy(e.ctx()), "destroy")
	}
	e.check(again.Destroy(e.ctx()), "destroy")
}

func templateBound(e *env, template string) {
	if e.caps.For(e.spec().Workspace.Kind).Of(cove.LimitDisk) != cove.Hard {
		return
	}
	s := e.of(template, func(s *cove.Spec) { s.Workspace.Size = smallWorkspace })
	r := e.sh(s, "dd if=/dev/zero of=big bs=4096 count=1024")
	if r.ExitCode == 0 || !strings.Contains(r.stderr, "No space left") {
		e.Errorf("template %s: writing 4 MiB ends with code %d and says %q", template, r.ExitCode, r.stderr)
	}
}

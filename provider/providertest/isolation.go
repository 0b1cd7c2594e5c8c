package providertest

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

func isolationTests() []test {
	return []test{
		{"files_of_another_sandbox", otherFiles},
		{"environment_of_another_sandbox", otherEnvironment},
		{"processes_of_another_sandbox", otherProcesses},
		{"hosts_files", hostFiles},
	}
}

func otherFiles(e *env) {
	a, b := e.sandbox(), e.sandbox()
	for _, dir := range []string{"/workspace", "/tmp"} {
		e.write(a, dir+"/mine", "of a")
		_, err := b.Files().Stat(e.ctx(), dir+"/mine")
		e.wants(cove.NotFound, err, "a file of another sandbox in "+dir)
		e.prints(b, "missing\n", `test -e "$1/mine" || echo missing`, dir)
		e.write(b, dir+"/mine", "of b")
		equal(e, e.read(a, dir+"/mine"), "of a", "the file in "+dir)
	}
	e.must(b.Destroy(e.ctx()), "destroy")
	equal(e, e.read(a, "mine"), "of a", "the file after the other sandbox is gone")
}

func otherEnvironment(e *env) {
	a := e.sandbox(func(s *cove.Spec) { s.Env = map[string]string{"MINE": "secret-of-a"} })
	b := e.sandbox()
	e.prints(a, "secret-of-a\n", `echo "$MINE"`)
	if r := e.sh(b, "env"); strings.Contains(r.stdout, "secret-of-a") {
		e.Errorf("the environment of another sandbox is visible")
	}
}

func otherProcesses(e *env) {
	a, b := e.sandbox(), e.sandbox()
	p := e.interact(a, shell("echo $$; while read line; do echo \"got $line\"; done"))
	pid := p.out.line()
	// Only that one number: where there is no isolation, every other one is a
	// process of the host. By chance it may be one of this sandbox's own, such as its
	// agent, which is seen to run something else.
	e.sh(b, `[ "$1" = $$ ] || { [ -e "/proc/$1" ] && ! grep -q "while read line" "/proc/$1/cmdline"; } || kill -KILL "$1"`, pid)
	p.send("still here\n")
	p.out.until("got still here\n")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
}

func hostFiles(e *env) {
	s := e.sandbox()
	secret := e.secret()
	e.hidden(s, secret)
	if r := e.sh(s, `ls "$1"`, e.TempDir()); r.ExitCode == 0 {
		e.Errorf("a directory of the host is visible: %q", r.stdout)
	}
}

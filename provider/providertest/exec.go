package providertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

func execTests() []test {
	return []test{
		{"arguments_arrive_as_they_are", argumentsArrive},
		{"ten_thousand_arguments", manyArguments},
		{"an_argument_of_128_kib", longArgument},
		{"an_argument_of_2_mb_works_or_is_126", hugeArgument},
		{"exit_codes", exitCodes},
		{"unknown_program_is_127", unknownProgram},
		{"file_without_permission_is_126", notExecutable},
		{"script_with_permission_runs", scriptRuns},
		{"workdir", workdir},
		{"workdir_that_is_missing_is_invalid", workdirMissing},
		{"variables_that_cannot_be_are_invalid", badVariables},
		{"command_without_a_name_is_invalid", emptyCommand},
		{"canceled_start_runs_nothing", canceledStart},
		{"wait_gives_up_and_can_be_repeated", waitAgain},
		{"shell_works_as_usual", shellWorks},
		{"programs_are_not_root", notRoot},
		{"result_has_numbers", resultNumbers},
	}
}

func argumentsArrive(e *env) {
	s := e.sandbox()
	args := []string{"a b", "c\nd\n", "", "ü…\U0001F600", "*", "$HOME", `"'\`, "-n", "--", "\x01\x7f\xff"}
	r := e.argv(s, append([]string{"printf", "%s|"}, args...)...)
	equal(e, r.stdout, strings.Join(args, "|")+"|", "what printf got")
	e.prints(s, "3 [one] [two  words] []\n", `echo "$# [$1] [$2] [$3]"`, "one", "two  words", "")
}

func manyArguments(e *env) {
	s := e.sandbox()
	args := make([]string, 10000)
	for i := range args {
		args[i] = strconv.Itoa(i)
	}
	e.prints(s, "10000 9999\n", `n=$#; shift 9999; echo $n $1`, args...)
}

func longArgument(e *env) {
	s := e.sandbox()
	long := strings.Repeat("x", 128<<10-1) // Linux counts the final NUL
	equal(e, e.argv(s, "printf", "%s", long).stdout, long, "an argument of 128 KiB")
}

func hugeArgument(e *env) {
	s := e.sandbox()
	huge := strings.Repeat("x", 2<<20)
	r := e.argv(s, "printf", "%s", huge)
	if r.ExitCode == 0 {
		equal(e, len(r.stdout), len(huge), "the length of what printf got")
		return
	}
	e.ended(r.Result, cove.Exited, 126, "")
	if !strings.Contains(r.stderr, "printf") || !strings.Contains(r.stderr, "too long") || len(r.stderr) > 1<<10 {
		e.Errorf("stderr does not say that printf's arguments are too long: %.200q", r.stderr)
	}
	e.prints(s, "fine\n", "echo fine")
}

func exitCodes(e *env) {
	s := e.sandbox()
	for _, code := range []int{0, 1, 2, 42, 126, 127, 128, 130, 255} {
		r := e.sh(s, "exit "+strconv.Itoa(code))
		e.ended(r.Result, cove.Exited, code, "")
	}
	e.ended(e.argv(s, "true").Result, cove.Exited, 0, "")
	e.ended(e.argv(s, "false").Result, cove.Exited, 1, "")
}

func unknownProgram(e *env) {
	s := e.sandbox()
	for _, name := range []string{"no-such-program", "/no/such/program", "./no-such-program"} {
		r := e.argv(s, name, "arg")
		e.ended(r.Result, cove.Exited, 127, "")
		if !strings.Contains(r.stderr, name) {
			e.Errorf("stderr does not name %s: %q", name, r.stderr)
		}
	}
	if r := e.sh(s, "no-such-program; exit $?"); r.ExitCode != 127 || !strings.Contains(r.stderr, "no-such-program") {
		e.Errorf("in a shell: code %d, stderr %q", r.ExitCode, r.stderr)
	}
}

func notExecutable(e *env) {
	s := e.sandbox()
	e.write(s, "plain.txt", "#!/bin/sh\necho ran\n")
	for _, name := range []string{"/workspace/plain.txt", "./plain.txt", "/workspace"} {
		r := e.argv(s, name)
		e.ended(r.Result, cove.Exited, 126, "")
		if !strings.Contains(r.stderr, name) {
			e.Errorf("stderr does not name %s: %q", name, r.stderr)
		}
	}
}

func scriptRuns(e *env) {
	s := e.sandbox()
	e.must(s.Files().Write(e.ctx(), "bin/tool", reader("#!/bin/sh\necho \"tool $1\"; exit 3\n"), 0o755), "write")
	r := e.argv(s, "bin/tool", "with args")
	equal(e, r.stdout, "tool with args\n", "the output of the script")
	e.ended(r.Result, cove.Exited, 3, "")
	r = e.run(s, cove.Command{Argv: []string{"tool", "found"}, Env: map[string]string{"PATH": "/workspace/bin:/usr/bin:/bin"}})
	equal(e, r.stdout, "tool found\n", "the output of the script by PATH")
}

func workdir(e *env) {
	s := e.sandbox()
	e.must(s.Files().Mkdir(e.ctx(), "sub/deep dir"), "mkdir")
	for dir, want := range map[string]string{
		"": "/workspace", "/workspace": "/workspace", "sub": "/workspace/sub", "sub/deep dir": "/workspace/sub/deep dir", "/tmp": "/tmp", "sub/..": "/workspace",
	} {
		r := e.run(s, cove.Command{Argv: []string{"pwd"}, Dir: dir})
		equal(e, r.stdout, want+"\n", fmt.Sprintf("pwd in %q", dir))
	}
}

func workdirMissing(e *env) {
	s := e.sandbox()
	e.write(s, "file", "")
	for _, dir := range []string{"missing", "/no/such/dir", "file"} {
		_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Dir: dir})
		e.wants(cove.Invalid, err, "starting in "+dir)
		if err != nil && !strings.Contains(err.Error(), dir) {
			e.Errorf("the error does not name %s: %v", dir, err)
		}
	}
	_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Dir: "a\x00b"})
	e.wants(cove.Invalid, err, "starting in a directory with a NUL")
}

func badVariables(e *env) {
	s := e.sandbox()
	for name, value := range map[string]string{"": "x", "A=B": "x", "A\x00": "x", "A": "x\x00"} {
		_, err := s.Start(e.ctx(), cove.Command{Argv: []string{"true"}, Env: map[string]string{name: value}})
		e.wants(cove.Invalid, err, fmt.Sprintf("starting with %q=%q", name, value))
	}
	r := e.run(s, cove.Command{Argv: []string{"sh", "-c", `echo "$_0dd"`}, Env: map[string]string{"_0dd": "a=b  'c'"}})
	equal(e, r.stdout, "a=b  'c'\n", "an odd variable")
}

func emptyCommand(e *env) {
	s := e.sandbox()
	for _, argv := range [][]string{nil, {}, {""}, {"echo", "a\x00b"}} {
		_, err := s.Start(e.ctx(), cove.Command{Argv: argv})
		e.wants(cove.Invalid, err, fmt.Sprintf("starting %q", argv))
	}
}

func canceledStart(e *env) {
	s := e.sandbox()
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	_, err := s.Start(ctx, shell("echo x > ran"))
	e.wants(cove.Canceled, err, "starting with a context that has ended")
	_, err = s.Files().Stat(e.ctx(), "ran")
	e.wants(cove.NotFound, err, "the file of a program that was not started")
}

func waitAgain(e *env) {
	s := e.sandbox()
	p := e.interact(s, shell("read line; exit 7"))
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	if _, err := p.Wait(ctx); cove.CodeOf(err) != cove.Canceled {
		e.Errorf("waiting with a context that has ended gives %v", err)
	}
	p.send("go\n")
	first := e.wait(p)
	e.ended(first, cove.Exited, 7, "")
	equal(e, e.wait(p), first, "the second answer")
	ctx, cancel = context.WithCancel(e.ctx())
	defer cancel()
	r, err := p.Wait(ctx)
	e.must(err, "wait")
	equal(e, r, first, "the third answer")
}

func shellWorks(e *env) {
	s := e.sandbox()
	e.prints(s, "3\n", "printf 'b\\na\\nc\\n' | sort | wc -l | tr -d ' '")
	e.prints(s, "a\nb\n", "printf 'b\\na\\nb\\n' | sort | uniq")
	e.prints(s, "2\n", "printf 'x1\\ny2\\n' | grep y | cut -c 2")
	e.prints(s, "6\n", "n=0; for i in 1 2 3; do n=$((n + i)); done; echo $n")
	e.prints(s, "yes\n", "f() { return \"$1\"; }; if f 0 && ! f 1; then echo yes; fi")
	e.prints(s, "from here\n", "cat <<END\nfrom here\nEND")
	e.prints(s, "one two\n", "set -- one two; echo \"$(echo \"$@\")\"")
	e.prints(s, "a.txt b.txt\n", "touch b.txt a.txt; echo *.txt")
	e.prints(s, "3\n", "(exit 3); echo $?")
}

func notRoot(e *env) {
	s := e.sandbox()
	if r := e.sh(s, "id -u"); strings.TrimSpace(r.stdout) == "0" || r.ExitCode != 0 {
		e.Errorf("id -u prints %q with code %d; want a number above 0", r.stdout, r.ExitCode)
	}
}

func resultNumbers(e *env) {
	s := e.sandbox()
	r := e.sh(s, "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done")
	if r.Wall <= 0 || r.CPU < 0 || r.PeakMemory < 0 {
		e.Errorf("the numbers of the result make no sense: %+v", r.Result)
	}
}

package fake_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// Each program behaves as coreutils' does, as far as it goes.
func TestPrograms(t *testing.T) {
	s := sandbox(t, cove.Spec{Resources: cove.Resources{CPUs: 1.5}})
	for _, tc := range []struct {
		line, out string
		code      int
	}{
		{`printf 'b\na\nc\na\n' > f; sort f; sort -r f | head -n 1; sort -u f | wc -l; printf '10\n9\n' | sort -n`, "a\na\nb\nc\nc\n3\n9\n10\n", 0},
		{`printf 'a\na\nb\n' | uniq; printf 'a\na\nb\n' | uniq -c; uniq < /dev/null`, "a\nb\n      2 a\n      1 b\n", 0},
		{`printf 'one\ntwo\nthree\n' > f; grep t f; grep -v t f; grep -c o f; grep -n two f; grep -i TWO f; grep -F . f`, "two\nthree\none\n2\n2:two\ntwo\n", 1},
		{`echo abc > f; echo xbz > g; grep b f g; grep -o 'b.' f; grep -q a f && echo q; grep -e b f; grep`, "f:abc\ng:xbz\nbc\nq\nabc\n", 2},
		{`grep x nofile; echo $?; grep '(' /dev/null; echo $?`, "2\n2\n", 0},
		{`echo hello | tr a-y b-z; echo hello | tr -d l; echo 'a b' | tr ' ' '\n'; tr x; tr`, "ifmmp\nheo\na\nb\n", 1},
		{`printf 'a:b:c\nnone\n' | cut -d : -f 1,3; echo abcdef | cut -c 2-3,5-; printf 'a\tb\n' | cut -f 2; cut; cut -f 0`, "a:c\nnone\nbcef\nb\n", 1},
		{`seq 3; seq 2 4; seq 1 2 5; seq 3 -1 1; seq x; seq 1 0 2`, "1\n2\n3\n2\n3\n4\n1\n3\n5\n3\n2\n1\n", 1},
		{`seq 20 > f; head -n 2 f; head -c 3 f; tail -n 2 f; tail -n +19 f; tail -c 3 f; head -n 0 f; head -q f`, "1\n2\n1\n219\n20\n19\n20\n20\n", 1},
		{`head -n x; tail -n x; tail -z; head nofile`, "", 1},
		{`printf 'a b\nc\n' > f; wc f; wc -l < f; wc -w f; wc -c < f; wc -x`, "2 3 6 f\n2\n3 f\n6\n", 1},
		{`echo x | tee a b; cat a b; echo y | tee -a a > /dev/null; cat a; echo z | tee /nowhere/f; tee -x`, "x\nx\nx\nx\ny\nz\n", 1},
		{`cat nofile; echo $?; cat /dev/null -; cat -x; cat .`, "1\n", 1},
		{`mkdir a; mkdir a; echo $?; mkdir -p a/b/c b; rmdir a/b/c; ls a/b; rmdir a; echo $?; rmdir nodir; touch f; rmdir f; mkdir; mkdir -x`, "1\n1\n", 1},
		{`touch f g; rm f nofile; echo $?; rm -f nofile g; rm -f; mkdir d; rm d; echo $?; rm -r d; ls; rm; rm -x`, "1\n1\n", 1},
		{`echo 1 > a; mkdir d; mv a d; cat d/a; mv d/a b; mv b c; cat c; mv nofile x; echo $?; mv c /dev; mv`, "1\n1\n1\n", 1},
		{`echo 1 > a; cp a b; cat b; mkdir d; cp a d; cat d/a; cp d e; echo $?; cp -r d e; cat e/a; cp -r d d/in; echo $?; cp nofile x; cp`, "1\n1\n1\n1\n1\n", 1},
		{`echo x > /tmp/t; mv /tmp/t .; cat t; mv t /tmp/u; cat /tmp/u; ls; rm /tmp/u`, "x\nx\n", 0},
		{`echo x > f; ln f g; echo y >> f; cat g; ln -s f l; readlink l; readlink f; echo $?; readlink -f l; ln -sf g l; readlink l; ln -s f l; ln nofile h; ln x`, "x\ny\nf\n1\n/workspace/f\ng\n", 1},
		{`mkdir d; ln -s x d; readlink d/x; readlink /bin/sh; readlink -x; readlink nofile/x`, "x\n", 1},
		{`echo 123 > f; chmod 600 f; stat -c '%a %s %F %n %U %u' f; chmod +x f; stat -c %a f; chmod a-w f; stat -c %a f; chmod bad f; echo $?; chmod 600 nofile; chmod`, "600 4 regular file f sandbox 1000\n711\n511\n1\n", 1},
		{`mkdir d; ln -s d l; stat -c %F d l /dev/null; stat -L -c %F l; stat nofile; stat d | head -n 1; stat -x`, "directory\nsymbolic link\ncharacter special file\ndirectory\n  File: d\n", 1},
		{`touch b a .h; ls; ls -a; mkdir d; touch d/x; ls d; ls b; ls -l b | cut -c 1-10; ls nofile; ls -z`, "a\nb\n.h\na\nb\nx\nb\n-rw-r--r--\n", 1},
		{`ls / /dev | grep -c .; ls /bin; touch -c old; touch /bin/x; touch -x`, "17\n", 1},
		{`dd if=/dev/zero of=f bs=1k count=3 2>/dev/null; wc -c < f; printf ab | dd of=f conv=notrunc 2>/dev/null; wc -c < f; dd if=f bs=1 count=2 2>/dev/null; echo`, "3072\n3072\nab\n", 0},
		{`dd bad; dd bs=x; dd bs=0; dd count=x; dd if=nofile; dd of=/nowhere/x; dd if=/dev/zero of=/dev/full count=1`, "", 1},
		{`basename /a/b.txt; basename /a/b.txt .txt; basename .txt .txt; dirname /a/b; basename; dirname`, "b.txt\nb\n.txt\n/a\n", 1},
		{`whoami; id -u; id -un; id; nproc; uname; uname -n > /dev/null; uname -a > /dev/null; id -x; uname -x`, "sandbox\n1000\nsandbox\nuid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)\n2\nLinux\n", 1},
		{`test "$(hostname)" = "$HOSTNAME" && date +%Y-%m | grep -c '^20[0-9][0-9]-' && date | grep -c UTC && date -u +%s > /dev/null`, "1\n1\n", 0},
		{`sleep 0; sleep 0.01s 0m; sleep x; sleep; sleep -1; sleep 0h`, "", 0},
		{`tty; stty size; echo $?; stty`, "not a tty\n1\n", 1},
		{`hog 1m; hog 1k 0; hog x; hog`, "", 1},
		{`printenv HOME; printenv NOPE; echo $?; printenv | grep -c '^PATH='; env -i; env A=1 nothing-here; echo $?`, "/home/sandbox\n1\n1\n127\n", 0},
		{`nohup; setsid; setsid -w true; echo $?`, "0\n", 0},
		{`echo x > /dev/full; echo $?; printf x > /dev/full; cat /dev/zero | head -c 2 | wc -c; head -c 8 /dev/urandom | wc -c; echo e > /dev/stderr; echo o > /dev/stdout; echo i | cat /dev/stdin; cat /dev/tty`, "1\n2\n8\no\ni\n", 1},
		{`printf; echo $?; printf %q x; echo $?; pwd; true; false`, "2\n1\n/workspace\n", 1},
		{`test; echo $?; test a = a -a b = b; echo $?; test a = b -o b = b; echo $?; test ! a; echo $?; test \( a \) ; echo $?`, "1\n0\n0\n1\n0\n", 0},
		{`test 1 -lt 2 && test 2 -le 2 && test 3 -gt 2 && test 3 -ge 3 && test 1 -ne 2 && test a '<' b && test b '>' a && test a != b; echo $?`, "0\n", 0},
		{`[ 1 -eq x ]; echo $?; [ a; echo $?; [ a b c ]; echo $?; [ ! ]; echo $?; [ \( a ]; echo $?; [ -n "" ]; echo $?; [ -z "" ]; echo $?`, "2\n2\n2\n0\n2\n1\n0\n", 0},
		{`echo x > f; mkdir d; ln -s f l; [ -e f -a -f f -a -s f -a -r f -a -w f -a -d d -a -x d -a -L l -a -h l -a -c /dev/null -a -w /dev/null ] && [ ! -x f -a ! -d f -a ! -e no -a ! -w /bin -a ! -p f -a ! -t 0 -a ! -e "" ]; echo $?`, "0\n", 0},
		{`[[ -f nofile ]]; echo $?; [[ 1 -eq x ]]; echo $?; [[ a < b ]] && echo lt; [[ x =~ ( ]]; echo $?; [[ "a b" == "a b" ]] && [[ a != b* ]] && echo eq`, "", 2},
		{`serve; serve x; nc x; nc -l; nc -l -p x; serve 99999`, "", 1},
	} {
		t.Run("", func(t *testing.T) {
			r := sh(t, s, "cd /workspace && rm -rf * .h;"+tc.line)
			if r.stdout != tc.out || r.ExitCode != tc.code {
				t.Errorf("%s\n gave %q (%d)\nwant %q (%d)\nstderr %s", tc.line, r.stdout, r.ExitCode, tc.out, tc.code, r.stderr)
			}
		})
	}
}

func TestHostileScripts(t *testing.T) {
	tier.Full(t, "TestConformance runs the suite; the shell of the fake is not a boundary")
	for name, tc := range map[string]struct {
		line    string
		outcome cove.Outcome
	}{
		"brace bomb":         {`echo {1..999999999}`, cove.Exited},
		"variable bomb":      {`x=0123456789abcdef; while :; do x=$x$x; done`, cove.OutOfMemory},
		"substitution bomb":  {`x=$(cat /dev/zero | tr '\0' x)`, cove.OutOfMemory},
		"here-document bomb": {`x=0123456789abcdef; while :; do x=$x$x; cat > /dev/null <<< "$x"; done`, cove.OutOfMemory},
		"endless line":       {`cat /dev/zero | sort`, cove.OutOfMemory},
		"hog":                {`hog 1g`, cove.OutOfMemory},
		"greatest hog":       {`hog 8388607t`, cove.OutOfMemory},
		"many children":      {`i=0; while [ $i -lt 1500 ]; do true & i=$((i+1)); [ $((i % 30)) = 0 ] && wait; done`, cove.Exited},
		"fork bomb":          {`f() { f | f & }; f; sleep 0.2`, cove.Exited},
		"deep nesting":       {strings.Repeat("(", 100000), cove.Exited},
		"deep functions":     {`f() { eval f; }; f`, cove.Exited},
		"deep shells":        {`export N=0; echo 'N=$((N+1)); [ $N -lt 500 ] && exec sh self' > self; sh self`, cove.Exited},
	} {
		t.Run(name, func(t *testing.T) {
			s := sandbox(t, cove.Spec{Resources: cove.Resources{Memory: 16 * cove.MiB, PIDs: 64}})
			if r := sh(t, s, tc.line); r.Outcome != tc.outcome {
				t.Errorf("it ended as %s with %d; want %s\n%.300s", r.Outcome, r.ExitCode, tc.outcome, r.stderr)
			}
			s = sandbox(t, cove.Spec{Resources: cove.Resources{Memory: 16 * cove.MiB, PIDs: 64}})
			p := run(t, s, cove.Command{Argv: []string{"sh"}, Stdin: strings.NewReader(tc.line + "\n")})
			if tc.outcome != cove.Exited && p.Outcome != tc.outcome {
				t.Errorf("on standard input it ended as %s; want %s", p.Outcome, tc.outcome)
			}
		})
	}
}

func TestSpinningIsNoMemory(t *testing.T) {
	s := sandbox(t, cove.Spec{Resources: cove.Resources{Memory: 4 * cove.MiB}})
	r := sh(t, s, `i=0; while [ $i -lt 30000 ]; do i=$((i+1)); x=$i; done; echo $x`)
	if r.stdout != "30000\n" || r.PeakMemory > cove.MiB {
		t.Errorf("a loop ended as %s, wrote %q and took %d bytes", r.Outcome, r.stdout, r.PeakMemory)
	}
}

package policy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

var chunkRe = regexp.MustCompile(`[A-Za-z0-9_]+|\s+|\$\(\(|\)\)|\$\(|\$\{|<<-?|&&|\|\||\[\[|\]\]|.`)

var dict = []string{"$(zz9)", "`zz9`", "; zz9 ;", "zz9", "\nzz9\n", "'", "\"", "\\", "`", "$", "$(", "${", "}", "{", "(", ")", "((", "))", "<<EOF\n", "\nEOF\n", "<<'E'\n", "\nE\n", "#", "\n", "&", "|", ";", "$'", "$\"", "<(", ">(", "[[", "]]", "[", "]", "!", "\\\n", "${x:-", "${x/", "'$(zz9)'", "\"$(zz9)\"", "\\$(zz9)", "a[$(zz9)]", "x='a[$(zz9)]'; ", "$((", "x", "=", "case x in", "esac", ";;", "in", "do", "done", "if", "then", "fi", "for x in ", "function ", "f() ", "time ", "coproc ", "~", "*", "?", ",", "..", "@", "%", "+", "-", "^", "<<<", "<", ">", "2>&1", "&>", "|&", "\t", " ", "# zz9", "\\'", "\\\"", "\\`", "EOF", "-v", "-eq", "=~", "==", "read ", "printf -v ", "declare ", "-A ", "-i ", "local ", "export ", "let ", "set -- ", "\"$x\"", "$x", "${x}", "${!x}", "${x@P}", "$1", "\"$@\"", "${x[$(zz9)]}", "${x:$x}", "x[$x]=1", "((x++))", "[ $x ]", "unset ", "IFS=", "{zz9,x}", "$((x))", "-exec", "--compress-program=zz9", "x=-exec; ", "x=--compress-program=zz9; ", "x='-e1ezz9'; ", "s/a/b/e", "-e ", "-f ", "system(1)", "| getline", "x=; ", "x=-; ", "x=5; ", "x=\"a -delete\"; ", "\"${x#a}\"", "-delete", "\"$x\"", " -- ", "-k", "-t\"$x\"", "for x in *; do ", "{} \\;", "e zz9", "import os", "-c ", "find ", "sort ", "sed ", "awk ", "python3 "}

func mutate(r *rand.Rand, pool []string) string {
	s := pool[r.IntN(len(pool))]
	chunks := chunkRe.FindAllString(s, -1)
	if len(chunks) > 60 {
		chunks = chunks[:60]
	}
	n := 1 + r.IntN(4)
	for range n {
		if len(chunks) == 0 {
			chunks = []string{"ls"}
		}
		i := r.IntN(len(chunks))
		switch r.IntN(6) {
		case 0:
			chunks[i] = dict[r.IntN(len(dict))]
		case 1, 2:
			chunks = append(chunks[:i:i], append([]string{dict[r.IntN(len(dict))]}, chunks[i:]...)...)
		case 3:
			chunks = append(chunks[:i:i], chunks[i+1:]...)
		case 4:
			o := chunkRe.FindAllString(pool[r.IntN(len(pool))], -1)
			a := r.IntN(len(o))
			b := a + 1 + r.IntN(min(len(o)-a, 12))
			chunks = append(chunks[:i:i], append(append([]string{}, o[a:b]...), chunks[i:]...)...)
		case 5:
			k := r.IntN(len(chunks))
			chunks[i], chunks[k] = chunks[k], chunks[i]
		}
	}
	return strings.Join(chunks, "")
}

func TestZZDiff(t *testing.T) {
	secs, _ := strconv.Atoi(os.Getenv("ZZ"))
	if secs == 0 {
		t.Skip()
	}
	p := agentBash(t)
	var pool []string
	pool = append(pool, honest...)
	pool = append(pool, honest...)
	for _, e := range evasions {
		if len(e.line) < 500 {
			pool = append(pool, e.line, strings.ReplaceAll(e.line, "rm", "zz9"))
		}
	}
	base, _ := os.MkdirTemp("/tmp", "zzdiff")
	os.Chmod(base, 0o777)
	bin := filepath.Join(base, "bin")
	os.Mkdir(bin, 0o755)
	for _, n := range policy.AgentBash().Allow {
		os.WriteFile(filepath.Join(bin, n), []byte("#!/bin/sh\n{ printf '%s\\037' \"${0##*/}\" \"$@\"; printf '\\036'; } >> \"$ZZLOG\"\nexit 0\n"), 0o755)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(time.Duration(secs) * time.Second)
	tried, ran := 0, 0
	for w := range 2 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(w)))
			dir := filepath.Join(base, fmt.Sprint("d", w))
			log := filepath.Join(base, fmt.Sprint("log", w))
			rc := filepath.Join(base, fmt.Sprint("rc", w))
			os.WriteFile(rc, []byte("command_not_found_handle() { builtin echo \"$1\" >> "+log+"; return 127; }\n"), 0o644)
			for time.Now().Before(end) {
				line := mutate(r, pool)
				mu.Lock()
				tried++
				mu.Unlock()
				e, _ := p.Explain("agent-bash", cove.ExecRequest{Line: line})
				if e.Decision.Effect != cove.Allow || strings.Contains(line, "/bin/") {
					continue
				}
				mu.Lock()
				ran++
				mu.Unlock()
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o777)
				os.Chmod(dir, 0o777)
				os.Remove(log)
				os.Remove(log + "a")
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				c := exec.CommandContext(ctx, "/usr/bin/prlimit", "--nproc=400", "--fsize=100000", "--cpu=2", "--as=300000000", "/bin/bash", "-c", line)
				c.Dir = dir
				c.Env = []string{"PATH=" + bin, "BASH_ENV=" + rc, "HOME=" + dir, "ZZLOG=" + log + "a"}
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Setpgid: true}
				c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
				c.WaitDelay = 100 * time.Millisecond
				out, _ := c.CombinedOutput()
				cancel()
				if b, err := os.ReadFile(log + "a"); err == nil {
					for rec := range strings.SplitSeq(string(b), "\x1e") {
						argv := strings.Split(strings.TrimSuffix(rec, "\x1f"), "\x1f")
						if rec == "" || strings.HasPrefix(argv[0], "python") && (len(argv) == 1 || argv[1] == "-") {
							continue
						}
						if e, _ := p.Explain("agent-bash", cove.ExecRequest{Argv: argv}); e.Decision.Effect != cove.Allow {
							mu.Lock()
							fmt.Printf("ARGV %q\n   started %q\n   %+v\n", line, argv, *e.Decision.Refusal)
							mu.Unlock()
						}
					}
				}
				if b, err := os.ReadFile(log); err == nil {
					mu.Lock()
					fmt.Printf("ESCAPE %q\n   started %q\n   %q\n", line, b, out[:min(len(out), 200)])
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("tried", tried, "ran", ran)
	os.RemoveAll(base)
}

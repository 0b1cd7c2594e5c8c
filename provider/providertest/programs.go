package providertest

import (
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

func programTests() []test {
	return []test{
		{"listed_programs_run", listedPrograms},
		{"others_do_not", unlistedPrograms},
		{"files_stay_usable", filesUnderAList},
		{"offline", offlineUnderAList},
		{"without_a_list", withoutAList},
	}
}

// underList is a sandbox that holds lists of programs, and such a list.
func (e *env) underList() (cove.Sandbox, *cove.Programs) {
	e.Helper()
	s := e.sandbox()
	e.needs("a kernel that keeps programs to a list (isolation.policy)", s.Isolation().Policy == cove.Hard)
	return s, &cove.Programs{Names: []string{"awk", "cat", "find", "ls", "python3", "sed", "sort", "xargs"}}
}

// line is a line of bash under a list.
func (e *env) line(s cove.Sandbox, list *cove.Programs, line string) ran {
	e.Helper()
	return e.run(s, cove.Command{Argv: []string{"bash", "-c", line}, Programs: list})
}

func listedPrograms(e *env) {
	s, list := e.underList()
	e.write(s, "f", "b\na\n")
	for line, want := range map[string]string{
		"sort f":                                     "a\nb\n",
		"cat f | sed s/a/c/ | sort":                  "b\nc\n",
		`awk '{n++} END {print n}' f`:                "2\n",
		"echo f | xargs cat":                         "b\na\n",
		`(echo "$(ls)") && bash -c 'echo in'`:        "f\nin\n",
		"/usr/bin/cat < f":                           "b\na\n",
		`awk '{print | "sort"}' f`:                   "a\nb\n",
		`python3 -c 'import os; os.system("cat f")'`: "b\na\n",
	} {
		if r := e.line(s, list, line); r.stdout != want || r.ExitCode != 0 {
			e.Errorf("%s: exit code %d, %q, %q; want %q", line, r.ExitCode, r.stdout, r.stderr, want)
		}
	}
	e.write(s, "script", "#!/bin/sh\necho script\n")
	for _, argv := range [][]string{{"mkdir", "d"}, {"/usr/bin/mkdir", "d"}, {"./script"}, {"/workspace/script"}} {
		r := e.run(s, cove.Command{Argv: argv, Programs: list})
		if r.ExitCode != 126 && r.ExitCode != 127 {
			e.Errorf("%v: exit code %d, %q; want 126 or 127", argv, r.ExitCode, r.stderr)
		}
	}
}

// mark is a program that is not on the list, with what it leaves.
const mark = "/usr/bin/mkdir /workspace/mark"

// execTricks are lines that start a program in roundabout ways.
func execTricks() map[string]string {
	const loader = "$(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | sed 1q)"
	python := func(code string) string { return "python3 -c '" + code + "'" }
	argv := `["/usr/bin/mkdir","/workspace/mark"]`
	return map[string]string{
		"plain":      mark,
		"by name":    "mkdir /workspace/mark",
		"exec":       "exec " + mark,
		"command":    "command -p " + mark,
		"subscript":  "x='a[$(" + mark + ")]'; RANDOM=$x",
		"eval":       `eval "` + mark + `"`,
		"trap":       `trap "` + mark + `" EXIT`,
		"awk system": `awk 'BEGIN {system("` + mark + `")}'`,
		"awk pipe":   `awk 'BEGIN {"` + mark + `" | getline}'`,
		"sed e":      "echo x | sed '1e " + mark + "'",
		"sort": `printf '#!/bin/bash
` + mark + `
cat
' > c; chmod 755 c; seq 100000 | sort -S 200k --compress-program=./c > out`,
		"find exec":       "find /etc/hostname -exec " + mark + " \\;",
		"xargs":           "echo /workspace/mark | xargs mkdir",
		"loader":          loader + " " + mark,
		"loader by awk":   `awk -v l="` + loader + `" 'BEGIN {system(l " ` + mark + `")}'`,
		"copied program":  "cat /usr/bin/mkdir > m; chmod +x m; ./m /workspace/mark; " + loader + " ./m /workspace/mark",
		"script":          `printf '#!/bin/bash\n` + mark + `\n' > s; chmod 755 s; ./s`,
		"own interpreter": `printf '#!/usr/bin/mkdir /workspace/mark\n' > s; chmod 755 s; ./s`,
		"os.system":       python(`import os; os.system("` + mark + `")`),
		"subprocess":      python(`import subprocess; subprocess.run(` + argv + `)`),
		"posix_spawn":     python(`import os; os.waitpid(os.posix_spawn("/usr/bin/mkdir", ` + argv + `, {}), 0)`),
		"execve":          python(`import os; os.execv("/usr/bin/mkdir", ` + argv + `)`),
		"raw execveat":    python(`import ctypes, os; a = (ctypes.c_char_p * 3)(b"mkdir", b"/workspace/mark", None); n = 322 if os.uname().machine == "x86_64" else 281; ctypes.CDLL(None).syscall(n, os.open("/usr/bin/mkdir", os.O_PATH), b"", a, None, 0x1000)`),
		"memory file":     python(`import os; f = os.memfd_create("x"); os.write(f, open("/usr/bin/mkdir", "rb").read()); os.execv("/proc/self/fd/%d" % f, ` + argv + `)`),
		"unnamed file":    python(`import os; f = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755); os.write(f, open("/usr/bin/mkdir", "rb").read()); g = os.open("/proc/self/fd/%d" % f, os.O_RDONLY); os.close(f); os.execv("/proc/self/fd/%d" % g, ` + argv + `)`),
		"link":            "ln -s /usr/bin/mkdir m; ./m /workspace/mark; python3 -c 'import os; os.symlink(\"/usr/bin/mkdir\", \"cat\")'; PATH=/workspace:$PATH cat /workspace/mark",
	}
}

func unlistedPrograms(e *env) {
	s, list := e.underList()
	marked := func() bool {
		was := e.argv(s, "rmdir", "/workspace/mark").ExitCode == 0
		e.sh(s, "rm -rf /workspace/*")
		return was
	}
	for name, line := range execTricks() {
		if r := e.line(s, nil, line); !marked() {
			e.Errorf("%s: it starts nothing without a list either (exit code %d, %q)", name, r.ExitCode, r.stderr)
		}
		if r := e.line(s, list, line); marked() {
			e.Errorf("%s: a program that is not on the list ran (exit code %d, %q)", name, r.ExitCode, r.stderr)
		}
	}
}

func filesUnderAList(e *env) {
	s, list := e.underList()
	r := e.line(s, list, `mkdir() { :; }; python3 -c 'import os
os.mkdir("d"); open("d/f", "w").write("text"); os.rename("d/f", "f"); os.link("f", "g"); os.remove("g")
os.rename("f", "/workspace/h"); print(open("/workspace/h").read(), len(open("/etc/passwd").read()) > 0, os.path.exists("/usr/bin/mkdir"))' && ls`)
	if want := "text True True\nd\nh\n"; r.stdout != want {
		e.Errorf("programs under a list print %q, %q; want %q", r.stdout, r.stderr, want)
	}
	e.write(s, "later", "written by the host")
	if r := e.line(s, list, "cat later"); r.stdout != "written by the host" {
		e.Errorf("a file that was written between two programs reads as %q, %q", r.stdout, r.stderr)
	}
	for _, line := range []string{"cat /usr/bin/mkdir | wc -c", "cat /usr/bin/cat > copy && ls copy"} {
		r := e.line(s, list, line)
		if unread := strings.Contains(r.stderr, "denied"); unread != strings.Contains(line, "mkdir") {
			e.Errorf("%s: %q, %q", line, r.stdout, r.stderr)
		}
	}
}

func keptUnderAList(e *env) {
	e.needsPower(cove.PowerResume)
	s, list := e.underList()
	p := e.keep(s, "bound", cove.Command{Argv: []string{"bash", "-c", "read line; " + mark + "; echo done"}, Programs: list})
	p.send("go\n")
	p.out.until("done\n")
	if e.argv(s, "ls", "-d", "/workspace/mark").ExitCode == 0 {
		e.Errorf("a background program ran a program that is not on the list")
	}
}

func offlineUnderAList(e *env) {
	s, list := e.underList()
	const dial = `python3 -c 'import socket
for family in socket.AF_UNIX, socket.AF_INET, socket.AF_INET6:
    try: socket.socket(family).close(); print("opened")
    except OSError as err: print(type(err).__name__)'; (: > /dev/tcp/127.0.0.1/1) 2>&1 | cat`
	online, offline := e.line(s, list, dial), e.line(s, &cove.Programs{Names: list.Names, Offline: true}, dial)
	if want := "opened\nopened\n"; !strings.HasPrefix(online.stdout, want) || !strings.Contains(online.stdout, "refused") {
		e.Errorf("with the network: %q, %q", online.stdout, online.stderr)
	}
	if want := "opened\nPermissionError\nPermissionError\n"; !strings.HasPrefix(offline.stdout, want) || !strings.Contains(offline.stdout, "denied") {
		e.Errorf("offline: %q, %q", offline.stdout, offline.stderr)
	}
}

func withoutAList(e *env) {
	s, list := e.underList()
	e.prints(s, "yes\n", mark+" && rmdir /workspace/mark && echo yes")
	none := e.line(s, &cove.Programs{}, "ls; echo builtin")
	if none.stdout != "builtin\n" || !strings.Contains(none.stderr, "denied") {
		e.Errorf("under an empty list: %q, %q", none.stdout, none.stderr)
	}
	helpers := &cove.Programs{Names: list.Names, Helpers: []string{"/usr/bin/mkdir", "/nowhere", "/workspace"}}
	e.write(s, "script", "#!/bin/bash\necho ran\n")
	r := e.line(s, helpers, fmt.Sprintf("%s; ls; chmod 755 script; ./script", mark))
	if !strings.HasPrefix(r.stdout, "mark\n") || strings.Contains(r.stdout, "ran") {
		e.Errorf("with helpers: %q, %q", r.stdout, r.stderr)
	}
}

package providertest

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

func limitTests() []test {
	return []test{
		{"memory_ends_the_program", memoryLimit},
		{"memory_below_the_limit_is_fine", memoryBelow},
		{"memory_has_the_workspace_in_it", memoryWithFiles},
		{"processes_are_bounded", pidLimit},
		{"bytes_are_exact_for_files", diskLimitFiles},
		{"bytes_are_exact_for_programs", diskLimitPrograms},
		{"bytes_come_back", diskComesBack},
		{"file_count_is_exact_for_files", countLimitFiles},
		{"file_count_is_exact_for_programs", countLimitPrograms},
		{"archives_are_bounded_too", archiveLimit},
	}
}

func memoryLimit(e *env) {
	e.needsHard(cove.LimitMemory)
	s := e.sandbox(func(s *cove.Spec) { s.Resources.Memory = 64 * cove.MiB })
	// From a pipe it must keep what it has read; in a file it would look back.
	r := e.run(s, cove.Command{Argv: []string{"tail", "-c", "4G"}, Stdin: endless{}})
	e.ended(r.Result, cove.OutOfMemory, 137, "KILL")
	e.prints(s, "lives on\n", "echo lives on")
}

func memoryBelow(e *env) {
	e.needsHard(cove.LimitMemory)
	s := e.sandbox(func(s *cove.Spec) { s.Resources.Memory = 64 * cove.MiB })
	e.prints(s, "8388608\n", "head -c 16777216 /dev/zero | tail -c 8388608 | wc -c | tr -d ' '")
}

// memoryWithFiles: a full workspace in memory is told so, and takes half of the memory
// from programs. They go on in the rest, and get it back with the files.
func memoryWithFiles(e *env) {
	e.needsHard(cove.LimitMemory)
	e.needsHard(cove.LimitDisk)
	b := e.caps.Isolation.Boundary
	e.needs("a workspace in a memory that is real and the sandbox's own", b == cove.BoundaryNamespaces || b == cove.BoundaryUserKernel)
	const memory = 128 * cove.MiB
	s := e.sandbox(func(s *cove.Spec) {
		s.Resources.Memory, s.Workspace = memory, cove.Workspace{Kind: cove.WorkspaceMemory}
	})
	if r := e.sh(s, "cat /dev/zero > full"); r.ExitCode == 0 || r.Outcome != cove.Exited || !strings.Contains(r.stderr, "No space left") {
		e.Errorf("filling the workspace ends with %s, code %d and says %q", r.Outcome, r.ExitCode, r.stderr)
	}
	info, err := s.Files().Stat(e.ctx(), "full")
	e.must(err, "stat")
	if info.Size < memory/4 || info.Size > memory/2 {
		e.Errorf("%s of %s fit into the workspace", info.Size, memory)
	}
	held := func(n cove.Bytes) cove.Result {
		amount := strconv.FormatInt(int64(n), 10)
		return e.run(s, cove.Command{Argv: []string{"tail", "-c", amount}, Stdin: io.LimitReader(endless{}, int64(n)+1)}).Result
	}
	if r := held(24 * cove.MiB); r.ExitCode != 0 {
		e.Errorf("beside a full workspace a program of 24 MiB ends with %+v", r)
	}
	const most = memory/2 + 8*cove.MiB // which fits alone, and not beside the files
	e.ended(held(most), cove.OutOfMemory, 137, "KILL")
	e.prints(s, "lives on\n", "rm full && echo lives on")
	if r := held(most); r.ExitCode != 0 {
		e.Errorf("without the files a program of %s ends with %+v", most, r)
	}
}

func pidLimit(e *env) {
	e.needsHard(cove.LimitPIDs)
	const most = 24
	s := e.sandbox(func(s *cove.Spec) { s.Resources.PIDs = most })
	r := e.sh(s, "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo all started")
	if r.ExitCode == 0 || strings.Contains(r.stdout, "all started") {
		e.Errorf("200 processes started where %d are allowed", most)
	}
	u, err := s.Usage(e.ctx())
	e.must(err, "usage")
	if u.PIDs > most {
		e.Errorf("%d processes run where %d are allowed", u.PIDs, most)
	}
	e.check(s.Destroy(e.ctx()), "destroy")
}

// full demands that there is no room.
func (e *env) full(err error, what string) {
	e.Helper()
	e.wantsReason(cove.Exhausted, cove.ReasonWorkspaceFull, err, what)
}

const smallWorkspace = cove.MiB

func (e *env) smallSandbox() cove.Sandbox {
	e.Helper()
	e.needsHard(cove.LimitDisk)
	return e.sandbox(func(s *cove.Spec) { s.Workspace.Size = smallWorkspace })
}

func diskLimitFiles(e *env) {
	s := e.smallSandbox()
	f := s.Files()
	e.full(f.Write(e.ctx(), "big", bytes.NewReader(make([]byte, smallWorkspace+1)), 0o644), "one byte too much")
	_, err := f.Stat(e.ctx(), "big")
	e.wants(cove.NotFound, err, "the file that did not fit")
	e.full(f.Write(e.ctx(), "endless", endless{}, 0o644), "a file without an end")
	e.must(f.Write(e.ctx(), "exact", bytes.NewReader(make([]byte, smallWorkspace)), 0o644), "write exactly what fits")
	e.full(f.Write(e.ctx(), "more", reader("x"), 0o644), "one more byte")
	e.must(f.Remove(e.ctx(), "exact"), "remove")
	e.check(f.Write(e.ctx(), "more", reader("x"), 0o644), "write after removing")
}

// endless is a reader that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func diskLimitPrograms(e *env) {
	s := e.smallSandbox()
	r := e.sh(s, "dd if=/dev/zero of=big bs=4096 count=1024")
	if r.ExitCode == 0 || !strings.Contains(r.stderr, "No space left") {
		e.Errorf("writing 4 MiB ends with code %d and says %q", r.ExitCode, r.stderr)
	}
	info, err := s.Files().Stat(e.ctx(), "big")
	e.must(err, "stat")
	equal(e, info.Size, smallWorkspace, "the size of the file that filled the workspace")
	e.full(s.Files().Write(e.ctx(), "more", reader("x"), 0o644), "one more byte")
	e.prints(s, "elsewhere\n", "echo elsewhere > /tmp/x && cat /tmp/x")
}

func diskComesBack(e *env) {
	s := e.smallSandbox()
	fill := "dd if=/dev/zero of=big bs=4096 count=256 2>/dev/null && echo filled"
	e.prints(s, "filled\n", fill)
	for _, free := range []string{"rm big", "> big; rm big", "mv big small; rm small", "> big; mkdir d; mv big d/; rm -r d"} {
		e.prints(s, "", free)
		e.prints(s, "filled\n", fill)
	}
	u, err := s.Usage(e.ctx())
	e.must(err, "usage")
	if u.Disk < smallWorkspace || u.Disk > 2*smallWorkspace {
		e.Errorf("a full workspace of %d bytes uses %d", smallWorkspace, u.Disk)
	}
}

const fewFiles = 16

func countLimitFiles(e *env) {
	e.needsHard(cove.LimitFiles)
	s := e.sandbox(func(s *cove.Spec) { s.Workspace.Files = fewFiles })
	f := s.Files()
	for i := range fewFiles {
		e.must(f.Write(e.ctx(), "f"+strconv.Itoa(i), reader(""), 0o644), "write")
	}
	e.full(f.Write(e.ctx(), "more", reader(""), 0o644), "one more file")
	e.full(f.Mkdir(e.ctx(), "more"), "one more directory")
	e.must(f.Remove(e.ctx(), "f3"), "remove")
	e.check(f.Mkdir(e.ctx(), "dir"), "a directory in the place of the file")
}

func countLimitPrograms(e *env) {
	e.needsHard(cove.LimitFiles)
	s := e.sandbox(func(s *cove.Spec) { s.Workspace.Files = fewFiles })
	e.prints(s, strconv.Itoa(fewFiles)+"\n", "i=0; while [ $i -lt 100 ] && touch f$i 2>/dev/null; do i=$((i+1)); done; echo $i")
	for _, more := range []string{"touch more", "mkdir more", "ln -s x more", "echo x > more"} {
		if r := e.sh(s, more); r.ExitCode == 0 {
			e.Errorf("%s makes one file too many", more)
		}
	}
	e.prints(s, "ok\n", "rm f1 && ln -s x link && echo ok")
}

func archiveLimit(e *env) {
	s := e.smallSandbox()
	big := pack(e, entry{name: "big", body: strings.Repeat("x", int(smallWorkspace)+1)})
	e.full(s.Files().Unpack(e.ctx(), ".", bytes.NewReader(big)), "an archive that does not fit")
	e.check(s.Files().Unpack(e.ctx(), ".", bytes.NewReader(pack(e, entry{name: "small", body: "x"}))), "one that fits")
}

package seccomp_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

const pythonScript = `
import asyncio, concurrent.futures, fcntl, hashlib, json, mmap, multiprocessing, os, resource, select, signal
import socket, sqlite3, subprocess, tempfile, threading, time
def square(x): return x * x
if __name__ == "__main__":
    assert subprocess.run(["sh", "-c", "echo hi"], capture_output=True, text=True).stdout == "hi\n"
    with concurrent.futures.ThreadPoolExecutor(4) as p: assert list(p.map(square, range(4))) == [0, 1, 4, 9]
    with multiprocessing.Pool(2) as p: assert p.map(square, [2, 3]) == [4, 9]
    a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
    s = socket.create_server(("127.0.0.1", 0)); s.close()
    with tempfile.TemporaryDirectory() as d:
        db = sqlite3.connect(d + "/x.db"); db.execute("create table t(a)"); db.commit(); db.close()
        os.mkfifo(d + "/fifo"); os.chmod(d + "/x.db", 0o600); os.symlink("x.db", d + "/link"); os.utime(d + "/x.db")
    m = mmap.mmap(-1, 4096); m[0] = 1
    async def nap(): await asyncio.sleep(0)
    asyncio.run(nap())
    signal.signal(signal.SIGALRM, lambda *a: None); signal.alarm(1); signal.alarm(0)
    resource.getrlimit(resource.RLIMIT_NOFILE); os.sched_getaffinity(0); os.getrandom(4)
    try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); raise SystemExit("netlink")
    except OSError: pass
    print("done")
`

const nodeScript = `
const assert = require('assert'), cp = require('child_process'), fs = require('fs'), os = require('os'), path = require('path');
const http = require('http'), crypto = require('crypto'), { Worker } = require('worker_threads');
assert.equal(cp.execSync('echo hi').toString(), 'hi\n');
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'x'));
fs.writeFileSync(dir + '/a', crypto.randomBytes(1 << 16)); fs.copyFileSync(dir + '/a', dir + '/b'); fs.rmSync(dir, { recursive: true });
const w = new Worker('require("worker_threads").parentPort.postMessage(7)', { eval: true });
w.on('message', (m) => {
  assert.equal(m, 7);
  const s = http.createServer((q, r) => r.end('ok')).listen(0, '127.0.0.1', () => {
    http.get({ port: s.address().port, host: '127.0.0.1' }, (r) => { r.resume(); r.on('end', () => { s.close(); console.log('done'); }); });
  });
});
`

const cScript = `
set -e
cat > a.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *f(void *p) { return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts("done"); return 0; }
C
gcc -O1 -pthread -o a a.c
./a`

const gitScript = `
set -e
git init -q . && echo x > f && git add f
git -c user.name=n -c user.email=e@e commit -qm one && git log --oneline | grep -q one && git clone -q . c && echo done`

const shellScript = `
set -e
mkdir d; echo b > d/b; echo a > d/a; ln -s a d/l; ln d/a d/h; cp -a d e; mv e f; touch -d yesterday d/a; chmod 600 d/b
ls -la d f >/dev/null; find . -type f | sort | xargs wc -l >/dev/null; tar cf x.tar d; tar tf x.tar >/dev/null; gzip x.tar
sort d/a d/b | uniq | head -1 | tr a-z A-Z | grep -q A; sed s/a/c/ d/a | awk '{ print $1 }' | cut -c1 >/dev/null
dd if=/dev/zero of=z bs=4k count=4 2>/dev/null; truncate -s 1M z; df . >/dev/null; du -s . >/dev/null; stat z >/dev/null
mkfifo p; (echo x > p &) ; read -r l < p; sleep 0; nice true; timeout 5 true; env true; id >/dev/null; date >/dev/null; uname -a >/dev/null
(trap '' TERM; kill -TERM $BASHPID); ulimit -n >/dev/null; sync z; rm -rf d f; echo done`

// TestPrograms runs what people run in a sandbox under its filter.
func TestPrograms(t *testing.T) {
	linuxtest.Need(t, seccomp.Probe())
	linuxtest.NoLeaks(t, "")
	for _, argv := range [][]string{
		{"python3", "-c", pythonScript},
		{"node", "-e", nodeScript},
		{"bash", "-c", shellScript},
		{"bash", "-c", gitScript, "git"},
		{"bash", "-c", cScript, "gcc"},
		{"bash", "-c", `echo '{"a":[1,2]}' | jq -e '.a[1] == 2' >/dev/null && echo done`, "jq"},
		{"bash", "-c", `file -b /dev/null >/dev/null && echo done`, "file"},
	} {
		program := argv[0]
		if len(argv) > 3 {
			program = argv[3]
		}
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is not installed", program)
			}
			if _, err := os.Stat("/dev/shm"); program == "python3" {
				linuxtest.Need(t, err) // its locks are there
			}
			dir := t.TempDir()
			script := append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir}, argv...)
			out := linuxtest.OK(t, linuxtest.Child{Name: "exec", Args: script, Env: []string{"HOME=" + dir, "TMPDIR=" + dir, "PYENV_ROOT=" + os.Getenv("PYENV_ROOT")}})
			if !strings.HasSuffix(out, "done") {
				t.Errorf("%s wrote %q", program, out)
			}
		})
	}
}

//go:build linux

package agent

import (
	"os"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// killFiles are where the kernel counts the processes that it ended for want of memory,
// in both versions of control groups.
var killFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// memoryKills answers with that count, which is 0 where the control group cannot be seen.
func (s *server) memoryKills(m *protocol.Message, _ protocol.File) {
	var e protocol.Encoder
	e.Int(countKills())
	s.reply(m.ID, protocol.Reply{Body: e.Bytes()})
}

func countKills() int64 {
	for _, file := range killFiles {
		text, err := os.ReadFile(file) //nolint:gosec // one of two files of the kernel
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if word, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok && word == "oom_kill" {
				n, _ := strconv.ParseInt(count, 10, 64) // the kernel writes a number
				return n
			}
		}
	}
	return 0
}

package msbapi

import (
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// measured is what a sandbox uses. Numbers that nobody has are null.
type measured struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Running   bool     `json:"running"`
	CPU       *float64 `json:"cpu_usage"`    // percent of one CPU since it was started
	Memory    *int64   `json:"memory_usage"` // in MiB
	Disk      *int64   `json:"disk_usage"`   // in bytes
}

// maxMeasured bounds the sandboxes of one answer.
const maxMeasured = 1000

// metrics tells of one sandbox, or of all of a namespace, or of all. Who asks for
// more than one is told what stands around each, which the original has no word for:
// its sandboxes are virtual machines, and ours need not be.
func (c *call) metrics(p params) (any, error) {
	f := cove.SessionFilter{Project: Project, Thread: p.Sandbox, Limit: maxMeasured}
	if p.Namespace != everything {
		f.User = userPrefix + p.Namespace
	}
	all := []measured{}
	for s, err := range c.platform.Sessions().List(c.ctx, f) {
		if err != nil {
			return nil, err
		}
		if namespace, ok := strings.CutPrefix(s.Spec.User, userPrefix); ok {
			all = append(all, c.measure(namespace, s))
		}
	}
	answer := map[string]any{"sandboxes": all}
	if p.Sandbox == "" && c.Isolation != nil {
		i, err := c.Isolation(c.ctx, c.who)
		if err != nil { // who cannot tell promises nothing
			i = cove.Isolation{
				Boundary: cove.BoundaryNone, Network: cove.Absent, Memory: cove.Absent, CPU: cove.Absent, PIDs: cove.Absent, Disk: cove.Absent, Files: cove.Absent, Policy: cove.Absent,
			}
		}
		answer["isolation"] = i
	}
	return answer, nil
}

func (c *call) measure(namespace string, s *cove.Session) measured {
	m := measured{Namespace: namespace, Name: s.Spec.Thread, Running: s.State == cove.Running}
	if !m.Running {
		return m
	}
	u, err := c.platform.Sessions().Usage(c.ctx, s.ID)
	if err != nil {
		return m // it is there, and its numbers are not
	}
	memory, disk := int64(u.Memory/cove.MiB), int64(u.Disk)
	m.Memory, m.Disk = &memory, &disk
	if age := time.Since(s.CreatedAt); age > 0 {
		share := 100 * float64(u.CPU) / float64(age)
		m.CPU = &share
	}
	return m
}

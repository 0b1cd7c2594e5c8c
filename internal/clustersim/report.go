package clustersim

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// What the directory keeps of a session and of a node, with what they are found by,
// is less than this.
const (
	RecordSize = 2 * cove.KiB
	NodeSize   = cove.KiB
)

// row is one line of a table: what it is about, and how it is told of a day.
type row struct {
	name string
	tell func(*Stats) string
}

var rows = []row{
	{"nodes", func(s *Stats) string {
		return fmt.Sprintf("%d with %s and %d sessions each", s.cfg.Nodes, s.cfg.NodeMemory, s.cfg.NodeSessions)
	}},
	{"sandboxes at once, at most", func(s *Stats) string { return count(s.Peak) }},
	{"sessions: arrived, opened", func(s *Stats) string { return count(s.Arrived) + ", " + count(s.Opened) }},
	{"memory over nodes: deviation ÷ mean, p99", func(s *Stats) string {
		return fmt.Sprintf("%.3f, %.3f", mean(s.Balance), quantile(s.Balance, 0.99))
	}},
	{"memory over nodes: fullest ÷ mean, p99", func(s *Stats) string {
		return fmt.Sprintf("%.2f, %.2f", mean(s.Spread), quantile(s.Spread, 0.99))
	}},
	{"nodes asked for a session", func(s *Stats) string { return fmt.Sprintf("%.3f", float64(s.Asks)/float64(max(s.Arrived, 1))) }},
	{"most begun on one node between two heartbeats", func(s *Stats) string { return count(s.Herd) }},
	{"had to wait, though another node had room", func(s *Stats) string { return count(s.Queued) + ", " + count(s.NeedlessWaits) }},
	{"got in after a wait, p50, p99", func(s *Stats) string {
		return fmt.Sprintf("%s, %s, %s", count(s.Waited), seconds(quantile(s.Waits, 0.5)), seconds(quantile(s.Waits, 0.99)))
	}},
	{"refused: no room, no directory, node crashed", func(s *Stats) string {
		return fmt.Sprintf("%s, %s, %s", count(s.Refused.Full), count(s.Refused.Directory), count(s.Refused.Crash))
	}},
	{"crashes, sessions lost", func(s *Stats) string { return count(s.Crashes) + ", " + count(s.Lost) }},
	{"drains, sessions moved, left to end there", func(s *Stats) string {
		return fmt.Sprintf("%s, %s, %s", count(s.Drains), count(s.Moved), count(s.Stayed))
	}},
	{"directory operations for a create, a close", func(s *Stats) string { return fmt.Sprintf("%g, %g", s.cfg.Costs.Create, s.cfg.Costs.Close) }},
	{"… for a request on the session's node", func(*Stats) string { return "0" }},
	{"… for a request on any node: lookups", func(s *Stats) string {
		return fmt.Sprintf("%.3f of %.1f requests/s", s.burden.total[opLookup]/max(s.Requests, 1), s.rate(s.Requests))
	}},
	{"… a second: " + strings.Join(opNames[:], ", "), func(s *Stats) string {
		var parts []string
		for _, n := range s.burden.total {
			parts = append(parts, fmt.Sprintf("%.2f", s.rate(n)))
		}
		return strings.Join(parts, ", ")
	}},
	{"… a second in all, at most", func(s *Stats) string { return fmt.Sprintf("%.1f, %.1f", s.rate(s.burden.sum()), s.most()) }},
	{"directory memory for live records of 2 KB", func(s *Stats) string { return size(cove.Bytes(s.Peak) * RecordSize) }},
}

// Table writes days side by side, each under its title.
func Table(w io.Writer, titles []string, days []*Stats) error {
	var b strings.Builder
	b.WriteString("| |")
	for _, t := range titles {
		b.WriteString(" " + t + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(days)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + r.name + " |")
		for _, s := range days {
			b.WriteString(" " + r.tell(s) + " |")
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// most is how often the directory is asked in a second, if all that is busiest in
// the day came together: the busiest ten seconds, and a lookup for each request
// while most sandboxes are there.
func (s *Stats) most() float64 {
	return s.burden.peak/opWindow.Seconds() + s.cfg.Costs.Lookup*float64(s.Peak)/s.cfg.Pace.Seconds()
}

// count writes a number with commas.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func size(b cove.Bytes) string { return fmt.Sprintf("%.1f MB", float64(b)/float64(cove.MiB)) }

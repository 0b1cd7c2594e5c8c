package forkexec

// ScanChildren is what Children does where the kernel has no lists of them.
var ScanChildren = scanChildren

// ParseStat reads the text of /proc/<pid>/stat.
func ParseStat(pid int, text string) (parent int, start string, err error) {
	p, err := parse(pid, []byte(text))
	return p.parent, p.start, err
}

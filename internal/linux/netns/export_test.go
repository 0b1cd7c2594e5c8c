package netns

// ProbeAt is Probe with another place for /proc.
var ProbeAt = probe

package local

// HurryAgents keeps agents and spawners that are built with the race detector
// from sleeping for a second at their end.
func HurryAgents() { moreEnv = []string{"GORACE=atexit_sleep_ms=0"} }

// Weaken leaves one defence out of the sandboxes that a provider with this
// configuration makes. It panics for a defence that there is none of.
func (c *Config) Weaken(defence string) {
	left, ok := map[string]*bool{
		"filter": &c.weak.filter, "processes": &c.weak.processes, "network": &c.weak.network, "recursion": &c.weak.recursion, "layers": &c.weak.layers,
		"settings": &c.weak.settings, "volumes": &c.weak.volumes, "kernel": &c.weak.kernel, "locks": &c.weak.locks,
	}[defence]
	if !ok {
		panic("no defence is called " + defence) //nolint:forbidigo // a mistake in a test
	}
	*left = true
}

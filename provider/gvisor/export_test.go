package gvisor

// SetOwn says where the runtime of this build is; "" is where this build has it.
func (c *Config) SetOwn(path string) { c.own = path }

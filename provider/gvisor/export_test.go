package gvisor

import "time"

// SetOwn says where the runtime of this build is; "" is where this build has it.
func (c *Config) SetOwn(path string) { c.own = path }

// SetPatience says how long a call of the runtime may take.
func (c *Config) SetPatience(d time.Duration) { c.patience = d }

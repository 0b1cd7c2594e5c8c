//go:build linux

package e2b

import "time"

// At returns where the API of a configuration is, and where one of its machines.
func At(c Config, machine, domain string) (api, envd string, err error) {
	c, err = c.withDefaults()
	return c.APIURL, c.envdAt(machine, domain), err
}

// SetExchangeTime changes how long a whole answer may take, and returns what changes
// it back.
func SetExchangeTime(d time.Duration) func() {
	was := exchangeTime
	exchangeTime = d
	return func() { exchangeTime = was }
}

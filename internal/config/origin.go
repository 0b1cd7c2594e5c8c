package config

// Source is one of the places that settings come from.
type Source string

// The sources, in rising weight.
const (
	FromDefault Source = "default"
	FromFile    Source = "file"
	FromEnv     Source = "env"
	FromFlag    Source = "flag"
)

// Origin says where the value of a setting came from.
type Origin struct {
	Source Source
	Name   string // as the user wrote it: SANDBOX_TYPE, server.addr, --addr; "" for a default
	Place  string // of the file: its path and the line
}

// Origin returns where the value of a setting came from, by its name in the
// environment, or by its key for one that only the file can hold.
func (c Config) Origin(name string) Origin {
	if o, ok := c.origins[name]; ok {
		return o
	}
	return Origin{Source: FromDefault}
}

// IsSet reports whether somebody set a setting, as opposed to a default.
func (c Config) IsSet(name string) bool { return c.Origin(name).Source != FromDefault }

package microsandbox

import (
	"cmp"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says what sandboxes are made with.
type Config struct {
	// Dir is a directory for this provider alone.
	Dir string
	// Transport is rpc, cli, or "" for whichever answers.
	Transport string
	// ServerURL, APIKey and Namespace are for rpc.
	ServerURL string
	APIKey    string
	Namespace string
	// Program is the path of msb, for cli; "" is the one in PATH.
	Program string
	// Image is what sandboxes are made from. Its programs run as root, and it has a
	// shell, mount and base64.
	Image string
	// CPUs and Memory are those of sandboxes that ask for none.
	CPUs   float64
	Memory cove.Bytes
	// StartTimeout bounds how long a start that did not answer is waited for.
	StartTimeout time.Duration
	// Agent is an executable that is cove-agent, for the machines' kind of
	// processor; "" is the one in this build.
	Agent string
}

func (c Config) withDefaults() Config {
	c.ServerURL = cmp.Or(c.ServerURL, "http://127.0.0.1:5555")
	c.Namespace = cmp.Or(c.Namespace, "default")
	c.Image = cmp.Or(c.Image, "microsandbox/python")
	c.CPUs = cmp.Or(c.CPUs, 1)
	c.Memory = cmp.Or(c.Memory, 512*cove.MiB)
	c.StartTimeout = cmp.Or(c.StartTimeout, 3*time.Minute)
	return c
}
